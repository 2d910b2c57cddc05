//! What makes the samples of a recording.

use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use formats::metadata::Metadata;
use perfdata::EventDescription;

use crate::errno::Errno;
use crate::session::Summary;

/// A part of a session that makes samples: the kernel with its events, the software tracer, the simulated PMU.
///
/// ```text
/// events, introduce      the file begins
/// enable                 before the command is started, if something else is recorded than the command alone
/// start                  the command runs
/// poll, drain, hung_up   again and again
/// next_file, drain, conclude_file    where the recording goes on in another file
/// stop, drain            for the last time
/// conclude               the file is completed
/// ```
pub(crate) trait Producer {
    /// Its events, as the recording describes them.
    fn events(&self) -> &[EventDescription];

    /// Adds to the metadata what is known before anything is recorded: its events, in the order of [`Self::events`], and its settings.
    fn introduce(&self, metadata: &mut Metadata);

    /// Begins to sample what runs already. What is sampled from a command's exec on needs no such beginning.
    fn enable(&mut self) -> Result<(), Errno> {
        Ok(())
    }

    /// The command runs, if there is one.
    fn start(&mut self) {}

    /// How many rings its records come from.
    fn rings(&self) -> usize;

    /// Appends what ring `ring` holds to `records`, and empties it.
    fn drain(&mut self, ring: usize, records: &mut Vec<u8>);

    /// After how long it is to be drained although nothing has become readable.
    fn until_drain(&self) -> Duration {
        Duration::MAX
    }

    /// What becomes readable when there is much to be drained, with its ring.
    fn polled(&self) -> Vec<(usize, BorrowedFd<'_>)>;

    /// What was polled for a ring has hung up: it is not to be polled any more.
    fn hung_up(&mut self, _ring: usize) {}

    /// Stops the flow of records; what is in the rings stays there to be drained. The program goes on by itself.
    fn stop(&mut self);

    /// Another file is about to begin, see [`crate::session::recorder::RingSource::next_file`].
    fn next_file(&mut self, _records: &mut Vec<u8>) {}

    /// Completes the summary of a file after which another one comes.
    fn conclude_file(&mut self, own: Range<usize>, summary: &mut Summary);

    /// Completes the summary with what it did. `own`: the places of its events in the metadata, which know how many samples they have.
    fn conclude(&mut self, own: Range<usize>, summary: &mut Summary);
}
