//! Phases: parts of a run that the program, or somebody else, has marked and named.

use std::collections::HashMap;
use std::ops::Range;

use formats::phase_mark::PhaseMark;

use crate::recording::TaskEvent;

/// A phase, by its name; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PhaseId(pub u32);

/// The phases of all processes over time.
///
/// The latest mark counts, be it of the process or of all. A process that is forked is in its parent's phase; one that executes a
/// program has marked nothing.
#[derive(Clone, Debug, Default)]
pub struct Phases {
    names: Vec<String>,
    /// Marks of all processes, by time.
    all: Vec<Mark>,
    /// What holds of one process from a time on, by that time.
    own: HashMap<u32, Vec<(u64, Option<Mark>)>>,
}

/// Which phase begins, and when, ns.
#[derive(Clone, Copy, Debug)]
struct Mark {
    time: u64,
    phase: PhaseId,
}

/// What marks, forks and execs do to the phase of a process.
enum Change<'a> {
    Mark(&'a PhaseMark),
    Fork { pid: u32, parent: u32 },
    Exec { pid: u32 },
}

impl Phases {
    /// Of marks and of what happened to processes, with its times; neither need be in order.
    pub fn new(marks: &[PhaseMark], events: &[(u64, TaskEvent)]) -> Self {
        let mut phases = Phases::default();
        if marks.is_empty() {
            return phases;
        }
        let of_event = |(time, event): &(u64, TaskEvent)| match *event {
            TaskEvent::Fork { pid, ppid, .. } => Some((*time, Change::Fork { pid, parent: ppid })),
            TaskEvent::Comm { pid, exec: true, .. } => Some((*time, Change::Exec { pid })),
            _ => None,
        };
        let mut changes: Vec<(u64, Change<'_>)> = events.iter().filter_map(of_event).collect();
        changes.extend(marks.iter().map(|mark| (mark.time, Change::Mark(mark))));
        changes.sort_by_key(|(time, _)| *time);
        let mut ids: HashMap<&str, PhaseId> = HashMap::new();
        for (time, change) in &changes {
            phases.apply(*time, change, &mut ids);
        }
        phases
    }

    fn apply<'a>(&mut self, time: u64, change: &Change<'a>, ids: &mut HashMap<&'a str, PhaseId>) {
        match change {
            Change::Mark(mark) => {
                let phase = match mark.name.as_str() {
                    "" => PhaseId::default(),
                    name => *ids.entry(name).or_insert_with(|| {
                        self.names.push(name.to_owned());
                        PhaseId(self.names.len() as u32)
                    }),
                };
                let begun = Mark { time, phase };
                match mark.pid {
                    Some(pid) => self.own.entry(pid).or_default().push((time, Some(begun))),
                    None => self.all.push(begun),
                }
            }
            Change::Fork { pid, parent } => {
                let inherited = self.own.get(parent).and_then(|own| own.last()).and_then(|(_, mark)| *mark);
                if inherited.is_some() || self.own.contains_key(pid) {
                    self.own.entry(*pid).or_default().push((time, inherited));
                }
            }
            Change::Exec { pid } => self.own.get_mut(pid).into_iter().for_each(|own| own.push((time, None))),
        }
    }

    /// Whether there are any.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The phase of a process at a time, ns, and the times around it for which that holds.
    pub fn at(&self, pid: u32, time: u64) -> (PhaseId, Range<u64>) {
        let (of_all, all_times) = at(&self.all, time, |mark| mark.time);
        let own = self.own.get(&pid).map(Vec::as_slice).unwrap_or_default();
        let (of_own, own_times) = at(own, time, |(from, _)| *from);
        let marks = [of_all.copied(), of_own.and_then(|(_, mark)| *mark)];
        let latest = marks.into_iter().flatten().max_by_key(|mark| mark.time);
        let times = all_times.start.max(own_times.start)..all_times.end.min(own_times.end);
        (latest.map_or(PhaseId::default(), |mark| mark.phase), times)
    }

    /// The name of a phase; none has none.
    pub fn name(&self, phase: PhaseId) -> Option<&str> {
        self.names.get((phase.0 as usize).checked_sub(1)?).map(String::as_str)
    }
}

/// The last of what begins at `time` or before, and the times from there to the next.
fn at<T>(sorted: &[T], time: u64, begins: impl Fn(&T) -> u64) -> (Option<&T>, Range<u64>) {
    let next = sorted.partition_point(|item| begins(item) <= time);
    let last = next.checked_sub(1).and_then(|last| sorted.get(last));
    (last, last.map_or(0, &begins)..sorted.get(next).map_or(u64::MAX, &begins))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(time: u64, pid: impl Into<Option<u32>>, name: &str) -> PhaseMark {
        PhaseMark { time, pid: pid.into(), name: name.to_owned() }
    }

    fn name_at(phases: &Phases, pid: u32, time: u64) -> &str {
        let (phase, times) = phases.at(pid, time);
        assert!(times.contains(&time), "{times:?} {time}");
        for other in [times.start, times.end - 1] {
            assert_eq!(phases.at(pid, other).0, phase, "{times:?} {other}");
        }
        phases.name(phase).unwrap_or("-")
    }

    #[test]
    fn the_latest_mark_counts() {
        let marks =
            [mark(50, None, "all"), mark(10, 1, "load"), mark(30, 1, "solve"), mark(70, 1, ""), mark(80, 1, "load")];
        let phases = Phases::new(&marks, &[]);
        let of = |pid| [5, 10, 29, 30, 50, 60, 70, 85].map(|time| name_at(&phases, pid, time));
        assert_eq!(of(1), ["-", "load", "load", "solve", "all", "all", "-", "load"]);
        assert_eq!(of(2), ["-", "-", "-", "-", "all", "all", "all", "all"]);
        assert!(!phases.is_empty() && Phases::new(&[], &[]).is_empty());
        assert_eq!(Phases::default().at(1, 7), (PhaseId(0), 0..u64::MAX));
    }

    #[test]
    fn children_are_in_their_parents_phase_and_programs_in_none() {
        let fork = |pid, ppid| TaskEvent::Fork { pid, ppid, inherits: true };
        let exec = |pid| TaskEvent::Comm { pid, tid: pid, exec: true, name: "x".into() };
        let events = [(40, exec(2)), (20, fork(2, 1)), (60, fork(3, 2)), (70, fork(4, 1)), (90, fork(2, 9))];
        let phases = Phases::new(&[mark(10, 1, "load"), mark(80, 2, "other")], &events);
        let places = [(2, 30), (2, 50), (3, 65), (4, 75), (2, 85), (2, 95)];
        let names = places.map(|(pid, time)| name_at(&phases, pid, time));
        assert_eq!(names, ["load", "-", "-", "load", "other", "-"]);
    }
}
