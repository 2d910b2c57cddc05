//! Running processes by name.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process;

use crate::sys::process::{all_processes, first_argument, is_alive, proc_path, thread_name};

/// What the kernel keeps of a name (`TASK_COMM_LEN`, without the null).
const KEPT: usize = 15;

/// The processes of that name, by number, but for this one: the name that they have (`comm`), or the file name of their executable or of
/// their first argument. The kernel keeps 15 bytes of the first of these.
pub fn processes_named(name: &str) -> Vec<u32> {
    let mut found = all_processes();
    found.retain(|&pid| pid != process::id() && is_alive(pid) && is_named(pid, name.as_bytes()));
    found
}

fn is_named(pid: u32, name: &[u8]) -> bool {
    if name.len() <= KEPT && thread_name(pid, pid).is_some_and(|comm| comm == name) {
        return true;
    }
    let is_file = |path: &Path| path.file_name().is_some_and(|file| file.as_bytes() == name);
    fs::read_link(proc_path(pid).join("exe")).is_ok_and(|executable| is_file(&executable))
        || first_argument(pid).is_some_and(|first| is_file(&first))
}
