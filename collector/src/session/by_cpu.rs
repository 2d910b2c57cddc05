//! Whether processes that run already are recorded by events of CPUs, in place of events of their threads.
//!
//! A thread that has events of its own costs more at every switch to and from it (decision 030). Where threads compute for microseconds at a time,
//! as in servers that wait for each request, that is many times what samples and bursts take. Events of CPUs cost the same whoever runs there, and
//! nothing at switches; of what they tell, the recorder keeps what is of the processes (decision 051).

use std::time::Duration;

use crate::machine::Machine;
use crate::plan::Options;
use crate::plan::choice::choose;
use crate::plan::event_spec::{EventSpec, Unit};
use crate::plan::request::{Request, Target};
use crate::session::open::KernelOpener;
use crate::sys::process::{Scheduled, scheduled, threads};

/// What the events of a thread cost at each time that it runs for: when it is put on a CPU, and when it is taken from it.
const SWITCH: Duration = Duration::from_micros(5);
/// The part of the budget that switches may take before events of CPUs are the better way.
const SHARE: f64 = 0.25;

/// Clocks of CPUs in place of `events`, beside bursts of threads that are visited, where that is better and may be.
pub(crate) fn by_cpu(request: &Request, machine: &Machine, events: &[EventSpec]) -> Option<Vec<EventSpec>> {
    let Target::Processes(pids) = &request.target else { return None };
    let are_clocks = |events: &[EventSpec]| events.iter().all(|event| event.unit == Unit::Nanoseconds);
    let is_possible = machine.may_sample_system()
        && request.cpus.is_none()
        && !machine.counts_instructions()
        && !events.is_empty()
        && are_clocks(events);
    if !is_possible || !switches_cost_too_much(&scheduled_in_all(pids), request.tracer.overhead) {
        return None;
    }
    let options = Options { system_wide: true, ..request.options.clone() };
    let by_cpu = choose(machine, &options, &mut KernelOpener).ok()?.events;
    are_clocks(&by_cpu).then_some(by_cpu)
}

/// How all threads of processes have run so far.
fn scheduled_in_all(pids: &[u32]) -> Scheduled {
    let threads = pids.iter().flat_map(|&pid| threads(pid).into_iter().filter_map(move |tid| scheduled(pid, tid)));
    threads.fold(Scheduled::default(), |all, one| Scheduled { ran: all.ran + one.ran, times: all.times + one.times })
}

/// Whether events of threads that have run like this would cost more at switches than their part of a budget, in percent.
fn switches_cost_too_much(so_far: &Scheduled, overhead: f64) -> bool {
    let cost = SWITCH.as_secs_f64() * so_far.times as f64;
    cost > SHARE * overhead / 100.0 * so_far.ran.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_computes_for_long_has_events_of_its_own() {
        let ran = |seconds, times| Scheduled { ran: Duration::from_secs(seconds), times };
        // Once in 4 ms, as the scheduler does with two on one CPU.
        assert!(!switches_cost_too_much(&ran(10, 2500), 1.0));
        assert!(switches_cost_too_much(&ran(10, 2500), 0.1));
        // For 60 us at a time.
        assert!(switches_cost_too_much(&ran(1, 16_000), 5.0));
        assert!(!switches_cost_too_much(&ran(1, 16_000), 50.0));
        assert!(!switches_cost_too_much(&Scheduled::default(), 1.0), "nothing is known");
    }
}
