//! Samples made by a thread of the collector that follows the program: the software tracer, or the simulated PMU.

use std::ffi::OsString;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use formats::metadata::Metadata;
use perfdata::{EventAttr, EventDescription, SampleFormat};

use crate::error::RecordError;
use crate::plan::choice::Choice;
use crate::plan::event_spec::{EventSpec, SessionAttrs};
use crate::plan::request::Request;
use crate::session::Summary;
use crate::session::producer::Producer;
use crate::tracer::{Follower, Shared};

/// A follower that is to be attached.
pub(crate) trait PlannedFollower {
    /// Attaches it to what `request` asks for, of which `command` is the process of the command, if there is one. Its events agree with
    /// `first`, that of the kernel's events which tells of mappings, if there are any, in all that readers expect events to agree in. Nothing is sampled yet. `None`: it is done without, which is among the
    /// degradations of `choice` then.
    ///
    /// # Errors
    /// The user asked for it, and it cannot be attached.
    fn attach(
        self: Box<Self>,
        request: &Request,
        command: Option<u32>,
        first: Option<&EventAttr>,
        choice: &mut Choice,
    ) -> Result<Option<Attached>, RecordError>;

    /// A variable that the command has to have in its environment.
    fn environment(&self) -> Option<(&'static str, OsString)> {
        None
    }

    /// Files that it has open besides those that every follower has.
    fn files(&self) -> usize {
        0
    }
}

/// The attributes of a follower's event: those of its plan, and what readers expect all events to agree in, as `first` has it. Its samples have
/// these fields.
pub(crate) fn agreeing(spec: &EventSpec, first: &EventAttr, fields: SampleFormat) -> EventAttr {
    let of_own = spec.attr(&SessionAttrs::default(), false);
    EventAttr { sample_format: fields, read_format: first.read_format, ..of_own }
}

/// A follower at work.
pub(crate) struct Attached {
    pub(crate) producer: Box<dyn Producer>,
    pub(crate) shared: Arc<Shared>,
    /// It may trace the command, and is told first then how that ends.
    pub(crate) traces: bool,
}

/// What a follower of some kind says of itself.
pub(crate) trait Follows {
    /// What the follower has to say of itself in the end.
    type Statistics: Send + 'static;

    /// Adds to the metadata what is known before anything is recorded, as [`Producer::introduce`].
    fn introduce(&self, metadata: &mut Metadata);

    /// A file has ended after which another one comes.
    fn conclude_file(&mut self, _own: Range<usize>, _summary: &Summary) {}

    /// As [`Producer::conclude`]; `done` is `None` if it failed.
    fn conclude(&self, done: Option<Self::Statistics>, own: Range<usize>, summary: &mut Summary);
}

/// A follower and its queue of records.
pub(crate) struct Followed<F: Follows> {
    plan: F,
    events: Vec<EventDescription>,
    shared: Arc<Shared>,
    follower: Option<Follower<F::Statistics>>,
    done: Option<F::Statistics>,
}

impl<F: Follows + 'static> Followed<F> {
    /// A follower that has been attached, and its events.
    pub(crate) fn attached(plan: F, events: Vec<EventDescription>, follower: Follower<F::Statistics>) -> Attached {
        let shared = follower.shared();
        let producer = Self { plan, events, shared: shared.clone(), follower: Some(follower), done: None };
        Attached { producer: Box::new(producer), shared, traces: true }
    }
}

impl<F: Follows> Producer for Followed<F> {
    fn events(&self) -> &[EventDescription] {
        &self.events
    }

    fn introduce(&self, metadata: &mut Metadata) {
        self.plan.introduce(metadata);
    }

    fn start(&mut self) {
        if let Some(follower) = &self.follower {
            follower.start();
        }
    }

    fn rings(&self) -> usize {
        1
    }

    fn drain(&mut self, _ring: usize, records: &mut Vec<u8>) {
        self.shared.drain(records);
    }

    fn until_drain(&self) -> Duration {
        self.shared.until_enough()
    }

    fn polled(&self) -> Vec<(usize, BorrowedFd<'_>)> {
        vec![(0, self.shared.as_fd())]
    }

    fn stop(&mut self) {
        if let Some(follower) = self.follower.take() {
            self.done = follower.stop();
        }
    }

    fn conclude_file(&mut self, own: Range<usize>, summary: &mut Summary) {
        self.plan.conclude_file(own, summary);
    }

    fn conclude(&mut self, own: Range<usize>, summary: &mut Summary) {
        self.plan.conclude(self.done.take(), own, summary);
    }
}
