//! Processes over time: who ran which image when, and what was mapped where.
//!
//! A process passes through *epochs*. Within an epoch no address changes its meaning, so a sample is placed by its
//! process and epoch alone and samples can be added up before any address is looked up:
//!
//! ```text
//! pid 7  fork        exec            dlopen over a dlclosed library
//!        | epoch 0   | epoch 1       | epoch 2 ...
//!        +-----------+---------------+--------> time
//! ```
//!
//! New mappings that overlap nothing do not start an epoch: they hold for all of it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;
use std::sync::Arc;

use formats::made_code::KERNEL_PID;

use crate::address::Avma;
use crate::recording::kernel_epochs::KernelEpochs;
use crate::recording::never_empty::NeverEmpty;
use crate::recording::{AddressSpace, Mapping};

/// Something that happened to a process.
#[derive(Clone, Debug)]
pub enum TaskEvent {
    /// Executable memory was mapped.
    Map {
        /// The process that it happens to.
        pid: u32,
        /// Which part of which module is mapped, and where.
        mapping: Mapping,
    },
    /// The recording has code of memory without a file.
    MadeCode {
        /// The process that has it.
        pid: u32,
        /// Where the code is from now on; `None`: it is not known any more.
        changes: Vec<(Range<Avma>, Option<Mapping>)>,
    },
    /// A thread got a new name; with `exec` the process got a new image.
    Comm {
        /// Id of the process.
        pid: u32,
        /// Id of the thread.
        tid: u32,
        /// An exec gave the name: all mappings from before are gone.
        exec: bool,
        /// The new name; bytes that are not UTF-8 are replaced.
        name: String,
    },
    /// `ppid` forked `pid` (another process, not a thread).
    Fork {
        /// Id of the process that begins.
        pid: u32,
        /// Id of the process that forked.
        ppid: u32,
        /// It has the parent's mappings. Of a process that was there before the recording its own mappings are recorded.
        inherits: bool,
    },
    /// A process is in this control group.
    Cgroup {
        /// The process that it happens to.
        pid: u32,
        /// The path of the group.
        path: Arc<str>,
    },
    /// The process ended.
    Exit {
        /// The process that it happens to.
        pid: u32,
    },
}

/// Where on a timeline a sample belongs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EpochId {
    /// Which of the processes that had this pid one after the other.
    pub incarnation: u32,
    /// Which epoch of that process.
    pub epoch: u32,
    /// Which epoch of the kernel's code; 0 of what does not see the kernel.
    pub kernel: u32,
}

/// One process from fork (or first sight) to exit.
#[derive(Clone, Debug)]
struct Process {
    start: u64,
    exited: bool,
    initial: AddressSpace,
    current: AddressSpace,
    epochs: NeverEmpty<Epoch>,
}

#[derive(Clone, Debug)]
struct Epoch {
    start: u64,
    name: Option<String>,
    cgroup: Option<Arc<str>>,
    changes: Vec<Change>,
}

#[derive(Clone, Debug)]
enum Change {
    Clear,
    Map(Mapping),
    MadeCode(Vec<(Range<Avma>, Option<Mapping>)>),
}

/// All processes of a recording and the kernel.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    processes: HashMap<u32, NeverEmpty<Process>>,
    thread_names: HashMap<(u32, u32), String>,
    kernel: KernelEpochs,
}

impl Timeline {
    /// Builds the timeline from events with their times; they need not be sorted, but those of equal time are in order.
    pub fn new(mut events: Vec<(u64, TaskEvent)>) -> Self {
        events.sort_by_key(|(time, _)| *time);
        let mut timeline = Timeline::default();
        for (time, event) in events {
            timeline.apply(time, event);
        }
        for process in timeline.processes.values_mut().flat_map(NeverEmpty::iter_mut) {
            process.current = AddressSpace::default();
        }
        timeline
    }

    /// The kernel has other code at times.
    pub(crate) fn with_kernel(self, kernel: KernelEpochs) -> Self {
        Self { kernel, ..self }
    }

    /// The kernel's code over time.
    pub(crate) fn kernel(&self) -> &KernelEpochs {
        &self.kernel
    }

    /// Maps code of the kernel, as if at the end.
    pub(crate) fn map_kernel(&mut self, mappings: impl IntoIterator<Item = Mapping>) {
        for mapping in mappings {
            self.apply(u64::MAX, TaskEvent::Map { pid: KERNEL_PID, mapping });
        }
    }

    fn apply(&mut self, time: u64, event: TaskEvent) {
        match event {
            TaskEvent::Map { pid, mapping } => self.live(pid, time).change(time, Change::Map(mapping)),
            TaskEvent::MadeCode { pid, changes } => self.live(pid, time).change(time, Change::MadeCode(changes)),
            TaskEvent::Comm { pid, tid, exec, name } => {
                let process = self.live(pid, time);
                if exec {
                    process.change(time, Change::Clear);
                }
                if pid == tid {
                    process.epochs.last_mut().name = Some(name.clone());
                }
                self.thread_names.insert((pid, tid), name);
            }
            TaskEvent::Fork { pid, ppid, inherits } => self.fork(pid, ppid, inherits, time),
            TaskEvent::Cgroup { pid, path } => self.live(pid, time).enter(time, path),
            TaskEvent::Exit { pid } => self.live(pid, time).exited = true,
        }
    }

    fn fork(&mut self, pid: u32, ppid: u32, inherits: bool, time: u64) {
        if let Some(last) = self.processes.get(&pid).map(NeverEmpty::last)
            && !last.exited
            && last.start == time
        {
            return; // A synthesized FORK that comes after the same process's COMM and MMAP.
        }
        let child = match self.processes.get(&ppid).map(NeverEmpty::last) {
            Some(parent) => {
                let Epoch { name, cgroup, .. } = parent.epochs.last().clone();
                let space = if inherits { parent.current.clone() } else { AddressSpace::default() };
                let mut child = Process::new(time, space, name);
                child.epochs.last_mut().cgroup = cgroup;
                child
            }
            None => Process::new(time, AddressSpace::default(), None),
        };
        match self.processes.entry(pid) {
            Entry::Occupied(mut incarnations) => incarnations.get_mut().push(child),
            Entry::Vacant(entry) => drop(entry.insert(NeverEmpty::of(child))),
        }
    }

    /// The process that has this pid now; one that was never announced starts here.
    fn live(&mut self, pid: u32, time: u64) -> &mut Process {
        let first = || NeverEmpty::of(Process::new(time, AddressSpace::default(), None));
        self.processes.entry(pid).or_insert_with(first).last_mut()
    }

    /// The place of a sample of `pid` at `time` (ns), and the times around it that have the same place.
    /// A process that was never announced has the place 0, 0 for ever.
    pub fn place(&self, pid: u32, time: u64) -> (EpochId, Range<u64>) {
        let Some(incarnations) = self.processes.get(&pid) else { return (EpochId::default(), 0..u64::MAX) };
        let (incarnation, process) = incarnations.last_where(|process| process.start <= time);
        let epochs = &process.epochs;
        let (epoch, Epoch { start, .. }) = epochs.last_where(|epoch| epoch.start <= time);
        let next_process = incarnations.get(incarnation + 1).map_or(u64::MAX, |next| next.start);
        let next_epoch = epochs.get(epoch + 1).map_or(u64::MAX, |next| next.start);
        let from = if epoch > 0 || incarnation > 0 { *start } else { 0 };
        let place = EpochId { incarnation: incarnation as u32, epoch: epoch as u32, kernel: 0 };
        (place, from..next_process.min(next_epoch))
    }

    /// The same, with the epoch of the kernel if the sample `sees_kernel`, whose code is another at times.
    pub fn place_of_sample(&self, pid: u32, time: u64, sees_kernel: bool) -> (EpochId, Range<u64>) {
        let (place, times) = self.place(pid, time);
        if !sees_kernel {
            return (place, times);
        }
        let (kernel, same) = self.kernel.at(time);
        (EpochId { kernel, ..place }, times.start.max(same.start)..times.end.min(same.end))
    }

    /// Calls `visit` with the address space of every epoch of this incarnation, in order.
    pub fn for_each_epoch(&self, pid: u32, incarnation: u32, mut visit: impl FnMut(u32, &AddressSpace)) {
        let Some(process) = self.processes.get(&pid).and_then(|all| all.get(incarnation as usize)) else {
            visit(0, &AddressSpace::default());
            return;
        };
        let mut space = process.initial.clone();
        for (index, epoch) in process.epochs.iter().enumerate() {
            for change in &epoch.changes {
                change.apply_to(&mut space);
            }
            visit(index as u32, &space);
        }
    }

    /// The process's name in that epoch: the last one its main thread had in it or before.
    pub fn process_name(&self, pid: u32, place: EpochId) -> Option<&str> {
        let process = self.processes.get(&pid)?.get(place.incarnation as usize)?;
        (0..=place.epoch as usize).rev().find_map(|index| process.epochs.get(index)?.name.as_deref())
    }

    /// The control group of a process in that epoch, if it is known.
    pub fn cgroup(&self, pid: u32, place: EpochId) -> Option<&str> {
        self.processes.get(&pid)?.get(place.incarnation as usize)?.epochs.get(place.epoch as usize)?.cgroup.as_deref()
    }

    /// The last name of a thread.
    pub fn thread_name(&self, pid: u32, tid: u32) -> Option<&str> {
        self.thread_names.get(&(pid, tid)).map(String::as_str)
    }
}

impl Process {
    fn new(start: u64, space: AddressSpace, name: Option<String>) -> Self {
        Process {
            start,
            exited: false,
            initial: space.clone(),
            current: space,
            epochs: NeverEmpty::of(Epoch { start, name, cgroup: None, changes: Vec::new() }),
        }
    }

    /// It is in a control group from now on, which starts a new epoch if it was in another one.
    fn enter(&mut self, time: u64, path: Arc<str>) {
        let last = self.epochs.last_mut();
        match &last.cgroup {
            None => last.cgroup = Some(path),
            Some(known) if *known == path => {}
            Some(_) => {
                let name = last.name.clone();
                self.epochs.push(Epoch { start: time, name, cgroup: Some(path), changes: Vec::new() });
            }
        }
    }

    /// Applies a change; one that gives a mapped address another meaning starts a new epoch.
    fn change(&mut self, time: u64, change: Change) {
        let starts_epoch = change.apply_to(&mut self.current);
        let last = self.epochs.last_mut();
        if starts_epoch {
            let (name, cgroup) = (last.name.clone(), last.cgroup.clone());
            self.epochs.push(Epoch { start: time, name, cgroup, changes: vec![change] });
        } else {
            last.changes.push(change);
        }
    }
}

impl Change {
    fn apply_to(&self, space: &mut AddressSpace) -> bool {
        match self {
            Change::Clear => {
                let had_any = space.iter().next().is_some();
                *space = AddressSpace::default();
                had_any
            }
            Change::Map(mapping) => space.map(*mapping),
            Change::MadeCode(changes) => {
                changes.iter().fold(false, |changed, (range, code)| space.set_made_code(range, *code) || changed)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::ModuleId;

    #[test]
    fn a_control_group_holds_from_when_it_is_entered_on_and_for_children() {
        let enter = |pid: u32, path: &str| TaskEvent::Cgroup { pid, path: path.into() };
        let timeline = Timeline::new(vec![
            (10, enter(7, "/a")),
            (20, enter(7, "/a")),
            (30, enter(7, "/b")),
            (40, TaskEvent::Fork { pid: 8, ppid: 7, inherits: true }),
            (50, enter(7, "/c")),
        ]);
        let at = |pid: u32, time: u64| timeline.cgroup(pid, timeline.place(pid, time).0);
        assert_eq!([5, 29, 30, 49, 50].map(|time| at(7, time).unwrap()), ["/a", "/a", "/b", "/b", "/c"]);
        assert_eq!((at(8, 60), at(9, 60)), (Some("/b"), None));
    }

    fn map(pid: u32, start: u64, module: u32) -> TaskEvent {
        TaskEvent::Map { pid, mapping: Mapping::new(Avma(start), 0x1000, 0, ModuleId(module)).unwrap() }
    }

    fn comm(pid: u32, exec: bool, name: &str) -> TaskEvent {
        TaskEvent::Comm { pid, tid: pid, exec, name: name.into() }
    }

    /// The module at an address for a sample of that pid and time.
    fn module_at(timeline: &Timeline, pid: u32, time: u64, avma: u64) -> Option<u32> {
        let (place, _) = timeline.place(pid, time);
        let mut found = None;
        timeline.for_each_epoch(pid, place.incarnation, |epoch, space| {
            if epoch == place.epoch {
                found = space.find(Avma(avma)).map(|mapping| mapping.module.0);
            }
        });
        found
    }

    #[test]
    fn exec_starts_an_epoch_with_nothing_mapped() {
        let timeline = Timeline::new(vec![
            (10, comm(1, true, "sh")),
            (11, map(1, 0x1000, 0)),
            (20, comm(1, true, "gzip")),
            (21, map(1, 0x1000, 1)),
        ]);
        assert_eq!(module_at(&timeline, 1, 15, 0x1000), Some(0));
        assert_eq!(module_at(&timeline, 1, 20, 0x1000), Some(1));
        assert_eq!(timeline.process_name(1, timeline.place(1, 15).0), Some("sh"));
        assert_eq!(timeline.process_name(1, timeline.place(1, 25).0), Some("gzip"));
        assert_eq!(timeline.place(1, 15).1, 0..20);
        assert_eq!(timeline.place(1, 25).1, 20..u64::MAX);
    }

    #[test]
    fn a_mapping_that_overlaps_nothing_holds_for_the_whole_epoch() {
        let timeline = Timeline::new(vec![(10, map(1, 0x1000, 0)), (30, map(1, 0x2000, 1))]);
        assert_eq!(module_at(&timeline, 1, 11, 0x2000), Some(1));
        assert_eq!(timeline.place(1, 5), timeline.place(1, 50));
    }

    #[test]
    fn a_library_over_an_unloaded_one_starts_an_epoch() {
        let timeline = Timeline::new(vec![(10, map(1, 0x1000, 0)), (30, map(1, 0x1000, 1))]);
        assert_eq!(module_at(&timeline, 1, 29, 0x1000), Some(0));
        assert_eq!(module_at(&timeline, 1, 30, 0x1000), Some(1));
    }

    #[test]
    fn a_fork_inherits_what_was_mapped_then() {
        let timeline = Timeline::new(vec![
            (10, map(1, 0x1000, 0)),
            (20, TaskEvent::Fork { pid: 2, ppid: 1, inherits: true }),
            (30, comm(1, true, "other")),
            (31, map(1, 0x1000, 1)),
        ]);
        assert_eq!(module_at(&timeline, 2, 40, 0x1000), Some(0));
        assert_eq!(module_at(&timeline, 1, 40, 0x1000), Some(1));
    }

    #[test]
    fn a_fork_made_up_for_a_process_that_was_there_inherits_nothing() {
        let timeline =
            Timeline::new(vec![(0, map(1, 0x1000, 0)), (0, TaskEvent::Fork { pid: 2, ppid: 1, inherits: false })]);
        assert_eq!(module_at(&timeline, 2, 40, 0x1000), None);
    }

    #[test]
    fn a_reused_pid_is_another_process() {
        let timeline = Timeline::new(vec![
            (10, map(7, 0x1000, 0)),
            (20, TaskEvent::Exit { pid: 7 }),
            (30, TaskEvent::Fork { pid: 7, ppid: 1, inherits: true }),
            (31, map(7, 0x1000, 1)),
        ]);
        assert_eq!(module_at(&timeline, 7, 15, 0x1000), Some(0));
        assert_eq!(module_at(&timeline, 7, 35, 0x1000), Some(1));
        assert_eq!(timeline.place(7, 35).0.incarnation, 1);
    }

    #[test]
    fn a_synthesized_fork_after_the_mappings_does_not_lose_them() {
        let timeline =
            Timeline::new(vec![(0, map(7, 0x1000, 0)), (0, TaskEvent::Fork { pid: 7, ppid: 1, inherits: true })]);
        assert_eq!(module_at(&timeline, 7, 9, 0x1000), Some(0));
    }

    #[test]
    fn a_fork_bomb_after_many_mappings_stays_cheap() {
        let mut events: Vec<_> = (0..20_000).map(|i| (i, map(1, i * 0x1000, 0))).collect();
        events.extend(
            (2..20_000).map(|pid| (30_000 + u64::from(pid), TaskEvent::Fork { pid, ppid: pid - 1, inherits: true })),
        );
        let timeline = Timeline::new(events);
        assert_eq!(module_at(&timeline, 19_999, u64::MAX, 0x5000), Some(0));
    }
}
