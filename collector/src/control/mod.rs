//! The switch of a recording and the marks of its phases, in the hands of programs and of `hbbp control`.

mod folder;
mod outlook;
mod switch;

use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use ::control::{Message, Order, Scope, State, named_folder};
use formats::phase_mark::PhaseMark;

use crate::control::folder::Folder;
pub(crate) use crate::control::outlook::Heard;
use crate::control::switch::{LeftOut, Switch};
use crate::error::RecordError;
use crate::session::record_layout::{BrokenRecord, RecordLayout};
use crate::tracer::{Shared, monotonic_time};

/// What is said to a recorder, and what comes of it.
#[derive(Debug)]
pub(crate) struct Control {
    /// `None`: it could not be made, and nobody can say anything.
    folder: Option<Folder>,
    switch: Switch,
    /// Who makes samples, and need not for what is off.
    tracer: Option<Arc<Shared>>,
    state: State,
    marks: u64,
    /// Messages that did not reach the recorder.
    lost: u64,
}

impl Control {
    /// `off`: nothing is recorded until somebody says so. `roots`: the processes that are recorded with what they start; `None` is
    /// everything. `burst`: the id of the event whose samples are bursts. Also returns, in a sentence, who cannot say anything, if so.
    ///
    /// # Errors
    /// Nobody could say anything, and the user counts on it.
    pub(crate) fn new(
        layout: RecordLayout,
        off: bool,
        roots: &[Option<u32>],
        burst: Option<u64>,
    ) -> Result<(Self, Option<String>), RecordError> {
        let state = State { on: !off, turns: 0, read: 0 };
        let named = named_folder();
        let (folder, deaf) = match Folder::make(named.as_deref(), roots, state) {
            Ok(folder) => {
                let deaf = folder.is_second().then(|| {
                    "the program is being recorded by another recorder, too: that one hears what the program says"
                        .to_owned()
                });
                (Some(folder), deaf)
            }
            // A recorder within a recording has the same environment.
            Err(error) if off || named.is_some() && error.kind() != ErrorKind::ResourceBusy => {
                return Err(RecordError::Control(error));
            }
            Err(error) => (None, Some(format!("programs and `hbbp control` cannot switch this recording: {error}"))),
        };
        let switch = Switch::new(layout, !off, burst);
        Ok((Self { folder, switch, tracer: None, state, marks: 0, lost: 0 }, deaf))
    }

    /// From now on `tracer` is told who is off.
    pub(crate) fn tell(&mut self, tracer: Arc<Shared>) {
        self.tracer = Some(tracer);
        if !self.state.on {
            self.tell_tracer();
        }
    }

    fn tell_tracer(&self) {
        if let Some(tracer) = &self.tracer {
            tracer.switch.hear(self.switch.outlook());
            tracer.wake_tracer();
        }
    }

    /// Readable when something was said.
    pub(crate) fn polled(&self) -> Option<OwnedFd> {
        self.folder.as_ref()?.polled()
    }

    /// Takes in what was said since the last time, which is everything that was said before the rings were read. Returns the marks.
    pub(crate) fn hear(&mut self) -> Vec<PhaseMark> {
        let Some(folder) = &mut self.folder else { return Vec::new() };
        let messages = folder.messages();
        if messages.is_empty() {
            return Vec::new();
        }
        let now = monotonic_time();
        self.switch.hear(&messages, now);
        let before = self.state;
        for message in &messages {
            self.lost += u64::from(message.lost);
            if message.scope == Scope::All {
                self.state.read += 1;
                if message.order != Order::Mark {
                    self.state = State { on: message.order == Order::Start, turns: self.state.turns + 1, ..self.state };
                }
            }
        }
        if self.state != before {
            // Who waits for it sees that nothing comes.
            let _ = folder.say(self.state);
        }
        if messages.iter().any(|message| message.order != Order::Mark) {
            self.tell_tracer();
        }
        let marks = messages.iter().filter(|message| message.order == Order::Mark);
        let marks: Vec<PhaseMark> = marks.map(|message| mark(message, now)).collect();
        self.marks += marks.len() as u64;
        marks
    }

    /// Takes samples of what is switched off out of `records`, which are in order of time.
    pub(crate) fn leave_out(&mut self, records: &mut Vec<u8>) -> Result<(), BrokenRecord> {
        self.switch.leave_out(records)?;
        if self.switch.take_news() {
            self.tell_tracer();
        }
        Ok(())
    }

    /// Samples that were left out, because what made them was switched off.
    pub(crate) fn left_out(&self) -> LeftOut {
        self.switch.left_out()
    }

    /// Marks of phases.
    pub(crate) fn marks(&self) -> u64 {
        self.marks
    }

    /// What is odd about what was said, in a sentence.
    pub(crate) fn degradation(&self) -> Option<String> {
        let skipped = self.folder.as_ref().map_or(0, Folder::skipped);
        let sentence = match (self.lost, skipped) {
            (0, 0) => return None,
            (0, skipped) => format!("{skipped} bytes that came by the recording's control pipe were no messages"),
            (lost, _) => format!(
                "{lost} messages of programs to the recorder (start, stop, mark) were lost: there was no room for them"
            ),
        };
        Some(sentence)
    }
}

fn mark(message: &Message, now: u64) -> PhaseMark {
    let pid = (message.scope == Scope::Process).then_some(message.pid);
    PhaseMark { time: message.time.min(now), pid, name: message.name() }
}
