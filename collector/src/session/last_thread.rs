//! When a process ends: with its last thread, which need not be the first one. Records say only that a thread has ended; whether there are
//! others, the process tells.

use std::collections::HashSet;
use std::fs;

use crate::sys::process::proc_path;

/// Processes whose first thread has ended.
#[derive(Debug, Default)]
pub(crate) struct LastThreads {
    without_first: HashSet<u32>,
}

impl LastThreads {
    /// Whether a process has ended, one of whose threads has.
    pub(crate) fn ends(&mut self, pid: u32, tid: u32) -> bool {
        if pid != tid && !self.without_first.contains(&pid) {
            return false;
        }
        if has_thread_besides(pid, tid) {
            self.without_first.insert(pid);
            false
        } else {
            self.without_first.remove(&pid);
            true
        }
    }
}

/// The first thread is there as long as there are others.
fn has_thread_besides(pid: u32, ended: u32) -> bool {
    let threads = fs::read_dir(proc_path(pid).join("task")).into_iter().flatten().flatten();
    let ids = threads.filter_map(|thread| thread.file_name().to_str()?.parse::<u32>().ok());
    ids.into_iter().any(|tid| tid != pid && tid != ended)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_last_thread_ends_a_process() {
        // This process has the thread of the test besides its first one.
        let own = std::process::id();
        let mut threads = LastThreads::default();
        assert!(!threads.ends(own, own + 1), "the first is there");
        assert!(!threads.ends(own, own), "this one is there");
        let this = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        assert_ne!(this, own);
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        assert!(threads.ends(child.id(), child.id()), "it has no other");
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(threads.ends(u32::MAX - 1, u32::MAX - 1), "it is gone");
        threads.without_first.insert(u32::MAX - 1);
        assert!(threads.ends(u32::MAX - 1, 7) && threads.without_first.len() == 1);
    }
}
