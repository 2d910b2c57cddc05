//! How far the analysis is.

/// How far the analysis is, for a progress bar.
pub type Progress<'a> = &'a (dyn Fn(Step) + Sync);

/// A step of the analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Bytes of the recording read, of all bytes that will be (it is read twice; once more, all over again, for calling contexts).
    Reading {
        /// How many are done so far.
        done: u64,
        /// How many there are in all.
        of: u64,
    },
    /// Modules counted, of all.
    Counting {
        /// How many are done so far.
        done: usize,
        /// How many there are in all.
        of: usize,
    },
}
