//! The kernel that is there.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use lookahead::Page;
use perfdata::{Avma, EventAttr};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::errno::Errno;
use crate::sys::process::{self, Mapping};
use crate::sys::{
    self, EventFd, Mounts, PageTables, RegisterArea, Report, Scope, Server, SignalInfo, ThreadRegisters, WaitSet,
};
use crate::tracer::kernel::{Kernel, Processes, ThreadEvent, ThreadMemory};
use crate::tracer::notice::SIGNALS;
use crate::tracer::waits::may_be_interrupted;

/// How long a file that others serve is waited for.
const LONGEST_READ: Duration = Duration::from_millis(100);

/// Linux, asked by the thread that made this: it alone may trace.
pub(crate) struct LinuxKernel {
    signals: WaitSet,
    area: RegisterArea,
    pipe: Option<(OwnedFd, OwnedFd)>,
    /// Where this process has the pages of the kernel's clock.
    own_vvar: Option<u64>,
    page_tables: PageTables,
    mounts: Mounts,
    /// What threads blocked before signals were let through to them, which they have not taken yet. A recorder that is killed meanwhile, for
    /// some microseconds, leaves their masks as they are.
    masks: HashMap<i32, u64>,
    /// Whether the program ends with the tracer, so that no signal of its own can be lost with that.
    takes_all: bool,
}

impl LinuxKernel {
    /// `signals`: those to wait for.
    pub(crate) fn new(signals: WaitSet) -> Self {
        let own = process::each_mapping(std::process::id()).find(|map| map.path.starts_with(b"[vvar"));
        Self {
            signals,
            area: RegisterArea::new(),
            pipe: pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).ok(),
            own_vvar: own.map(|map| map.start),
            page_tables: PageTables::default(),
            mounts: Mounts::default(),
            masks: HashMap::new(),
            takes_all: false,
        }
    }

    /// A thread blocks again what it blocked, if it stands still.
    fn block_again(&mut self, thread: i32) {
        if self.masks.get(&thread).is_some_and(|mask| sys::set_signal_mask(thread, *mask).is_ok()) {
            self.masks.remove(&thread);
        }
    }

    /// The same for programs that end with the tracer (`PTRACE_O_EXITKILL`).
    #[cfg(feature = "simulated-pmu")]
    pub(crate) fn of_programs_that_end_with_it(signals: WaitSet) -> Self {
        Self { takes_all: true, ..Self::new(signals) }
    }
}

impl Kernel for LinuxKernel {
    type Event = EventFd;

    fn now(&self) -> Instant {
        Instant::now()
    }

    fn own_time(&self) -> Duration {
        sys::thread_cpu_time()
    }

    fn collector_time(&self) -> Duration {
        sys::own_cpu_time()
    }

    fn seed(&self) -> u64 {
        u64::from(std::process::id()) << 32 ^ 0x9e37_79b9_7f4a_7c15
    }

    fn own_thread(&self) -> i32 {
        sys::own_thread()
    }

    fn next_report(&mut self) -> Option<(i32, Report)> {
        let is_own = |signal, info: SignalInfo| self.takes_all || SIGNALS.contains(&signal) && info.is_of_descriptor();
        let (thread, report) = sys::next_report(is_own)?;
        match report {
            Report::Ended(_) => drop(self.masks.remove(&thread)),
            // A thread that calls exec takes the id of the first one, and keeps its own mask.
            Report::Event(libc::PTRACE_EVENT_EXEC, _) => {
                let former = sys::event_message(thread).map_or(thread, |id| id as i32);
                let mask = self.masks.remove(&former);
                self.masks.remove(&thread);
                self.masks.extend(mask.map(|mask| (thread, mask)));
            }
            _ => {}
        }
        self.block_again(thread);
        Some((thread, report))
    }

    fn wait(&mut self, timeout: Duration) -> Option<(i32, SignalInfo)> {
        self.signals.wait(timeout)
    }

    fn seize(&mut self, thread: i32, options: i32) -> Result<(), Errno> {
        sys::seize(thread, options)
    }

    fn interrupt(&mut self, thread: i32) -> Result<(), Errno> {
        sys::interrupt(thread)
    }

    fn resume(&mut self, thread: i32, signal: i32) -> Result<(), Errno> {
        sys::resume(thread, signal)
    }

    #[cfg(feature = "simulated-pmu")]
    fn single_step(&mut self, thread: i32, signal: i32) -> Result<(), Errno> {
        sys::single_step(thread, signal)
    }

    fn listen(&mut self, thread: i32) -> Result<(), Errno> {
        sys::listen(thread)
    }

    fn detach(&mut self, thread: i32, signal: i32) -> Result<(), Errno> {
        self.block_again(thread);
        sys::detach(thread, signal)
    }

    fn set_options(&mut self, thread: i32, options: i32) -> Result<(), Errno> {
        sys::set_options(thread, options)
    }

    fn event_message(&self, thread: i32) -> Result<u64, Errno> {
        sys::event_message(thread)
    }

    fn signal_info(&self, thread: i32) -> Result<SignalInfo, Errno> {
        sys::signal_info(thread)
    }

    fn signal_mask(&self, thread: i32) -> Result<u64, Errno> {
        sys::signal_mask(thread)
    }

    fn let_through(&mut self, thread: i32, is_of_event: &dyn Fn(SignalInfo) -> bool) -> bool {
        // Of a call that has a mask of its own (ppoll(2), sigsuspend(2)) the thread's mask is that of after it. Changed, it is the one that
        // counts; the call is made again then, with its own.
        let Ok(mask) = sys::signal_mask(thread) else { return false };
        let waits = |&&signal: &&i32| sys::waiting_signal(thread, signal).is_some_and(is_of_event);
        let through = SIGNALS.iter().filter(waits).fold(0, |set, signal| set | 1 << (signal - 1));
        let is_let = through != 0 && sys::set_signal_mask(thread, mask & !through).is_ok();
        if is_let {
            self.masks.entry(thread).or_insert(mask);
        }
        is_let
    }

    fn threads_let_through(&mut self) -> Vec<i32> {
        self.masks.retain(|thread, _| process::is_alive(*thread as u32));
        self.masks.keys().copied().collect()
    }

    fn forget_let_through(&mut self, thread: i32) {
        self.masks.remove(&thread);
    }

    fn register(&self, thread: i32, offset: usize) -> u64 {
        sys::register(thread, offset)
    }

    fn set_register(&mut self, thread: i32, offset: usize, value: u64) -> Result<(), Errno> {
        sys::set_register(thread, offset, value)
    }

    fn registers(&mut self, thread: i32) -> Result<ThreadRegisters, Errno> {
        self.area.read(thread)
    }

    #[cfg(feature = "simulated-pmu")]
    fn set_registers(&mut self, thread: i32, registers: &lookahead::Registers, vector: bool) -> Result<(), Errno> {
        self.area.write(thread, registers, vector)
    }

    fn open(&mut self, attr: &EventAttr, thread: i32) -> Result<EventFd, Errno> {
        EventFd::open(attr, Scope::Thread(thread, None))
    }
}

impl ThreadMemory for LinuxKernel {
    fn read_memory(&self, process: i32, address: Avma, bytes: &mut [u8]) -> bool {
        sys::read_memory(process, address, bytes)
    }

    fn read_pages(&self, process: i32, addresses: &[Avma], pages: &mut [Page]) -> usize {
        sys::read_pages(process, addresses, pages)
    }

    fn present(&self, process: i32, addresses: &[Avma], present: &mut [bool]) {
        self.page_tables.present(process, addresses, present);
    }

    fn comes_alone(&self, process: i32, page: Avma) -> bool {
        sys::comes_alone(process, page)
    }

    fn read_clock_page(&self, offset: u64, page: &mut Page) -> bool {
        let (Some(own), Some(pipe)) = (self.own_vvar, &self.pipe) else { return false };
        sys::copy_own_page(pipe, Avma(own + offset), page)
    }

    #[cfg(feature = "simulated-pmu")]
    fn write_memory(&mut self, process: i32, pieces: &[(Avma, &[u8])]) -> Result<(), Avma> {
        sys::write_memory(process, pieces)
    }
}

impl Processes for LinuxKernel {
    fn threads(&self, process: i32) -> Vec<i32> {
        process::threads(process as u32).into_iter().map(|id| id as i32).collect()
    }

    fn process_of(&self, thread: i32) -> Option<i32> {
        process::group_and_parent(thread as u32).map(|(process, _)| process as i32)
    }

    fn cpu_time(&self, process: i32) -> Option<Duration> {
        sys::cpu_time(process)
    }

    fn children(&self, process: i32, thread: i32) -> Vec<i32> {
        process::children(process as u32, thread as u32).into_iter().map(|id| id as i32).collect()
    }

    fn mappings(&self, thread: i32) -> Vec<Mapping> {
        process::mappings(thread as u32)
    }

    fn server(&self, process: i32, map: &Mapping) -> Option<Server> {
        if map.inode == 0 { None } else { self.mounts.server(process, map.device) }
    }

    fn section_of_sequences(&self, process: i32, map: &Mapping) -> Option<(u64, usize)> {
        if self.server(process, map).is_none() {
            return sys::section_of_sequences(process, map);
        }
        // Whoever serves the file may not answer: then the thread is left to wait.
        let (answer, answered) = mpsc::channel();
        let map = map.clone();
        thread::spawn(move || answer.send(sys::section_of_sequences(process, &map)));
        answered.recv_timeout(LONGEST_READ).ok().flatten()
    }

    fn signals_caught(&self, thread: i32) -> u64 {
        process::signals_caught(thread as u32)
    }

    fn signals_blocked(&self, thread: i32) -> u64 {
        process::signals_blocked(thread as u32)
    }

    fn signals_pending_and_blocked(&self, thread: i32) -> (u64, u64) {
        process::signals_pending_and_blocked(thread as u32)
    }

    #[cfg(feature = "simulated-pmu")]
    fn has_signal_to_take(&self, thread: i32) -> bool {
        process::has_signal_to_take(thread as u32)
    }

    fn may_be_interrupted(&self, process: i32, thread: i32) -> bool {
        may_be_interrupted(process, thread)
    }

    fn is_computing(&self, thread: i32) -> bool {
        process::is_computing(thread as u32)
    }
}

impl ThreadEvent for EventFd {
    fn number(&self) -> i32 {
        Self::number(self)
    }

    fn once(&self) -> Result<(), Errno> {
        Self::once(self)
    }

    fn disable(&self) -> Result<(), Errno> {
        Self::disable(self)
    }

    fn silence(&self) {
        Self::silence(self);
    }

    fn set_period(&self, period: u64) -> Result<(), Errno> {
        Self::set_period(self, period)
    }

    fn signal_to(&self, thread: i32, signal: i32) -> Result<(), Errno> {
        Self::signal_to(self, thread, signal)
    }

    fn modify(&self, attr: &EventAttr) -> Result<(), Errno> {
        Self::modify(self, attr)
    }

    fn read(&self, words: &mut [u64]) -> Result<usize, Errno> {
        Self::read(self, words)
    }
}
