//! Opening the events of a session on what is to be recorded.

use std::ffi::OsString;

use crate::error::RecordError;
use crate::machine::Machine;
use crate::machine::cpu_list::CpuList;
use crate::plan::choice::Choice;
use crate::plan::event_spec::{SessionAttrs, Unit};
use crate::plan::request::{Request, Target};
use crate::session::command::PreparedCommand;
use crate::session::kernel_events::KernelEvents;
use crate::session::limits::check_address_space;
use crate::session::open::{OpenError, Opened, Threads, attrs, open};
use crate::sys::SignalFd;
use crate::sys::process::threads;

/// Data bytes of a ring unless the request says otherwise: what `perf record` takes, and what an unprivileged user may have.
const RING_BYTES: usize = 512 << 10;
/// How often to look again whether threads started while events were being opened.
const ATTEMPTS: usize = 5;

/// Prepares the command, with this variable in its environment, and opens the events on what is to be recorded; `None` if there are none.
pub(crate) fn open_all(
    request: &Request,
    machine: &Machine,
    choice: &mut Choice,
    signals: &SignalFd,
    added: Option<(&str, OsString)>,
) -> Result<(Option<PreparedCommand>, Option<KernelEvents>), RecordError> {
    let command = match request.command.as_slice() {
        [] => None,
        command => Some(PreparedCommand::start_waiting(command, added, signals, request.stdout)?),
    };
    if choice.events.is_empty() {
        return Ok((command, None));
    }
    let page_size = rustix::param::page_size();
    let usual = request.ring_pages.unwrap_or((RING_BYTES / page_size).max(1));
    let cpus = cpus(request, machine);
    let mut pages = usual;
    while let Err(error) = check_address_space((cpus.len() * pages.saturating_add(1).saturating_mul(page_size)) as u64)
    {
        if request.ring_pages.is_some() || pages < 2 {
            return Err(error.into());
        }
        pages /= 2;
    }
    if pages < usual {
        choice.degradations.push(format!(
            "rings are {} KiB instead of {}: the address space is limited (ulimit -v), samples may be lost",
            pages * page_size / 1024,
            usual * page_size / 1024
        ));
    }
    let by_cpu = choice.by_cpu || request.target.is_by_cpu();
    let session = SessionAttrs {
        with_cpu: by_cpu || request.cpus.is_some() || machine.core_pmus().count() > 1,
        inherit: !request.no_inherit && !by_cpu,
        enable_on_exec: request.target == Target::Command,
        lost_counts: machine.probes.lost_counts.works(),
        exclude_idle: by_cpu && choice.events.iter().all(|event| event.unit == Unit::Nanoseconds),
        // A quarter: three more have room for what comes until the reader is there.
        watermark: u32::try_from(pages.saturating_mul(page_size) / 4).unwrap_or(u32::MAX),
    };
    let attrs = attrs(&choice.events, &session, &machine.online);
    let open = |threads: &Threads| open(&choice.events, &attrs, threads, &cpus, pages, request.ring_pages.is_none());
    let opened = match &request.target {
        Target::System => open(&Threads::All)?,
        Target::Processes(_) if choice.by_cpu => open(&Threads::All)?,
        Target::Group(group) => open(&Threads::Group(group.clone()))?,
        Target::Command => open(&Threads::Of(command.iter().map(PreparedCommand::pid).collect()))?,
        Target::Threads(threads) => open(&Threads::Of(threads.clone()))?,
        Target::Processes(pids) => {
            let (opened, unsure) = attach(pids, &open)?;
            if unsure > 0 {
                choice.degradations.push(format!(
                    "{unsure} threads started while events were being opened: they may be missing, or counted twice"
                ));
            }
            opened
        }
    };
    if opened.pages < pages {
        let (asked, got) = (pages * page_size / 1024, opened.pages * page_size / 1024);
        choice.degradations.push(format!(
            "rings are {got} KiB instead of {asked}: kernel.perf_event_mlock_kb allows no more, samples may be lost"
        ));
    }
    missing_cpus(request, &machine.online, choice);
    Ok((command, Some(KernelEvents::new(request, machine, choice, attrs, opened))))
}

/// The CPUs to record on.
pub(crate) fn cpus(request: &Request, machine: &Machine) -> CpuList {
    request.cpus.as_ref().map_or_else(|| machine.online.clone(), |cpus| cpus.intersection(&machine.online))
}

/// How many threads, or CPUs as a whole, events are opened on; `by_cpu`: they are of CPUs, whoever is recorded.
pub(crate) fn tasks(target: &Target, by_cpu: bool) -> usize {
    match target {
        _ if by_cpu => 1,
        Target::System | Target::Group(_) | Target::Command => 1,
        Target::Threads(threads) => threads.len(),
        Target::Processes(pids) => pids.iter().map(|&pid| threads(pid).len()).sum(),
    }
}

/// Opens events on all threads of `pids`, again if threads started meanwhile: it cannot be known whether those inherited the events.
/// Returns how many of them remain after some attempts.
fn attach(pids: &[u32], open: &dyn Fn(&Threads) -> Result<Opened, OpenError>) -> Result<(Opened, usize), OpenError> {
    let all = || -> Vec<u32> { pids.iter().flat_map(|&pid| threads(pid)).collect() };
    let mut before = all();
    let mut attempt = 1;
    loop {
        let opened = open(&Threads::Of(before.clone()))?;
        let after = all();
        let new = after.iter().filter(|thread| !before.contains(thread)).count();
        if new == 0 || attempt == ATTEMPTS {
            return Ok((opened, new));
        }
        before = after;
        attempt += 1;
    }
}

fn missing_cpus(request: &Request, online: &CpuList, choice: &mut Choice) {
    let missing: Vec<String> = request
        .cpus
        .iter()
        .flat_map(CpuList::iter)
        .filter(|&cpu| !online.contains(cpu))
        .map(|cpu| cpu.to_string())
        .collect();
    if !missing.is_empty() {
        choice.degradations.push(format!("CPU {} is not online: nothing is recorded there", missing.join(", ")));
    }
}
