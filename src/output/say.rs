//! What is said beside the output: on standard error.

use std::io::{self, Write};

use crate::output::printable;

/// [`say`] of a formatted text.
macro_rules! say {
    ($($format:tt)+) => { $crate::output::say(format!($($format)+)) };
}

/// Says a sentence, or several lines of them, on standard error. Control characters are escaped: sentences have names from recordings and
/// files in them. Where nothing can be said, as on a terminal that is lost, the work goes on all the same.
pub fn say(text: impl AsRef<str>) {
    let mut errors = io::stderr().lock();
    for line in text.as_ref().lines() {
        // Standard error has no buffer: each piece would be a system call.
        let _ = errors.write_all(format!("hbbp: {}\n", printable(line)).as_bytes());
    }
}
