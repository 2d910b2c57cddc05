//! The kernel's rings, and what ends a recording: the command, signals, the clock.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::errno::Errno;
use crate::session::command::Command;
use crate::session::open::Opened;
use crate::session::recorder::{RingSource, Stop};
use crate::simulation::SimulationStatistics;
use crate::simulation::planned::Simulation;
use crate::sys::SignalFd;
use crate::sys::process::is_running;
use crate::tracer::{Shared, Tracer, TracerStatistics};

/// Rings are emptied at least this often, so that no more than a second is lost if the collector is killed: what is read in one round
/// is written in the next.
const TICK: Duration = Duration::from_millis(500);
/// In the beginning more often, so that of a short time there is something, too: this long after the start, and then whenever a quarter of
/// the time since then has passed again.
const FIRST_TICK: Duration = Duration::from_millis(10);
/// How often to look whether a process has ended where the kernel has no descriptor for that.
const LOOK: Duration = Duration::from_millis(50);

/// A session with the kernel.
pub(crate) struct Live {
    pub(crate) opened: Opened,
    pub(crate) signals: SignalFd,
    pub(crate) command: Option<Command>,
    /// Processes or threads to be recorded; recording ends with the last.
    watched: Vec<Watched>,
    deadline: Option<Instant>,
    began: Instant,
    /// The tracer, if there is one.
    pub(crate) tracer: Option<Tracer>,
    /// What it did, when it has ended.
    pub(crate) traced: Option<TracerStatistics>,
    /// The simulation, if there is one in the tracer's place, and what it did.
    pub(crate) simulation: Option<Simulation>,
    pub(crate) simulated: Option<SimulationStatistics>,
    /// Samples of either.
    made: Option<Arc<Shared>>,
    /// For each ring, whether an event is left that can be polled for it; the index of the event.
    poll_event: Vec<Option<usize>>,
}

struct Watched {
    id: u32,
    pidfd: Option<OwnedFd>,
    ended: bool,
}

impl Live {
    /// `watched`: the processes or threads whose end ends the recording.
    pub(crate) fn new(
        opened: Opened,
        signals: SignalFd,
        watched: &[u32],
        tracer: Option<Tracer>,
        simulation: Option<Simulation>,
    ) -> Self {
        let poll_event =
            (0..opened.rings.len()).map(|ring| opened.events.iter().position(|event| event.ring == ring)).collect();
        let watched = watched.iter().map(|&id| Watched { id, pidfd: open_pidfd(id), ended: false }).collect();
        let made = tracer.as_ref().map(Tracer::shared).or(simulation.as_ref().map(Simulation::shared));
        Self {
            opened,
            signals,
            command: None,
            watched,
            deadline: None,
            began: Instant::now(),
            tracer,
            traced: None,
            simulation,
            simulated: None,
            made,
            poll_event,
        }
    }

    /// The recording begins, and ends after this time.
    pub(crate) fn begin(&mut self, duration: Option<Duration>) {
        self.began = Instant::now();
        self.deadline = duration.and_then(|duration| Instant::now().checked_add(duration));
    }

    /// Waits for records, signals, the end of processes, at most `timeout`. Returns the rings whose polled event has ended.
    fn poll(&self, timeout: Duration) -> Result<Vec<usize>, Errno> {
        let ring_fd = |event: &Option<usize>| event.map(|event| self.opened.events[event].fd.as_fd());
        let mut rings = Vec::new();
        let mut fds: Vec<PollFd<'_>> = Vec::new();
        for (ring, event) in self.poll_event.iter().enumerate() {
            if let Some(fd) = ring_fd(event) {
                rings.push(ring);
                fds.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
            }
        }
        let others = self.watched.iter().filter(|watched| !watched.ended).filter_map(|watched| watched.pidfd.as_ref());
        let command = self.command.as_ref().and_then(|command| command.pidfd.as_ref());
        let other_fds = others
            .chain(command)
            .map(AsFd::as_fd)
            .chain(self.made.as_deref().map(AsFd::as_fd))
            .chain([self.signals.as_fd()]);
        fds.extend(other_fds.map(|fd: BorrowedFd<'_>| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) };
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let hung_up = |(&ring, fd): (&usize, &PollFd<'_>)| {
            fd.revents().intersects(PollFlags::HUP | PollFlags::ERR).then_some(ring)
        };
        Ok(rings.iter().zip(&fds).filter_map(hung_up).collect())
    }

    /// An event whose threads have ended says so for ever; others of the same ring still tell of records.
    fn poll_next_event(&mut self, ring: usize) {
        let Some(current) = self.poll_event[ring] else { return };
        let later = self.opened.events.iter().enumerate().skip(current + 1);
        self.poll_event[ring] = later.filter(|(_, event)| event.ring == ring).map(|(index, _)| index).next();
    }

    /// Lets the threads go on untraced.
    pub(crate) fn end_tracing(&mut self) {
        if let Some(tracer) = self.tracer.take() {
            self.traced = tracer.stop();
        } else if let Some(simulation) = self.simulation.take() {
            self.simulated = simulation.stop();
        } else {
            return;
        }
        if let Some(command) = &mut self.command {
            command.take_back();
        }
    }

    fn reason_to_stop(&mut self) -> Option<Stop> {
        if let Some((signal, from_terminal)) = self.signals.next() {
            return Some(if signal == libc::SIGINT { Stop::Interrupt { from_terminal } } else { Stop::Terminate });
        }
        if self.command.as_mut().is_some_and(|command| command.status().is_some()) {
            return Some(Stop::CommandEnded);
        }
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Some(Stop::Duration);
        }
        for watched in &mut self.watched {
            watched.ended = watched.ended || !is_running(watched.id);
        }
        let all_ended = !self.watched.is_empty() && self.watched.iter().all(|watched| watched.ended);
        all_ended.then_some(Stop::TargetsEnded)
    }

    fn timeout(&self) -> Duration {
        let blind = self.watched.iter().any(|watched| !watched.ended && watched.pidfd.is_none())
            || self.command.as_ref().is_some_and(|command| command.pidfd.is_none());
        let tick = (self.began.elapsed() / 4).clamp(FIRST_TICK, if blind { LOOK } else { TICK });
        self.deadline.map_or(tick, |deadline| tick.min(deadline.saturating_duration_since(Instant::now())))
    }

    /// Waits until the command has ended, at most until `limit`. A signal that comes meanwhile is returned.
    pub(crate) fn wait_for_command(&mut self, limit: Option<Instant>) -> io::Result<Option<i32>> {
        self.deadline = None;
        self.watched.clear();
        self.poll_event.fill(None);
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
        self.opened.rings.len() + usize::from(self.made.is_some())
    }

    fn drain(&mut self, ring: usize, records: &mut Vec<u8>) {
        match (self.opened.rings.get_mut(ring), &self.made) {
            (Some(ring), _) => drop(ring.drain(records)),
            (None, Some(made)) => made.drain(records),
            (None, None) => {}
        }
    }

    fn wait(&mut self) -> Result<Option<Stop>, Errno> {
        if let Some(stop) = self.reason_to_stop() {
            return Ok(Some(stop));
        }
        for ring in self.poll(self.timeout())? {
            self.poll_next_event(ring);
        }
        Ok(self.reason_to_stop())
    }

    fn stop(&mut self) {
        self.opened.disable();
        self.end_tracing();
    }
}

/// A descriptor of a process, or of a thread (since Linux 6.9).
fn open_pidfd(id: u32) -> Option<OwnedFd> {
    // PIDFD_THREAD is O_EXCL.
    const THREAD: PidfdFlags = PidfdFlags::from_bits_retain(libc::O_EXCL as u32);
    let pid = Pid::from_raw(id.try_into().ok()?)?;
    pidfd_open(pid, PidfdFlags::empty()).or_else(|_| pidfd_open(pid, THREAD)).ok()
}
