//! A kernel that follows a script: what threads do is data, and what is asked of the kernel is written down.
//!
//! The script goes on whenever the tracer waits. Nothing here makes a system call but for the clocks of the real [`Shared`].

use std::cell::{RefCell, RefMut};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use lookahead::{PAGE, Page, Registers};
use perf_event_open_sys::bindings as sys;
use perfdata::{Avma, EventAttr};

use crate::errno::Errno;
use crate::sys::process::Mapping;
use crate::sys::{POLL_HUP, POLL_IN, Report, Server, SignalInfo, ThreadRegisters};
use crate::tracer::kernel::{Kernel, Processes, ThreadEvent, ThreadMemory};
use crate::tracer::shared::Shared;

/// Where the code of all processes begins.
pub(crate) const CODE: u64 = 0x40_1000;
/// The stack pointer of all threads.
pub(crate) const STACK: u64 = 0x7fff_0000_0ff0;
/// Something that happens while the tracer waits.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Input {
    /// The recording begins.
    Start,
    /// The clock of a thread overflows; its signal stops it.
    Clock(i32),
    /// The clock of a thread overflows; its signal goes to the tracer.
    ClockTellsTracer(i32),
    /// The breakpoint's signal stops a thread, which stands there.
    Breakpoint(i32, u64),
    /// A signal of the program's stops a thread.
    Signal(i32, i32),
    /// The stop that the tracer asked for.
    Interrupt(i32),
    /// A job-control stop.
    JobControl(i32, i32),
    /// The process has another program, by a thread of this former id.
    Exec(i32, i32),
    /// A thread has started another.
    Clone(i32),
    /// A thread of a process that nobody tells of.
    Starts(i32, i32),
    /// A new thread of a process reports itself.
    Appears(i32, i32),
    /// A thread has ended, with this status.
    Ends(i32, i32),
    /// From now on a thread blocks these signals.
    Blocks(i32, u64),
    /// A thread has come to this address.
    StandsAt(i32, u64),
    /// A thread waits in a system call.
    Sleeps(i32),
    /// The signal of its clock waits for a thread.
    Pends(i32, i32),
    /// The same of a signal that the program has sent.
    PendsOwn(i32, i32),
    /// None waits for a thread any more.
    PendsNone(i32),
    /// The result register and the number of the system call a thread comes from.
    Returns(i32, i64, i64),
    /// Milliseconds pass, and this share of them in each thread.
    Time(u64),
    /// The recording ends.
    Stop,
}

/// A thread of the script.
pub(crate) struct ScriptedThread {
    pub(crate) pid: i32,
    pub(crate) registers: Registers,
    pub(crate) system_call: i64,
    blocked: u64,
    pending: u64,
    /// What waits is not of its clock.
    pending_is_own: bool,
    computing: bool,
    info: SignalInfo,
    message: u64,
    pub(crate) cpu_time: Duration,
}

/// Whatever a test wants to happen at a wait of so long; returns whether the recording goes on.
pub(crate) type AtWait = Box<dyn FnMut(&mut World, Duration) -> bool>;

/// Everything there is.
pub(crate) struct World {
    start: Instant,
    /// What the jitter of periods begins with.
    pub(crate) seed: u64,
    pub(crate) elapsed: Duration,
    /// CPU time of the tracer.
    pub(crate) work: Duration,
    /// CPU time of the recorder.
    pub(crate) recorder: Duration,
    /// What each request costs of it.
    pub(crate) cost: Duration,
    /// For how long others have the CPU at each request.
    pub(crate) stolen: Duration,
    /// What each burst costs of it beside, one after the other; all further ones as much as the last.
    pub(crate) burst_costs: Vec<Duration>,
    bursts_taken: usize,
    pub(crate) threads: BTreeMap<i32, ScriptedThread>,
    pub(crate) code: Vec<u8>,
    pub(crate) caught: u64,
    reports: VecDeque<(i32, Report)>,
    /// Threads that take what they blocked.
    let_through: Vec<i32>,
    told: VecDeque<(i32, SignalInfo)>,
    /// The events of threads that are open.
    events: HashMap<i32, OpenEvent>,
    next_event: i32,
    script: VecDeque<Input>,
    /// What was asked for, since the tracer last waited.
    log: Vec<String>,
    /// The same, for each wait so far.
    pub(crate) rounds: Vec<Vec<String>>,
    shared: Arc<Shared>,
    /// Called in place of the script.
    pub(crate) at_wait: Option<AtWait>,
}

#[derive(Clone, Copy, Debug)]
struct OpenEvent {
    kind: Kind,
    thread: i32,
    period: u64,
    /// The CPU time of the thread at which it overflows, if it is started.
    due: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Clock,
    Breakpoint,
    /// Counts CPU time.
    Counter,
}

/// Plays a script.
#[derive(Clone)]
pub(crate) struct ScriptedKernel(Rc<RefCell<World>>);

/// An event of a thread of the script.
pub(crate) struct ScriptedEvent {
    world: Rc<RefCell<World>>,
    number: i32,
}

impl ScriptedKernel {
    /// `threads`: ids, each with its process.
    pub(crate) fn new(threads: &[(i32, i32)], code: &[u8], script: &[Input], shared: &Arc<Shared>) -> Self {
        let mut world = World {
            start: Instant::now(),
            seed: 0,
            elapsed: Duration::ZERO,
            work: Duration::ZERO,
            recorder: Duration::ZERO,
            cost: Duration::ZERO,
            stolen: Duration::ZERO,
            burst_costs: Vec::new(),
            bursts_taken: 0,
            threads: BTreeMap::new(),
            code: code.to_vec(),
            caught: 0,
            reports: VecDeque::new(),
            let_through: Vec::new(),
            told: VecDeque::new(),
            events: HashMap::new(),
            next_event: 10,
            script: script.iter().copied().collect(),
            log: Vec::new(),
            rounds: Vec::new(),
            shared: shared.clone(),
            at_wait: None,
        };
        for &(tid, pid) in threads {
            world.add(tid, pid);
        }
        Self(Rc::new(RefCell::new(world)))
    }

    pub(crate) fn world(&self) -> RefMut<'_, World> {
        self.0.borrow_mut()
    }

    fn thread<R>(&self, thread: i32, ask: impl FnOnce(&ScriptedThread) -> R) -> Result<R, Errno> {
        self.0.borrow().threads.get(&thread).map(ask).ok_or(Errno::ESRCH)
    }

    /// Writes a request down; it fails for a thread that is not there.
    fn request(&self, thread: i32, request: String) -> Result<(), Errno> {
        let mut world = self.world();
        world.charge();
        if !world.threads.contains_key(&thread) {
            return Err(Errno::ESRCH);
        }
        world.log.push(request);
        Ok(())
    }
}

impl World {
    /// The registers are read for a burst, which costs.
    fn begin_burst(&mut self) {
        self.charge();
        let last = self.burst_costs.len().saturating_sub(1);
        self.work += self.burst_costs.get(self.bursts_taken.min(last)).copied().unwrap_or_default();
        self.bursts_taken += 1;
    }

    /// A request takes the tracer's time.
    fn charge(&mut self) {
        self.work += self.cost;
        self.elapsed += self.stolen;
    }

    pub(crate) fn add(&mut self, tid: i32, pid: i32) {
        let mut registers = Registers { rip: CODE, ..Registers::default() };
        registers.general[4] = STACK;
        let thread = ScriptedThread {
            pid,
            registers,
            system_call: -1,
            blocked: 0,
            pending: 0,
            pending_is_own: false,
            computing: true,
            info: SignalInfo { code: 0, fd: 0 },
            message: pid as u64,
            cpu_time: Duration::ZERO,
        };
        self.threads.insert(tid, thread);
    }

    /// What was asked for since the last wait.
    pub(crate) fn unheard(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }

    /// Everything that was asked for.
    pub(crate) fn all_asked(&mut self) -> Vec<String> {
        let last = self.unheard();
        self.rounds.iter().flatten().cloned().chain(last).collect()
    }

    /// The number of an event of a thread.
    fn event(&self, kind: Kind, tid: i32) -> i32 {
        let found = self.events.iter().find(|(_, event)| (event.kind, event.thread) == (kind, tid));
        found.map_or(-1, |(&number, _)| number)
    }

    /// Time passes, of which each thread gets this share of CPU time. Those whose clocks overflow stop.
    pub(crate) fn pass(&mut self, time: Duration, share: f64) {
        self.elapsed += time;
        for thread in self.threads.values_mut() {
            thread.cpu_time += time.mul_f64(share);
        }
        let threads = &self.threads;
        let is_due = |event: &&mut OpenEvent| {
            event.due.is_some_and(|due| threads.get(&event.thread).is_some_and(|thread| thread.cpu_time >= due))
        };
        let mut stopped: Vec<i32> = Vec::new();
        for event in self.events.values_mut().filter(is_due) {
            event.due = None;
            stopped.push(event.thread);
        }
        stopped.sort_unstable();
        stopped.into_iter().for_each(|thread| self.overflow(thread));
    }

    /// A thread stops for the signal of its clock or breakpoint.
    pub(crate) fn overflow(&mut self, tid: i32) {
        let info = SignalInfo { code: POLL_HUP, fd: self.event(Kind::Clock, tid) };
        self.stop(tid, info);
    }

    fn stop(&mut self, tid: i32, info: SignalInfo) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.info = info;
            thread.pending &= !(1 << (libc::SIGWINCH - 1));
            self.reports.push_back((tid, Report::Signal(libc::SIGWINCH)));
        }
    }

    fn play(&mut self, input: Input) {
        let event = |event| Report::Event(event, libc::SIGTRAP);
        match input {
            Input::Start => self.shared.started.store(true, Ordering::Release),
            Input::Clock(tid) => self.overflow(tid),
            Input::ClockTellsTracer(tid) => {
                let info = SignalInfo { code: POLL_HUP, fd: self.event(Kind::Clock, tid) };
                self.told.push_back((crate::sys::realtime_signal(), info));
            }
            Input::Breakpoint(tid, at) => {
                let info = SignalInfo { code: POLL_IN, fd: self.event(Kind::Breakpoint, tid) };
                self.stop(tid, info);
                // RF is set there.
                self.change(tid, |thread| (thread.registers.rip, thread.registers.rflags) = (at, 1 << 16));
            }
            Input::Signal(tid, signal) => {
                self.change(tid, |thread| thread.info = SignalInfo { code: 0, fd: 0 });
                self.reports.push_back((tid, Report::Signal(signal)));
            }
            Input::Interrupt(tid) => self.reports.push_back((tid, event(libc::PTRACE_EVENT_STOP))),
            Input::JobControl(tid, signal) => {
                self.reports.push_back((tid, Report::Event(libc::PTRACE_EVENT_STOP, signal)));
            }
            Input::Exec(pid, former) => {
                if let Some(mut thread) = self.threads.remove(&former) {
                    self.threads.retain(|_, other| other.pid != pid);
                    thread.message = former as u64;
                    self.threads.insert(pid, thread);
                }
                self.reports.push_back((pid, event(libc::PTRACE_EVENT_EXEC)));
            }
            Input::Clone(tid) => self.reports.push_back((tid, event(libc::PTRACE_EVENT_CLONE))),
            Input::Starts(tid, pid) => self.add(tid, pid),
            Input::Appears(tid, pid) => {
                self.add(tid, pid);
                self.reports.push_back((tid, event(libc::PTRACE_EVENT_STOP)));
            }
            Input::Ends(tid, status) => {
                self.threads.remove(&tid);
                self.reports.push_back((tid, Report::Ended(status)));
            }
            Input::Blocks(tid, signals) => self.change(tid, |thread| thread.blocked = signals),
            Input::StandsAt(tid, at) => {
                self.change(tid, |thread| (thread.registers.rip, thread.registers.rflags) = (at, 0));
            }
            Input::Sleeps(tid) => self.change(tid, |thread| thread.computing = false),
            Input::Pends(tid, signal) => self.change(tid, |thread| thread.pending = 1 << (signal - 1)),
            Input::PendsNone(tid) => self.change(tid, |thread| thread.pending = 0),
            Input::PendsOwn(tid, signal) => {
                self.change(tid, |thread| (thread.pending, thread.pending_is_own) = (1 << (signal - 1), true));
            }
            Input::Returns(tid, result, call) => self.change(tid, |thread| {
                thread.registers.general[0] = result as u64;
                thread.system_call = call;
            }),
            Input::Time(milliseconds) => {
                self.elapsed += Duration::from_millis(milliseconds);
                for thread in self.threads.values_mut() {
                    thread.cpu_time += Duration::from_millis(milliseconds);
                }
            }
            Input::Stop => self.shared.stopping.store(true, Ordering::Release),
        }
    }

    fn change(&mut self, tid: i32, change: impl FnOnce(&mut ScriptedThread)) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            change(thread);
        }
    }
}

impl Kernel for ScriptedKernel {
    type Event = ScriptedEvent;

    fn now(&self) -> Instant {
        let world = self.0.borrow();
        world.start + world.elapsed
    }

    fn own_time(&self) -> Duration {
        self.0.borrow().work
    }

    fn collector_time(&self) -> Duration {
        let world = self.0.borrow();
        world.work + world.recorder
    }

    fn seed(&self) -> u64 {
        self.world().seed
    }

    fn own_thread(&self) -> i32 {
        1
    }

    fn next_report(&mut self) -> Option<(i32, Report)> {
        let (thread, report) = self.world().reports.pop_front()?;
        self.forget_let_through(thread);
        Some((thread, report))
    }

    fn wait(&mut self, timeout: Duration) -> Option<(i32, SignalInfo)> {
        let mut world = self.world();
        let log = std::mem::take(&mut world.log);
        world.rounds.push(log);
        if let Some(mut at_wait) = world.at_wait.take() {
            if at_wait(&mut world, timeout) {
                world.at_wait = Some(at_wait);
            } else {
                world.play(Input::Stop);
            }
        } else {
            let input = world.script.pop_front().unwrap_or(Input::Stop);
            world.play(input);
            if input_is_over(&world) {
                world.elapsed += timeout;
            }
        }
        world.told.pop_front()
    }

    fn seize(&mut self, thread: i32, _: i32) -> Result<(), Errno> {
        self.request(thread, format!("seize {thread}"))
    }

    fn interrupt(&mut self, thread: i32) -> Result<(), Errno> {
        self.request(thread, format!("interrupt {thread}"))
    }

    fn resume(&mut self, thread: i32, signal: i32) -> Result<(), Errno> {
        let with = if signal == 0 { String::new() } else { format!(" with {signal}") };
        self.request(thread, format!("run {thread}{with}"))
    }

    #[cfg(feature = "simulated-pmu")]
    fn single_step(&mut self, thread: i32, signal: i32) -> Result<(), Errno> {
        self.request(thread, format!("step {thread} with {signal}"))
    }

    fn listen(&mut self, thread: i32) -> Result<(), Errno> {
        self.request(thread, format!("listen {thread}"))
    }

    fn detach(&mut self, thread: i32, signal: i32) -> Result<(), Errno> {
        self.request(thread, format!("let go {thread} with {signal}"))
    }

    fn set_options(&mut self, thread: i32, options: i32) -> Result<(), Errno> {
        let tells = if options & libc::PTRACE_O_TRACECLONE == 0 { "tells of none" } else { "tells of new" };
        self.request(thread, format!("{thread} {tells}"))
    }

    fn event_message(&self, thread: i32) -> Result<u64, Errno> {
        self.thread(thread, |thread| thread.message)
    }

    fn signal_info(&self, thread: i32) -> Result<SignalInfo, Errno> {
        self.thread(thread, |thread| thread.info)
    }

    fn signal_mask(&self, thread: i32) -> Result<u64, Errno> {
        self.thread(thread, |thread| thread.blocked)
    }

    fn let_through(&mut self, thread: i32, is_of_event: &dyn Fn(SignalInfo) -> bool) -> bool {
        let mut world = self.world();
        let clock = SignalInfo { code: POLL_HUP, fd: world.event(Kind::Clock, thread) };
        let waits = world.threads.get(&thread).is_some_and(|thread| thread.pending != 0 && !thread.pending_is_own);
        let is_let = waits && is_of_event(clock);
        if is_let {
            world.log.push(format!("let through {thread}"));
            world.let_through.push(thread);
        }
        is_let
    }

    fn threads_let_through(&mut self) -> Vec<i32> {
        self.world().let_through.clone()
    }

    fn forget_let_through(&mut self, thread: i32) {
        self.world().let_through.retain(|other| *other != thread);
    }

    fn register(&self, thread: i32, offset: usize) -> u64 {
        let value = self.thread(thread, |thread| match offset {
            80 => thread.registers.general[0],
            120 => thread.system_call as u64,
            136 => crate::sys::USER_CS_64,
            _ => 0,
        });
        value.unwrap_or(u64::MAX)
    }

    fn set_register(&mut self, thread: i32, _: usize, value: u64) -> Result<(), Errno> {
        self.request(thread, format!("restart the call of {thread} ({})", value as i64))?;
        self.world().change(thread, |thread| thread.registers.general[0] = value);
        Ok(())
    }

    fn registers(&mut self, thread: i32) -> Result<ThreadRegisters, Errno> {
        self.world().begin_burst();
        self.thread(thread, |thread| ThreadRegisters {
            registers: thread.registers.clone(),
            system_call: thread.system_call,
        })
    }

    #[cfg(feature = "simulated-pmu")]
    fn set_registers(&mut self, thread: i32, registers: &Registers, _: bool) -> Result<(), Errno> {
        self.world().change(thread, |thread| thread.registers = registers.clone());
        Ok(())
    }

    fn open(&mut self, attr: &EventAttr, thread: i32) -> Result<ScriptedEvent, Errno> {
        let kind = match (attr.kind, attr.sample_period_or_freq) {
            (sys::PERF_TYPE_BREAKPOINT, _) => Kind::Breakpoint,
            (_, 0) => Kind::Counter,
            _ => Kind::Clock,
        };
        if kind == Kind::Breakpoint {
            self.request(thread, format!("breakpoint of {thread} at {:#x}", attr.config1))?;
        }
        self.thread(thread, |_| ())?;
        let mut world = self.world();
        world.charge();
        world.next_event += 1;
        let number = world.next_event;
        world.events.insert(number, OpenEvent { kind, thread, period: 0, due: None });
        Ok(ScriptedEvent { world: self.0.clone(), number })
    }
}

/// Whether nothing is there to be heard.
fn input_is_over(world: &World) -> bool {
    world.reports.is_empty() && world.told.is_empty()
}

impl ThreadMemory for ScriptedKernel {
    fn read_memory(&self, _: i32, address: Avma, bytes: &mut [u8]) -> bool {
        let world = self.0.borrow();
        let mut page = world.code.clone();
        page.resize(PAGE, 0x90);
        let Some(at) = address.0.checked_sub(CODE).map(|at| at as usize) else { return false };
        page.get(at..at + bytes.len()).map(|found| bytes.copy_from_slice(found)).is_some()
    }

    fn read_pages(&self, _: i32, addresses: &[Avma], pages: &mut [Page]) -> usize {
        let world = self.0.borrow();
        let of_code = addresses.iter().take_while(|address| address.0 == CODE);
        of_code.zip(pages).map(|(_, page)| page[..world.code.len()].copy_from_slice(&world.code)).count()
    }

    fn present(&self, _: i32, _: &[Avma], present: &mut [bool]) {
        present.fill(true);
    }

    fn comes_alone(&self, _: i32, _: Avma) -> bool {
        true
    }

    fn read_clock_page(&self, _: u64, _: &mut Page) -> bool {
        false
    }

    #[cfg(feature = "simulated-pmu")]
    fn write_memory(&mut self, _: i32, _: &[(Avma, &[u8])]) -> Result<(), Avma> {
        Ok(())
    }
}

impl Processes for ScriptedKernel {
    fn threads(&self, process: i32) -> Vec<i32> {
        let world = self.0.borrow();
        world.threads.iter().filter(|(_, thread)| thread.pid == process).map(|(&tid, _)| tid).collect()
    }

    fn process_of(&self, thread: i32) -> Option<i32> {
        self.thread(thread, |thread| thread.pid).ok()
    }

    fn cpu_time(&self, process: i32) -> Option<Duration> {
        let mut world = self.0.borrow_mut();
        world.charge();
        let times = world.threads.values().filter(|thread| thread.pid == process).map(|thread| thread.cpu_time);
        times.reduce(|sum, time| sum + time)
    }

    fn children(&self, process: i32, _: i32) -> Vec<i32> {
        let world = self.0.borrow();
        world
            .threads
            .iter()
            .filter(|&(&tid, thread)| thread.pid == tid && tid != process)
            .map(|(&tid, _)| tid)
            .collect()
    }

    fn mappings(&self, _: i32) -> Vec<Mapping> {
        let code = Mapping {
            start: CODE,
            end: CODE + PAGE as u64,
            prot: 5,
            shared: false,
            offset: 0,
            device: (0, 0),
            inode: 0,
            path: b"//anon".to_vec(),
        };
        vec![code]
    }

    fn server(&self, _: i32, _: &Mapping) -> Option<Server> {
        None
    }

    fn section_of_sequences(&self, _: i32, _: &Mapping) -> Option<(u64, usize)> {
        None
    }

    fn signals_caught(&self, _: i32) -> u64 {
        self.0.borrow().caught
    }

    fn signals_blocked(&self, thread: i32) -> u64 {
        self.thread(thread, |thread| thread.blocked).unwrap_or(0)
    }

    fn signals_pending_and_blocked(&self, thread: i32) -> (u64, u64) {
        self.thread(thread, |thread| (thread.pending, thread.blocked)).unwrap_or((0, 0))
    }

    #[cfg(feature = "simulated-pmu")]
    fn has_signal_to_take(&self, thread: i32) -> bool {
        let (pending, blocked) = self.signals_pending_and_blocked(thread);
        pending & !blocked != 0
    }

    fn may_be_interrupted(&self, _: i32, thread: i32) -> bool {
        self.is_computing(thread)
    }

    fn is_computing(&self, thread: i32) -> bool {
        self.thread(thread, |thread| thread.computing).unwrap_or(false)
    }
}

impl ScriptedEvent {
    /// Writes down what is asked of the event.
    fn note(&self, what: &str) -> Result<(), Errno> {
        let mut world = self.world.borrow_mut();
        world.charge();
        let Some(&OpenEvent { kind, thread, .. }) = world.events.get(&self.number) else { return Err(Errno::ESRCH) };
        let kind = match kind {
            Kind::Clock => "clock",
            Kind::Breakpoint => "breakpoint",
            Kind::Counter => "counter",
        };
        world.log.push(format!("{kind} of {thread} {what}"));
        Ok(())
    }
}

impl ThreadEvent for ScriptedEvent {
    fn number(&self) -> i32 {
        self.number
    }

    fn once(&self) -> Result<(), Errno> {
        self.note("started")?;
        let mut world = self.world.borrow_mut();
        let world = &mut *world;
        if let Some(event) = world.events.get_mut(&self.number) {
            let now = world.threads.get(&event.thread).map_or(Duration::ZERO, |thread| thread.cpu_time);
            event.due = Some(now + Duration::from_nanos(event.period));
        }
        Ok(())
    }

    fn disable(&self) -> Result<(), Errno> {
        self.note("off")
    }

    fn silence(&self) {
        let _ = self.note("silent");
    }

    fn set_period(&self, period: u64) -> Result<(), Errno> {
        if let Some(event) = self.world.borrow_mut().events.get_mut(&self.number) {
            event.period = period;
        }
        Ok(())
    }

    fn signal_to(&self, thread: i32, signal: i32) -> Result<(), Errno> {
        if signal == crate::sys::realtime_signal() {
            return self.note("tells the tracer");
        }
        self.note(&format!("sends {signal} to {thread}"))
    }

    fn modify(&self, attr: &EventAttr) -> Result<(), Errno> {
        self.note(&format!("at {:#x}", attr.config1))
    }

    fn read(&self, words: &mut [u64]) -> Result<usize, Errno> {
        let world = self.world.borrow();
        let Some(event) = world.events.get(&self.number) else { return Err(Errno::ESRCH) };
        let time = world.threads.get(&event.thread).map_or(0, |thread| thread.cpu_time.as_nanos() as u64);
        words.fill(time);
        Ok(words.len())
    }
}

impl Drop for ScriptedEvent {
    fn drop(&mut self) {
        self.world.borrow_mut().events.remove(&self.number);
    }
}
