//! Samples that the kernel makes: open events, and their rings.

use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

use formats::metadata::Metadata;
use perf_event_open_sys::bindings as sys;
use perfdata::{EventAttr, EventDescription};

use crate::errno::Errno;
use crate::machine::Machine;
use crate::plan::choice::Choice;
use crate::plan::event_spec::EventSpec;
use crate::plan::request::Request;
use crate::session::Summary;
use crate::session::metadata::{count_event, event_metadata};
use crate::session::open::{Opened, Totals};
use crate::session::producer::Producer;

/// Below this, the few moments between the readings of two times would look like a share.
const ENOUGH_TIME_NS: u64 = 100_000_000;

/// The kernel's events of a session.
#[derive(Debug)]
pub(crate) struct KernelEvents {
    specs: Vec<EventSpec>,
    attrs: Vec<EventAttr>,
    events: Vec<EventDescription>,
    opened: Opened,
    /// They are events of threads, not of CPUs.
    of_threads: bool,
    /// They count what others do than those who are recorded, too.
    counts_others: bool,
    /// For each event, whether it is to count wherever its threads run, on a counter that it may have to share.
    may_be_multiplexed: Vec<bool>,
    /// For each ring, whether an event is left that can be polled for it; the index of the open event.
    poll_event: Vec<Option<usize>>,
    /// What they had counted when the file before this one ended, and records of the rings that were lost, as far as it was known: by the
    /// records, and by both.
    before: Vec<Totals>,
    lost_by_records: u64,
    lost: u64,
}

impl KernelEvents {
    /// Of the events of `choice`, which were opened with `attrs`.
    pub(crate) fn new(
        request: &Request,
        machine: &Machine,
        choice: &Choice,
        attrs: Vec<EventAttr>,
        opened: Opened,
    ) -> Self {
        let specs = &choice.events;
        let all_cpus = request.cpus.is_none() && specs.iter().all(|spec| spec.cpus.is_none());
        let poll_event =
            (0..opened.rings.len()).map(|ring| opened.events.iter().position(|event| event.ring == ring)).collect();
        Self {
            events: opened.descriptions(specs, &attrs),
            of_threads: !request.target.is_by_cpu() && !choice.by_cpu,
            counts_others: choice.by_cpu,
            may_be_multiplexed: specs.iter().map(|spec| all_cpus && shares_counters(spec.code.kind, machine)).collect(),
            specs: specs.to_vec(),
            attrs,
            opened,
            poll_event,
            before: vec![Totals::default(); specs.len()],
            lost_by_records: 0,
            lost: 0,
        }
    }

    /// The first event, which tells of mappings, names, forks and exits, too.
    pub(crate) fn first_attr(&self) -> Option<&EventAttr> {
        self.attrs.first()
    }
}

impl Producer for KernelEvents {
    fn events(&self) -> &[EventDescription] {
        &self.events
    }

    fn introduce(&self, metadata: &mut Metadata) {
        metadata.events.extend(self.specs.iter().map(event_metadata));
    }

    fn enable(&mut self) -> Result<(), Errno> {
        self.opened.enable()
    }

    fn rings(&self) -> usize {
        self.opened.rings.len()
    }

    fn drain(&mut self, ring: usize, records: &mut Vec<u8>) {
        if let Some(ring) = self.opened.rings.get_mut(ring) {
            let _ = ring.drain(records);
        }
    }

    fn polled(&self) -> Vec<(usize, BorrowedFd<'_>)> {
        let fd = |event: usize| self.opened.events[event].fd.as_fd();
        self.poll_event.iter().enumerate().filter_map(|(ring, event)| Some((ring, fd((*event)?)))).collect()
    }

    /// An event whose threads have ended says so for ever; others of the same ring still tell of records.
    fn hung_up(&mut self, ring: usize) {
        let Some(current) = self.poll_event[ring] else { return };
        let later = self.opened.events.iter().enumerate().skip(current + 1);
        self.poll_event[ring] = later.filter(|(_, event)| event.ring == ring).map(|(index, _)| index).next();
    }

    fn stop(&mut self) {
        self.opened.disable();
    }

    fn conclude_file(&mut self, own: Range<usize>, summary: &mut Summary) {
        self.conclude(own, summary);
    }

    fn conclude(&mut self, own: Range<usize>, summary: &mut Summary) {
        let all = self.opened.totals(&self.attrs, self.of_threads);
        let totals: Vec<Totals> = all.iter().zip(&self.before).map(|(all, before)| all.since(before)).collect();
        if !self.counts_others {
            for (event, totals) in summary.metadata.events[own].iter_mut().zip(&totals) {
                count_event(event, totals);
            }
        }
        let shared = self.specs.iter().zip(&totals).zip(&self.may_be_multiplexed);
        let multiplexed =
            shared.filter(|(_, may_be)| **may_be).filter_map(|((spec, totals), _)| multiplexed(&spec.name(), totals));
        summary.metadata.degradations.extend(multiplexed);
        // What is lost in a ring is told in the next record that finds room, if one does; the events' own counts miss nothing.
        self.lost_by_records += summary.counts.lost;
        let lost = self.lost_by_records.max(all.iter().map(|totals| totals.lost).sum());
        summary.counts.lost = lost.saturating_sub(self.lost);
        (self.before, self.lost) = (all, lost.max(self.lost));
    }
}

/// Whether events of a type share counters. Only a PMU's are shared: software events, tracepoints and breakpoints always count.
fn shares_counters(kind: u32, machine: &Machine) -> bool {
    match kind {
        sys::PERF_TYPE_HARDWARE | sys::PERF_TYPE_HW_CACHE | sys::PERF_TYPE_RAW => true,
        kind => {
            machine.core_pmus().chain(machine.pmu("ibs_op")).chain(machine.pmu("ibs_fetch")).any(|pmu| pmu.kind == kind)
        }
    }
}

/// A sentence if an event counted less than it was to.
fn multiplexed(name: &str, totals: &Totals) -> Option<String> {
    let Totals { enabled_ns, running_ns, .. } = *totals;
    let share = running_ns as f64 / enabled_ns.max(1) as f64;
    (enabled_ns >= ENOUGH_TIME_NS && share < 0.99).then(|| {
        format!("{name}: it counted {:.1} % of the time, other events had the counters for the rest", share * 100.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::pmu::Pmu;

    /// What is said of an event of type `kind` that counted for `running_ms` of `enabled_ms`.
    fn degradation(kind: u32, enabled_ms: u64, running_ms: u64) -> Option<String> {
        let pmu = |name: &str, kind| Pmu { name: name.into(), kind, ..Pmu::default() };
        let machine = Machine { pmus: vec![pmu("cpu_atom", 10), pmu("uprobe", 9)], ..Machine::default() };
        let totals =
            Totals { enabled_ns: enabled_ms * 1_000_000, running_ns: running_ms * 1_000_000, ..Totals::default() };
        multiplexed("event", &totals).filter(|_| shares_counters(kind, &machine))
    }

    #[test]
    fn sharing_of_counters_is_said_of_events_that_have_counters() {
        for kind in [sys::PERF_TYPE_HARDWARE, sys::PERF_TYPE_HW_CACHE, sys::PERF_TYPE_RAW, 10] {
            let said = degradation(kind, 1000, 500).unwrap();
            assert_eq!(said, "event: it counted 50.0 % of the time, other events had the counters for the rest");
            assert_eq!(degradation(kind, 1000, 995), None, "{kind}");
        }
        // The ninth is a probe in a program.
        for kind in [sys::PERF_TYPE_SOFTWARE, sys::PERF_TYPE_TRACEPOINT, sys::PERF_TYPE_BREAKPOINT, 9] {
            assert_eq!(degradation(kind, 1000, 500), None, "{kind}");
        }
    }

    #[test]
    fn a_share_of_a_short_time_says_nothing() {
        assert_eq!(degradation(sys::PERF_TYPE_RAW, 99, 50), None);
        assert!(degradation(sys::PERF_TYPE_RAW, 100, 50).is_some());
    }
}
