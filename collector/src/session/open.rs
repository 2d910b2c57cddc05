//! Opening the events of a session on every CPU and thread, and mapping the rings.

use std::os::fd::AsRawFd;

use perfdata::{EventAttr, EventDescription, ReadFormat};

use crate::errno::{Errno, plain};
use crate::machine::EventOpener;
use crate::machine::cpu_list::CpuList;
use crate::plan::event_spec::{EventSpec, SessionAttrs};
use crate::sys::control_group::{ControlGroup, topmost};
use crate::sys::{EventFd, KernelMemory, Measuring, MeasuringChild, Ring, Scope, seize, try_timer};

/// Opens on the running kernel.
#[derive(Clone, Copy, Debug, Default)]
pub struct KernelOpener;

impl EventOpener for KernelOpener {
    fn try_open(&mut self, attr: &EventAttr, cpu: Option<u32>, all_tasks: bool) -> Result<(), Errno> {
        let scope = match cpu {
            Some(cpu) if all_tasks => Scope::Cpu(cpu),
            cpu => Scope::Thread(0, cpu),
        };
        EventFd::open(attr, scope).map(drop)
    }

    fn try_control_group(&mut self, attr: &EventAttr, cpu: u32) -> Result<(), Errno> {
        let group = topmost().map_err(|error| Errno(error.raw_os_error().unwrap_or(Errno::ENOENT.0)))?;
        EventFd::open(attr, Scope::Group(group.as_raw_fd(), cpu)).map(drop)
    }

    fn try_trace(&mut self) -> Result<(), Errno> {
        // It never begins.
        let child = MeasuringChild::start(Measuring::Stops { signal: libc::SIGURG }, 0)
            .map_err(|error| Errno(error.raw_os_error().unwrap_or(0)))?;
        seize(child.pid(), 0)
    }

    fn try_timer(&mut self) -> Result<(), Errno> {
        try_timer()
    }

    fn try_kernel_memory(&mut self) -> Result<(), Errno> {
        KernelMemory::open().map(drop)
    }
}

/// Why the events of a session cannot be opened, though one of their kind did open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// `perf_event_open` refused an event on a thread or CPU.
    #[error("cannot open {event} on {target}: {errno}{}", open_hint(*.errno))]
    Event {
        /// Name of the event.
        event: String,
        /// The thread and the CPU it was to be opened on.
        target: String,
        /// What the kernel said.
        errno: Errno,
    },
    /// `perf_event_open` refused an event of a control group.
    #[error("cannot open {event} for the control group {group} on CPU {cpu}: {errno}{}", group_hint(*.errno))]
    Group {
        /// Name of the event.
        event: String,
        /// The path of the group.
        group: String,
        /// The CPU.
        cpu: u32,
        /// What the kernel said.
        errno: Errno,
    },
    /// The folder of a control group cannot be opened.
    #[error("the control group {group} cannot be opened: {}", plain(.source))]
    Folder {
        /// The path of the group.
        group: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// No CPU of the chosen ones has the event's PMU.
    #[error(
        "none of the chosen CPUs is online and can count the events: /sys/devices/system/cpu/online lists those that are"
    )]
    NoCpu,
    /// All threads ended before they could be recorded.
    #[error("the threads to record have ended")]
    Gone,
    /// No memory for the rings.
    #[error("cannot map a ring of {pages} pages: {errno}{}", if *.errno == Errno::EPERM { "; kernel.perf_event_mlock_kb or ulimit -l limits them, -m asks for fewer pages" } else { "" })]
    Ring {
        /// Size of the ring that was tried.
        pages: usize,
        /// What the kernel said.
        errno: Errno,
    },
    /// An open event does not answer.
    #[error("cannot set up {event}: {errno}")]
    Setup {
        /// Name of the event.
        event: String,
        /// What the kernel said.
        errno: Errno,
    },
}

fn open_hint(errno: Errno) -> &'static str {
    match errno {
        Errno::EMFILE => "; raise the limit of open files (ulimit -n): every thread needs a file per event and CPU",
        Errno::EACCES | Errno::EPERM => "; another user's processes need CAP_PERFMON or CAP_SYS_PTRACE",
        _ => "",
    }
}

fn group_hint(errno: Errno) -> &'static str {
    match errno {
        Errno::EINVAL => {
            "; the kernel has no events of control groups (CONFIG_CGROUP_PERF): record everything (-a), and look at `--rows cgroup`"
        }
        Errno::ENOENT | Errno(libc::EBADF) => "; it was removed, or is in a hierarchy that perf events do not know",
        errno => open_hint(errno),
    }
}

/// The threads to open events on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Threads {
    /// Everything that runs on a CPU.
    All,
    /// Those of a control group.
    Group(ControlGroup),
    /// The threads with these ids.
    Of(Vec<u32>),
}

/// Open events and their rings.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) events: Vec<OpenEvent>,
    pub(crate) rings: Vec<Ring>,
    /// Size of the smallest ring.
    pub(crate) pages: usize,
}

/// One event on one CPU for one thread.
#[derive(Debug)]
pub(crate) struct OpenEvent {
    /// Index of its spec.
    pub(crate) spec: usize,
    pub(crate) fd: EventFd,
    pub(crate) id: u64,
    /// Index of the ring it writes to.
    pub(crate) ring: usize,
}

/// What an event counted, over all CPUs and threads, inherited ones included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// What was counted, in the unit of the event.
    pub counted: u64,
    /// Time it was to count, ns: run time of the threads, or of the CPUs under `-a`.
    pub enabled_ns: u64,
    /// Time it counted, ns: less where events outnumber counters, or the event is one of some CPUs only.
    pub running_ns: u64,
    /// Samples lost, where the kernel says.
    pub lost: u64,
}

impl Totals {
    /// What was counted since these were.
    pub(crate) fn since(&self, before: &Self) -> Self {
        Self {
            counted: self.counted.saturating_sub(before.counted),
            enabled_ns: self.enabled_ns.saturating_sub(before.enabled_ns),
            running_ns: self.running_ns.saturating_sub(before.running_ns),
            lost: self.lost.saturating_sub(before.lost),
        }
    }
}

/// The attrs to open `specs` with. On every CPU, the first event also records mappings, names, forks and exits.
pub(crate) fn attrs(specs: &[EventSpec], session: &SessionAttrs, online: &CpuList) -> Vec<EventAttr> {
    let mut covered: Vec<u32> = Vec::new();
    let attr = |spec: &EventSpec| {
        let before = covered.len();
        for cpu in spec.cpus.as_ref().unwrap_or(online).iter() {
            if !covered.contains(&cpu) {
                covered.push(cpu);
            }
        }
        spec.attr(session, covered.len() > before)
    };
    specs.iter().map(attr).collect()
}

/// Opens everything. Threads that have ended and CPUs that went offline meanwhile are passed over.
pub(crate) fn open(
    specs: &[EventSpec],
    attrs: &[EventAttr],
    threads: &Threads,
    cpus: &CpuList,
    mut pages: usize,
    may_shrink: bool,
) -> Result<Opened, OpenError> {
    let folder = match threads {
        Threads::Group(group) => {
            Some((group, group.open().map_err(|source| OpenError::Folder { group: group.name().to_owned(), source })?))
        }
        Threads::All | Threads::Of(_) => None,
    };
    let scopes = |cpu: u32| match threads {
        Threads::All => vec![Scope::Cpu(cpu)],
        Threads::Group(_) => folder.iter().map(|(_, folder)| Scope::Group(folder.as_raw_fd(), cpu)).collect(),
        Threads::Of(threads) => threads.iter().map(|&thread| Scope::Thread(thread as i32, Some(cpu))).collect(),
    };
    let mut opened = Opened { events: Vec::new(), rings: Vec::new(), pages };
    let mut gone = false;
    for cpu in cpus.iter() {
        let mut owner: Option<usize> = None;
        for scope in scopes(cpu) {
            for (spec, (event, attr)) in specs.iter().zip(attrs).enumerate() {
                if event.cpus.as_ref().is_some_and(|cpus| !cpus.contains(cpu)) {
                    continue;
                }
                let fd = match EventFd::open(attr, scope) {
                    Ok(fd) => fd,
                    Err(Errno::ESRCH | Errno::ENODEV) => {
                        gone = true;
                        continue;
                    }
                    Err(errno) => {
                        if let Some((group, _)) = &folder {
                            let (event, group) = (event.name(), group.name().to_owned());
                            return Err(OpenError::Group { event, group, cpu, errno });
                        }
                        let target = match scope {
                            Scope::Cpu(cpu) | Scope::Group(_, cpu) => format!("CPU {cpu}"),
                            Scope::Thread(thread, _) => format!("thread {thread}, CPU {cpu}"),
                        };
                        return Err(OpenError::Event { event: event.name(), target, errno });
                    }
                };
                let setup = |errno| OpenError::Setup { event: event.name(), errno };
                let id = fd.id().map_err(setup)?;
                match owner {
                    Some(owner) => fd.share_ring_of(&opened.events[owner].fd).map_err(setup)?,
                    None => {
                        owner = Some(opened.events.len());
                        let ring = map_ring(&fd, &mut pages, may_shrink);
                        let ring = ring.map_err(|errno| OpenError::Ring { pages, errno })?;
                        opened.rings.push(ring);
                    }
                }
                opened.events.push(OpenEvent { spec, fd, id, ring: opened.rings.len() - 1 });
            }
        }
    }
    opened.pages = pages;
    match (opened.events.is_empty(), gone) {
        (false, _) => Ok(opened),
        (true, true) => Err(OpenError::Gone),
        (true, false) => Err(OpenError::NoCpu),
    }
}

/// Halves the ring until it is within the user's limit of locked memory.
pub(super) fn map_ring(fd: &EventFd, pages: &mut usize, may_shrink: bool) -> Result<Ring, Errno> {
    loop {
        match Ring::map(fd, *pages) {
            Ok(ring) => return Ok(ring),
            Err(Errno::EPERM) if may_shrink && *pages > 1 => *pages /= 2,
            Err(errno) => return Err(errno),
        }
    }
}

impl Opened {
    /// The events as the recording describes them.
    pub(crate) fn descriptions(&self, specs: &[EventSpec], attrs: &[EventAttr]) -> Vec<EventDescription> {
        let ids = |index: usize| self.events.iter().filter(|event| event.spec == index).map(|event| event.id).collect();
        let describe = |(index, (spec, attr)): (usize, (&EventSpec, &EventAttr))| EventDescription {
            attr: attr.clone(),
            name: spec.name(),
            ids: ids(index),
        };
        specs.iter().zip(attrs).enumerate().map(describe).collect()
    }

    /// Starts all events, in the order in which they were opened.
    pub(crate) fn enable(&self) -> Result<(), Errno> {
        self.events.iter().try_for_each(|event| event.fd.enable())
    }

    /// Stops all; one that cannot be stopped has ended.
    pub(crate) fn disable(&self) {
        for event in &self.events {
            let _ = event.fd.disable();
        }
    }

    /// What each event counted; `of_threads`: they are events of threads, not of CPUs.
    pub(crate) fn totals(&self, attrs: &[EventAttr], of_threads: bool) -> Vec<Totals> {
        let mut totals = vec![Totals::default(); attrs.len()];
        let mut rings: Vec<Vec<usize>> = vec![Vec::new(); attrs.len()];
        for event in &self.events {
            // value, enabled, running, id, lost.
            let mut words = [0; 5];
            let with_lost = attrs[event.spec].read_format.contains(ReadFormat::LOST);
            if event.fd.read(&mut words).is_ok() {
                let total = &mut totals[event.spec];
                total.counted += words[0];
                total.enabled_ns += words[1];
                total.running_ns += words[2];
                total.lost += if with_lost { words[4] } else { 0 };
                if !rings[event.spec].contains(&event.ring) {
                    rings[event.spec].push(event.ring);
                }
            }
        }
        // An event of a thread on one CPU is to count, by the kernel's reckoning, wherever the thread runs.
        if of_threads {
            for (total, rings) in totals.iter_mut().zip(&rings) {
                total.enabled_ns /= rings.len().max(1) as u64;
            }
        }
        totals
    }
}
