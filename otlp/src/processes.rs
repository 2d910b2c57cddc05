//! Processes and threads: which numbers they have in the recording.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use crate::attributes::Whose;

/// What tells processes apart: those of two machines may have the same number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    pid: Option<u32>,
    host: Option<Rc<str>>,
    container: Option<Rc<str>>,
    /// Of one without a number.
    name: Option<Rc<str>>,
}

/// Numbers from here on are given to those whose own is not known, or is that of another; Linux has none of 2^22 or more.
const FIRST_GIVEN: u32 = 1 << 30;

/// Process, number and name of a thread.
type ThreadKey = (u32, Option<u32>, Option<Rc<str>>);

/// The processes and threads so far.
#[derive(Default)]
pub(crate) struct Processes {
    pids: HashMap<Key, u32>,
    /// Of processes without a number: many can have one long name.
    names: HashSet<Rc<str>>,
    taken: HashSet<u32>,
    /// Threads have a number or, where that is not known, a name.
    tids: HashMap<ThreadKey, u32>,
    given: u32,
    /// Processes whose number is that of another machine's or container's.
    pub(crate) renumbered: u64,
    /// Processes without a number.
    pub(crate) unnumbered: u64,
}

/// What is new of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Thread {
    pub pid: u32,
    pub tid: u32,
    pub is_new_process: bool,
    pub is_new: bool,
}

impl Processes {
    /// The numbers of a thread.
    pub(crate) fn of(&mut self, whose: &Whose) -> Thread {
        let key = Key {
            pid: whose.pid.filter(|pid| *pid < FIRST_GIVEN),
            host: whose.host.clone(),
            container: whose.container.clone(),
            name: whose.process().filter(|_| whose.pid.is_none()).map(|name| self.name(name)),
        };
        let (pid, is_new_process) = match self.pids.get(&key) {
            Some(&pid) => (pid, false),
            None => (self.new_process(key), true),
        };
        let number = whose.tid.or(if whose.thread.is_none() { Some(pid) } else { None });
        let name = if number.is_none() { whose.thread.clone() } else { None };
        let given = &mut self.given;
        match self.tids.entry((pid, number, name)) {
            Entry::Occupied(known) => Thread { pid, tid: *known.get(), is_new_process, is_new: false },
            Entry::Vacant(new) => {
                let tid = *new.insert(number.unwrap_or_else(|| next(given)));
                Thread { pid, tid, is_new_process, is_new: true }
            }
        }
    }

    /// A name, kept once.
    fn name(&mut self, name: &str) -> Rc<str> {
        if let Some(known) = self.names.get(name) {
            return known.clone();
        }
        let name = Rc::from(name);
        self.names.insert(Rc::clone(&name));
        name
    }

    fn new_process(&mut self, key: Key) -> u32 {
        let own = key.pid.filter(|pid| !self.taken.contains(pid));
        match (own, key.pid) {
            (None, Some(_)) => self.renumbered += 1,
            (None, None) => self.unnumbered += 1,
            _ => {}
        }
        let pid = own.unwrap_or_else(|| next(&mut self.given));
        self.taken.insert(pid);
        self.pids.insert(key, pid);
        pid
    }
}

/// The next number that is given. There are more than samples that a file can hold.
fn next(given: &mut u32) -> u32 {
    *given = given.saturating_add(1);
    FIRST_GIVEN.saturating_add(*given)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_of_two_machines_are_two() {
        let mut processes = Processes::default();
        let on = |host: &str| Whose { pid: Some(7), host: Some(host.into()), ..Whose::default() };
        assert_eq!(processes.of(&on("a")), Thread { pid: 7, tid: 7, is_new_process: true, is_new: true });
        assert_eq!(processes.of(&on("a")), Thread { pid: 7, tid: 7, ..Thread::default() });
        let other = processes.of(&on("b"));
        assert!(other.pid >= FIRST_GIVEN && other.is_new_process, "{other:?}");
        let thread = processes.of(&Whose { tid: Some(8), ..on("a") });
        assert_eq!(thread, Thread { pid: 7, tid: 8, is_new_process: false, is_new: true });
        assert_eq!((processes.renumbered, processes.unnumbered), (1, 0));
    }
}
