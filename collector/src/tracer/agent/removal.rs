//! Taking the agent out of a process that goes on.
//!
//! ```text
//! no burst begins any more (`off`)
//! bursts end; threads that are to come back to the agent do, or their trap flag is taken away
//! one thread gives the program its handlers back, by code of the agent's (`agent::Resident`)
//! every thread is seen outside of the agent: it will not come there again
//! one thread unmaps it
//! ```
//!
//! A thread that computes is stopped by a clock, where it executes its own code; one that sleeps is not stopped to see where it is. One that
//! waits in a system call is interrupted only if it has to come back to the agent, or if no thread computes; the call is made again. One
//! thread at a time is traced. The recorder may be killed at any moment: what is left then is an agent that does nothing.

use std::collections::{HashMap, HashSet};
use std::mem::offset_of;
use std::thread::sleep;
use std::time::{Duration, Instant};

use addresses::Avma;
use agent::{REGION, RESTORE, Resident, Restoring, Waiting, code_to_unmap};
use libc::user_regs_struct as Fields;

use crate::sys::process::{exists, is_alive, mappings, signals_pending_and_blocked, sleeps_at};
use crate::sys::{EventFd, HeldThread, Report, read_memory, write_memory};
use crate::tracer::agent::injection::{filters_system_calls, is_unfit};
use crate::tracer::agent::vdso::{NO_ROOM, Room};
use crate::tracer::agent::visits::leave_system_call;
use crate::tracer::kernel::linux::LinuxKernel;
use crate::tracer::kernel::{Kernel, Processes};
use crate::tracer::notice::{Notice, SIGNAL_MASK, SIGNALS, best_notice};
use crate::tracer::settings::Clock;

/// How long it may take in a process.
const LONGEST: Duration = Duration::from_millis(1500);
/// How long to wait for a thread that needs nothing but a CPU: to block again what was let through to it, to unmap the agent. It may have none for
/// long, or be frozen.
const MUCH_LONGER: Duration = Duration::from_secs(5);
/// How long threads may take to come back by themselves, and some thread to compute.
const PATIENCE: Duration = Duration::from_millis(150);
/// How long a thread that computes may take to stop by its clock, before it is interrupted.
const BY_CLOCK: Duration = Duration::from_millis(20);
/// How often to look.
const LOOK: Duration = Duration::from_micros(200);
/// A clock overflows after so many ns of CPU time.
const AT_ONCE: u64 = 10_000;
/// EFLAGS.TF.
const TRAP_FLAG: u64 = 1 << 8;

/// Why an agent stays in a process.
type Why = &'static str;

const TOO_LONG: Why = "its threads did not come to a place where it could be taken out";

/// A thread that executes code in a room.
struct Sent {
    held: HeldThread,
    room: Room,
    signal: Signalled,
}

/// Whether a signal of the program's came to a thread on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signalled {
    No,
    /// Before it was on its way, which it did not go.
    Before,
    /// It may come back there from the handler.
    Inside,
}

/// Lets threads run, each time for twice as long: where many wait for a CPU, one that is stopped sooner than it gets one executes nothing.
struct Runs(Duration);

impl Runs {
    fn new() -> Self {
        Self(LOOK)
    }

    /// The next one, if there is so much time left.
    fn pass(&mut self, left: Duration) {
        sleep(self.0.min(left));
        self.0 *= 2;
    }
}

struct Removal<'a> {
    process: i32,
    resident: &'a Resident,
    kernel: &'a mut LinuxKernel,
    /// The thread that is traced.
    traced: Option<i32>,
    /// Where it was sent, if it does not stand there any more.
    sent: Option<Sent>,
    began: Instant,
    /// Until when it may take.
    until: Instant,
    /// Threads that will not come back to the agent though it waits for them.
    freed: HashSet<i32>,
}

/// Takes the agent out of a process. No clock of it may run.
///
/// # Errors
/// Why it stays there. It does nothing any more.
pub(crate) fn take_out(process: i32, resident: &Resident, kernel: &mut LinuxKernel) -> Result<(), Why> {
    let began = kernel.now();
    let until = began + LONGEST;
    let mut removal =
        Removal { process, resident, kernel, traced: None, sent: None, began, until, freed: HashSet::new() };
    let done = removal.run();
    removal.let_go();
    // It has ended, or has another program now.
    done.or_else(|why| if Resident::of(super::residents::reader(process)).is_none() { Ok(()) } else { Err(why) })
}

/// Lets go threads that were asked to stop by events, which are off: the threads, and the descriptors of these.
pub(crate) fn release_asked(asked: &HashMap<i32, i32>, kernel: &mut LinuxKernel) {
    let since = kernel.now();
    let mut left: HashSet<i32> = asked.keys().copied().collect();
    let mut next = since;
    while !left.is_empty() && kernel.now() < since + LONGEST || !kernel.threads_let_through().is_empty() {
        if kernel.now() >= next {
            // Those that a signal was let through to are asked again: they may have nothing to take any more.
            let those = if next == since { left.iter().copied().collect() } else { kernel.threads_let_through() };
            for thread in those {
                let _ = kernel.interrupt(thread);
            }
            next = kernel.now() + BY_CLOCK;
        }
        match kernel.next_report() {
            Some((thread, report)) => {
                if release(kernel, thread, report, asked.get(&thread).copied()) {
                    left.remove(&thread);
                }
            }
            None if kernel.now() > since + MUCH_LONGER => return,
            None => {
                left.retain(|&thread| exists(thread as u32));
                sleep(LOOK);
            }
        }
    }
}

/// A thread that was to be stopped, by the event with this descriptor perhaps, goes on. Returns whether it is not traced any more. One that
/// is about to take the event's signal is, until it stops for that, even if it blocks it; and one that is about to end, until that has been
/// reported: a thread in execve(2) waits for it, and would keep others from being seized.
fn release(kernel: &mut LinuxKernel, thread: i32, report: Report, event: Option<i32>) -> bool {
    let mut signal = match report {
        Report::Ended(_) => return true,
        Report::Signal(signal) => signal,
        Report::Event(..) => 0,
    };
    match event {
        Some(event) if is_of_event(kernel, thread, signal, event) => signal = 0,
        Some(event) if signal == 0 => {
            if kernel.let_through(thread, &|info| info.is_of(event)) {
                let _ = kernel.resume(thread, 0);
                return false;
            }
        }
        // Its handler is to have the mask that the program has chosen. It stops again before it executes that.
        Some(_) if kernel.signals_pending_and_blocked(thread).0 & SIGNAL_MASK != 0 => {
            let _ = kernel.interrupt(thread);
            let _ = kernel.resume(thread, signal);
            return false;
        }
        Some(_) | None => {}
    }
    leave_system_call(thread, kernel);
    kernel.detach(thread, signal).is_ok()
}

/// Whether the signal that a thread has stopped for is of the event with this descriptor.
fn is_of_event(kernel: &LinuxKernel, thread: i32, signal: i32, event: i32) -> bool {
    SIGNALS.contains(&signal) && kernel.signal_info(thread).is_ok_and(|info| info.is_of(event))
}

impl Removal<'_> {
    fn run(&mut self) -> Result<(), Why> {
        if write_memory(self.process, &[(Avma(self.resident.off()), &1_u32.to_ne_bytes())]).is_err() {
            return Err("its memory cannot be written");
        }
        if filters_system_calls(self.process) {
            return Err("it filters its system calls (seccomp)");
        }
        self.wait_for_bursts()?;
        self.restore_handlers()?;
        self.see_all_outside()?;
        self.unmap()
    }

    fn threads(&self) -> Vec<i32> {
        let mut threads = self.kernel.threads(self.process);
        threads.retain(|&thread| is_alive(thread as u32));
        threads
    }

    /// How long it may still take.
    fn left(&self) -> Duration {
        self.until.saturating_duration_since(self.kernel.now())
    }

    fn has_time(&self) -> Result<(), Why> {
        if self.left().is_zero() { Err(TOO_LONG) } else { Ok(()) }
    }

    fn is_patient(&self, since: Instant) -> bool {
        self.kernel.now() < since + PATIENCE
    }

    /// Until no thread is in a burst, or has to come back to the agent.
    fn wait_for_bursts(&mut self) -> Result<(), Why> {
        let mut clocks = HashMap::new();
        loop {
            let in_use = self.resident.in_use(self.process, super::residents::reader(self.process));
            let mut in_use = in_use.ok_or("its memory cannot be read")?;
            let threads = self.threads();
            in_use.waiting.retain(|(thread, _)| threads.contains(thread) && !self.freed.contains(thread));
            if !in_use.bursts && in_use.waiting.is_empty() {
                // No clock sends a signal from now on.
                clocks.clear();
                if !self.is_signalled(&threads) {
                    return Ok(());
                }
            }
            self.has_time()?;
            for &(thread, how) in &in_use.waiting {
                match how {
                    // The clock's signal ends that.
                    Waiting::Armed => {
                        clocks.entry(thread).or_insert_with(|| self.clock(thread, self.agents_signal()));
                    }
                    Waiting::InCall if self.is_patient(self.began) => {}
                    Waiting::InCall => self.free(thread)?,
                }
            }
            sleep(5 * LOOK);
        }
    }

    /// Whether a thread has not taken yet what a clock has sent it, perhaps because it blocks it, and a handler of the program's would get
    /// it in place of the agent's.
    fn is_signalled(&self, threads: &[i32]) -> bool {
        let Some(signal) = self.agents_signal() else { return false };
        let is_pending = |&thread: &i32| signals_pending_and_blocked(thread as u32).0 & 1 << (signal - 1) != 0;
        self.resident.is_caught(signal, super::residents::reader(self.process)) && threads.iter().any(is_pending)
    }

    fn agents_signal(&self) -> Option<i32> {
        let mut word = [0; 8];
        let is_read = read_memory(self.process, Avma(agent::SIGNAL), &mut word);
        i32::try_from(u64::from_ne_bytes(word)).ok().filter(|signal| is_read && (1..=64).contains(signal))
    }

    /// A clock that overflows soon if the thread computes, and sends it this signal.
    fn clock(&mut self, thread: i32, signal: Option<i32>) -> Option<EventFd> {
        let clock = self.kernel.open(&Clock::Time.attr(), thread).ok()?;
        clock.signal_to(thread, signal?).and_then(|()| clock.set_period(AT_ONCE)).and_then(|()| clock.once()).ok()?;
        Some(clock)
    }

    /// A thread that waits in a system call does not come to the agent when it comes out of it.
    fn free(&mut self, thread: i32) -> Result<(), Why> {
        if !self.stop(thread)? {
            return Ok(());
        }
        let (pending, _) = signals_pending_and_blocked(thread as u32);
        // One that has come out of it is on its way to the agent.
        if pending & 1 << (libc::SIGTRAP - 1) == 0 {
            let (flags, r11) = (offset_of!(Fields, eflags), offset_of!(Fields, r11));
            let before = self.kernel.register(thread, flags);
            let copy = self.kernel.register(thread, r11);
            // `syscall` leaves a copy of the flags there.
            let is_copy = copy & !TRAP_FLAG == before & !TRAP_FLAG;
            let changed = self.kernel.set_register(thread, flags, before & !TRAP_FLAG);
            if changed.is_ok() && is_copy {
                let _ = self.kernel.set_register(thread, r11, copy & !TRAP_FLAG);
            }
            if changed.is_ok() {
                self.freed.insert(thread);
            }
        }
        self.let_go();
        Ok(())
    }

    /// One of the threads gives the program its handlers back, if none has done so.
    fn restore_handlers(&mut self) -> Result<(), Why> {
        loop {
            match self.restoring()? {
                Restoring::No => self.begin_restoring()?,
                Restoring::UnderWay => self.has_time()?,
                Restoring::Done { taken: false } => return Ok(()),
                Restoring::Done { taken: true } => {
                    return Err("it has installed handlers of its own in place of the agent's, which they may call");
                }
            }
            sleep(LOOK);
        }
    }

    fn restoring(&self) -> Result<Restoring, Why> {
        let restoring = self.resident.restoring(super::residents::reader(self.process));
        restoring.ok_or("its memory cannot be read")
    }

    fn begin_restoring(&mut self) -> Result<(), Why> {
        self.by_some_thread(|removal, thread| {
            let Some(held) = removal.hold(thread) else { return Ok(false) };
            let pieces = Resident::code_to_restore(&held.loading(0)).ok_or("no code")?;
            let pieces = pieces.each_ref().map(|(address, bytes)| (Avma(*address), bytes.as_slice()));
            write_memory(removal.process, &pieces).map_err(|_| "its memory cannot be written")?;
            held.leave_to(RESTORE).map_err(|_| TOO_LONG)?;
            Ok(true)
        })
    }

    /// A stopped thread that can be sent elsewhere for a moment.
    fn hold(&self, thread: i32) -> Option<HeldThread> {
        let held = HeldThread::hold_waiting(thread).ok().flatten();
        held.filter(|held| !is_unfit(held, self.process, thread))
    }

    /// Until every thread was seen outside of the agent.
    fn see_all_outside(&mut self) -> Result<(), Why> {
        let mut left: Vec<i32> = self.threads();
        let rip = offset_of!(Fields, rip);
        let mut runs = Runs::new();
        while !left.is_empty() {
            for thread in std::mem::take(&mut left) {
                let is_outside = match sleeps_at(thread as u32) {
                    Some(place) => !REGION.contains(&place),
                    None if !self.stop(thread)? => !is_alive(thread as u32),
                    None => !REGION.contains(&self.kernel.register(thread, rip)),
                };
                self.let_go();
                if !is_outside {
                    left.push(thread);
                }
            }
            if !left.is_empty() {
                self.has_time()?;
                runs.pass(self.left());
            }
        }
        Ok(())
    }

    fn unmap(&mut self) -> Result<(), Why> {
        let maps = mappings(self.process as u32);
        self.by_some_thread(|removal, thread| {
            let Some(held) = removal.hold(thread) else { return Ok(false) };
            let code = code_to_unmap(&held.loading(0)).ok_or("no code")?;
            let room = Room::put(thread, &maps, &code).ok_or(NO_ROOM)?;
            if held.leave_to(room.start.0).is_err() {
                room.clear(thread);
                return Ok(false);
            }
            removal.see_out_of(thread, Sent { held, room, signal: Signalled::No })
        })?;
        while read_memory(self.process, Avma(agent::STATUS), &mut [0; 8]) {
            self.has_time()?;
            sleep(LOOK);
        }
        Ok(())
    }

    /// Lets a stopped thread execute what was put there, and clears it. Returns whether it did.
    fn see_out_of(&mut self, thread: i32, sent: Sent) -> Result<bool, Why> {
        let room = sent.room;
        self.sent = Some(sent);
        // From the beginning: signals may send several threads back, one after the other.
        self.until = self.began + LONGEST + MUCH_LONGER;
        let mut runs = Runs::new();
        let stands = loop {
            let _ = self.kernel.resume(thread, 0);
            runs.pass(self.left());
            match self.comes_to_stand(thread) {
                Ok(true) if room.contains(self.kernel.register(thread, offset_of!(Fields, rip))) => {}
                stands => break stands,
            }
            if let Err(why) = self.has_time() {
                break Err(why);
            }
        };
        let signal = self.sent.take().map(|sent| sent.signal);
        if stands? && signal != Some(Signalled::Inside) {
            room.clear(thread);
        }
        Ok(signal != Some(Signalled::Before))
    }

    /// The traced thread is about to get a signal of its own. If it has executed nothing of where it was sent, it stands again where it was: the signal
    /// may interrupt the system call that it was in.
    fn gets_signal(&mut self, thread: i32) {
        let rip = self.kernel.register(thread, offset_of!(Fields, rip));
        if let Some(Sent { held, room, signal }) = &mut self.sent
            && room.contains(rip)
        {
            let is_before = rip == room.start.0 && held.give_back().is_ok();
            *signal = if is_before { Signalled::Before } else { Signalled::Inside };
        }
    }

    /// Stops one thread after the other until `done` says that one has done it: threads that compute, and when there are none for a while,
    /// those that wait.
    fn by_some_thread(&mut self, mut done: impl FnMut(&mut Self, i32) -> Result<bool, Why>) -> Result<(), Why> {
        let since = self.kernel.now();
        loop {
            for thread in self.threads() {
                if self.is_patient(since) && !self.kernel.is_computing(thread) {
                    continue;
                }
                if self.stop(thread)? {
                    let is_done = done(self, thread);
                    self.let_go();
                    if is_done? {
                        return Ok(());
                    }
                }
                self.has_time()?;
            }
            self.has_time()?;
            sleep(LOOK);
        }
    }

    /// Stops a thread; whether it stands still. Nothing else is traced meanwhile.
    fn stop(&mut self, thread: i32) -> Result<bool, Why> {
        match self.kernel.seize(thread, 0) {
            Ok(()) => self.traced = Some(thread),
            Err(errno) if errno.is_permission() && is_alive(thread as u32) => return Err("somebody else traces it"),
            Err(_) => return Ok(false),
        }
        self.comes_to_stand(thread)
    }

    /// Stops a thread that is traced and runs; whether it stands still.
    fn comes_to_stand(&mut self, thread: i32) -> Result<bool, Why> {
        let caught = self.kernel.signals_caught(thread);
        let signal = match best_notice(self.kernel.signals_blocked(thread), caught) {
            // Not one that a handler would get, should the thread block it before it comes.
            Notice::Signal(signal) if caught & 1 << (signal - 1) == 0 && self.kernel.is_computing(thread) => {
                Some(signal)
            }
            _ => None,
        };
        let clock = signal.and_then(|signal| self.clock(thread, Some(signal)));
        let mut since = self.kernel.now();
        let mut is_interrupted = false;
        loop {
            match self.kernel.next_report() {
                Some((other, report)) if other != thread => drop(release(self.kernel, other, report, None)),
                Some((_, Report::Ended(_))) => {
                    self.traced = None;
                    return Ok(false);
                }
                Some((_, Report::Signal(signal)))
                    if !clock
                        .as_ref()
                        .is_some_and(|clock| is_of_event(self.kernel, thread, signal, clock.number())) =>
                {
                    self.gets_signal(thread);
                    let _ = self.kernel.resume(thread, signal);
                }
                // Interrupted before it could take the clock's signal, it stops for that next.
                Some((_, Report::Event(..)))
                    if clock.as_ref().is_some_and(|clock| {
                        let clock = clock.number();
                        self.kernel.let_through(thread, &|info| info.is_of(clock))
                    }) =>
                {
                    self.has_time()?;
                    let _ = self.kernel.resume(thread, 0);
                    (since, is_interrupted) = (self.kernel.now(), false);
                }
                Some(_) => {
                    leave_system_call(thread, self.kernel);
                    return Ok(true);
                }
                // Never where it stands already: it would stand again as soon as it goes on, and execute nothing.
                None if !is_interrupted && (clock.is_none() || self.kernel.now() > since + BY_CLOCK) => {
                    let _ = self.kernel.interrupt(thread);
                    is_interrupted = true;
                }
                None => {
                    self.has_time()?;
                    sleep(LOOK);
                }
            }
        }
    }

    /// The thread that was seized goes on, and nobody traces it.
    fn let_go(&mut self) {
        let Some(thread) = self.traced.take() else { return };
        if self.kernel.detach(thread, 0).is_ok() {
            return;
        }
        // It does not stand still yet, or is about to end. A first thread that ends is not reported, and not waited for.
        let since = self.kernel.now();
        let is_to_come = |thread| if thread == self.process { is_alive(thread as u32) } else { exists(thread as u32) };
        while is_to_come(thread) && self.kernel.now() < since + LONGEST {
            match self.kernel.next_report() {
                Some((reported, report)) => {
                    if release(self.kernel, reported, report, None) && reported == thread {
                        return;
                    }
                }
                None => sleep(LOOK),
            }
        }
    }
}
