//! Those who make samples at work, and what ends a recording: the command, signals, the clock.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::errno::Errno;
use crate::session::command::Command;
use crate::session::producer::Producer;
use crate::session::recorder::{RingSource, Stop};
use crate::sys::SignalFd;
use crate::sys::control_group::ControlGroup;
use crate::sys::process::is_running;

/// Rings are emptied at least this often, so that no more than a second is lost if the collector is killed: what is read in one round
/// is written in the next.
const TICK: Duration = Duration::from_millis(500);
/// In the beginning more often, so that of a short time there is something, too: this long after the start, and then whenever a quarter of
/// the time since then has passed again.
const FIRST_TICK: Duration = Duration::from_millis(10);
/// How often to look whether a process has ended where the kernel has no descriptor for that.
const LOOK: Duration = Duration::from_millis(50);

/// Messages are heard at once after so long without any, else after that time: a program may mark phases all the time.
const QUIET: Duration = Duration::from_millis(100);

/// A session at work.
pub(crate) struct Live {
    pub(crate) producers: Vec<Box<dyn Producer>>,
    pub(crate) signals: SignalFd,
    pub(crate) command: Option<Command>,
    /// Processes or threads to be recorded; recording ends with the last.
    watched: Vec<Watched>,
    /// The control group that is recorded: recording ends when it is removed.
    pub(crate) group: Option<ControlGroup>,
    deadline: Option<Instant>,
    /// Set when there is no reason to record more.
    pub(crate) enough: Option<Arc<AtomicBool>>,
    /// When something is to be done beside.
    pub(crate) due: Option<Instant>,
    began: Instant,
    /// Readable when a program, or somebody else, has said something.
    pub(crate) messages: Option<OwnedFd>,
    /// When one came.
    heard: Instant,
    /// Whether records are waited for.
    records: bool,
}

struct Watched {
    id: u32,
    pidfd: Option<OwnedFd>,
    ended: bool,
}

impl Live {
    /// `watched`: the processes or threads whose end ends the recording.
    pub(crate) fn new(producers: Vec<Box<dyn Producer>>, signals: SignalFd, watched: &[u32]) -> Self {
        let watched = watched.iter().map(|&id| Watched { id, pidfd: open_pidfd(id), ended: false }).collect();
        let began = Instant::now();
        let heard = began.checked_sub(QUIET).unwrap_or(began);
        Self {
            producers,
            signals,
            command: None,
            watched,
            group: None,
            deadline: None,
            enough: None,
            due: None,
            began,
            messages: None,
            heard,
            records: true,
        }
    }

    /// Begins to sample what runs already.
    pub(crate) fn enable(&mut self) -> Result<(), Errno> {
        self.producers.iter_mut().try_for_each(|producer| producer.enable())
    }

    /// The command runs, if there is one: the recording begins, and ends after this time.
    pub(crate) fn begin(&mut self, duration: Option<Duration>) {
        self.producers.iter_mut().for_each(|producer| producer.start());
        self.began = Instant::now();
        self.deadline = duration.and_then(|duration| Instant::now().checked_add(duration));
    }

    /// Waits for records, signals, the end of processes, at most `timeout`.
    fn poll(&mut self, timeout: Duration) -> Result<(), Errno> {
        let producers = self.producers.iter().enumerate().filter(|_| self.records);
        let polled = producers
            .flat_map(|(index, producer)| producer.polled().into_iter().map(move |(ring, fd)| ((index, ring), fd)));
        let (rings, fds): (Vec<(usize, usize)>, Vec<BorrowedFd<'_>>) = polled.unzip();
        let watched = self.watched.iter().filter(|watched| !watched.ended).filter_map(|watched| watched.pidfd.as_ref());
        let watched_by_pidfd = watched.clone().count();
        let command = self.command.as_ref().and_then(|command| command.pidfd.as_ref());
        let until_listening = QUIET.saturating_sub(self.heard.elapsed());
        let messages = self.messages.as_ref().filter(|_| self.records && until_listening.is_zero());
        let timeout = if until_listening.is_zero() { timeout } else { timeout.min(until_listening) };
        let listens = messages.is_some();
        let others = watched.chain(command).chain(messages).map(AsFd::as_fd).chain([self.signals.as_fd()]);
        let mut fds: Vec<PollFd<'_>> =
            fds.into_iter().chain(others).map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) };
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        // After the rings, in their order.
        let has_ended = fds[rings.len()..].iter().map(|fd| fd.revents().contains(PollFlags::IN));
        let ended: Vec<bool> = has_ended.take(watched_by_pidfd).collect();
        // Before the signals, which are last.
        if listens && fds.iter().rev().nth(1).is_some_and(|messages| messages.revents().contains(PollFlags::IN)) {
            self.heard = Instant::now();
        }
        let hung_up = |fd: &PollFd<'_>| fd.revents().intersects(PollFlags::HUP | PollFlags::ERR);
        let hung_up: Vec<(usize, usize)> =
            rings.into_iter().zip(&fds).filter(|(_, fd)| hung_up(fd)).map(|(ring, _)| ring).collect();
        for (producer, ring) in hung_up {
            self.producers[producer].hung_up(ring);
        }
        let by_pidfd = self.watched.iter_mut().filter(|watched| !watched.ended && watched.pidfd.is_some());
        for (watched, has_ended) in by_pidfd.zip(ended) {
            watched.ended = has_ended;
        }
        Ok(())
    }

    fn reason_to_stop(&mut self) -> Option<Stop> {
        if let Some((signal, from_terminal)) = self.signals.next() {
            return Some(if signal == libc::SIGINT { Stop::Interrupt { from_terminal } } else { Stop::Terminate });
        }
        if self.command.as_mut().is_some_and(|command| command.status().is_some()) {
            return Some(Stop::CommandEnded);
        }
        let is_enough = self.enough.as_ref().is_some_and(|enough| enough.load(Ordering::Acquire));
        if is_enough || self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Some(Stop::Duration);
        }
        // Of the others it is known when they end: reading what /proc says of hundreds of them takes more than recording them.
        for watched in self.watched.iter_mut().filter(|watched| watched.pidfd.is_none()) {
            watched.ended = watched.ended || !is_running(watched.id);
        }
        let all_ended = !self.watched.is_empty() && self.watched.iter().all(|watched| watched.ended);
        let is_removed = self.group.as_ref().is_some_and(|group| !group.is_there());
        (all_ended || is_removed).then_some(Stop::TargetsEnded)
    }

    fn timeout(&self) -> Duration {
        let blind = self.watched.iter().any(|watched| !watched.ended && watched.pidfd.is_none())
            || self.command.as_ref().is_some_and(|command| command.pidfd.is_none());
        let tick = (self.began.elapsed() / 4).clamp(FIRST_TICK, if blind { LOOK } else { TICK });
        let producers = self.producers.iter().filter(|_| self.records);
        let tick = producers.map(|producer| producer.until_drain()).fold(tick, Duration::min);
        let until = |time: Instant| time.saturating_duration_since(Instant::now());
        self.deadline.into_iter().chain(self.due).map(until).fold(tick, Duration::min)
    }

    /// Waits as long as the recording would have gone on, were it written.
    pub(crate) fn wait_unrecorded(&mut self) -> Result<Stop, Errno> {
        self.records = false;
        while self.command.is_some() {
            if let Some(stop) = self.wait()? {
                return Ok(stop);
            }
        }
        Ok(Stop::TargetsEnded)
    }

    /// Waits until the command has ended, at most until `limit`. A signal that comes meanwhile is returned.
    pub(crate) fn wait_for_command(&mut self, limit: Option<Instant>) -> io::Result<Option<i32>> {
        self.deadline = None;
        self.watched.clear();
        self.group = None;
        self.records = false;
        loop {
            if self.command.as_mut().is_none_or(|command| command.status().is_some()) {
                return Ok(None);
            }
            if let Some((signal, _)) = self.signals.next() {
                return Ok(Some(signal));
            }
            let left = limit.map_or(TICK, |limit| limit.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Ok(None);
            }
            self.poll(left.min(self.timeout())).map_err(|errno| io::Error::from_raw_os_error(errno.0))?;
        }
    }
}

impl RingSource for Live {
    fn rings(&self) -> usize {
        self.producers.iter().map(|producer| producer.rings()).sum()
    }

    fn drain(&mut self, mut ring: usize, records: &mut Vec<u8>) {
        for producer in &mut self.producers {
            match ring.checked_sub(producer.rings()) {
                None => return producer.drain(ring, records),
                Some(of_others) => ring = of_others,
            }
        }
    }

    fn wait(&mut self) -> Result<Option<Stop>, Errno> {
        if let Some(stop) = self.reason_to_stop() {
            return Ok(Some(stop));
        }
        self.poll(self.timeout())?;
        Ok(self.reason_to_stop())
    }

    fn next_file(&mut self, records: &mut Vec<u8>) {
        self.producers.iter_mut().for_each(|producer| producer.next_file(records));
    }

    fn stop(&mut self) {
        for producer in &mut self.producers {
            producer.stop();
        }
        if let Some(command) = &mut self.command {
            command.take_back();
        }
    }
}

/// A descriptor of a process, or of a thread (since Linux 6.9).
fn open_pidfd(id: u32) -> Option<OwnedFd> {
    // PIDFD_THREAD is O_EXCL.
    const THREAD: PidfdFlags = PidfdFlags::from_bits_retain(libc::O_EXCL as u32);
    let pid = Pid::from_raw(id.try_into().ok()?)?;
    pidfd_open(pid, PidfdFlags::empty()).or_else(|_| pidfd_open(pid, THREAD)).ok()
}
