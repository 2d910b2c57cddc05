//! The one loop that takes reports of traced threads, hands them on, and waits for more: of the tracer and of the simulator.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::sys::{Report, SignalInfo};
use crate::tracer::kernel::Kernel;
use crate::tracer::shared::Shared;
use crate::tracer::thread::action::Release;
use crate::tracer::thread::event::Stop;

/// How often to look whether something that is waited for has come, where nothing tells of it.
const LOOK: Duration = Duration::from_millis(1);

/// Who follows threads by their reports, and makes samples of what they do.
pub(crate) trait ReportHandler {
    type Kernel: Kernel;

    fn kernel(&mut self) -> &mut Self::Kernel;
    /// What it shares with the recorder.
    fn shared(&self) -> &Shared;
    /// The process of the command, if there is one.
    fn command(&self) -> Option<i32>;
    /// A thread has ended. It is not there any more.
    fn ended(&mut self, thread: i32);
    /// A thread stands still. It has to be [released](release), now or later. Signals are all taken for the program's
    /// ([`Stop::Signal`]).
    fn stopped(&mut self, thread: i32, stop: Stop);
    /// An event has sent its signal to the tracer's thread.
    fn told(&mut self, info: SignalInfo);
    /// No report is there. Returns how long to wait at most for the next; with zero, this is called again at once.
    fn idle(&mut self) -> Duration;
}

/// Follows threads until it is told to stop.
pub(crate) fn follow(producer: &mut impl ReportHandler) {
    loop {
        take_reports(producer);
        if producer.shared().stopping.load(Ordering::Acquire) {
            return;
        }
        let timeout = producer.idle();
        if timeout.is_zero() {
            continue;
        }
        if let Some((signal, info)) = producer.kernel().wait(timeout)
            && signal != libc::SIGCHLD
        {
            producer.told(info);
        }
    }
}

/// Takes reports until `done`, which is asked before each round, at most for so long.
pub(crate) fn follow_until<P: ReportHandler>(producer: &mut P, limit: Duration, mut done: impl FnMut(&mut P) -> bool) {
    let end = producer.kernel().now() + limit;
    loop {
        let is_done = done(producer);
        take_reports(producer);
        if is_done || producer.kernel().now() > end {
            return;
        }
        let _ = producer.kernel().wait(LOOK);
    }
}

fn take_reports(producer: &mut impl ReportHandler) {
    while let Some((thread, report)) = producer.kernel().next_report() {
        match stop_of(report) {
            Ok(stop) => producer.stopped(thread, stop),
            Err(status) => {
                producer.ended(thread);
                if producer.command() == Some(thread) {
                    let _ = producer.shared().status.set(status);
                }
            }
        }
    }
}

/// Why a thread stands still, or the status it has ended with.
fn stop_of(report: Report) -> Result<Stop, i32> {
    Ok(match report {
        Report::Ended(status) => return Err(status),
        Report::Signal(signal) => Stop::Signal(signal),
        Report::Event(libc::PTRACE_EVENT_STOP, libc::SIGTRAP) => Stop::Interrupt,
        // SIGSTOP and the like.
        Report::Event(libc::PTRACE_EVENT_STOP, _) => Stop::JobControl,
        Report::Event(libc::PTRACE_EVENT_EXEC, _) => Stop::Exec,
        // A new thread or process, which reports itself, too.
        Report::Event(..) => Stop::StartedAnother,
    })
}

/// Lets a stopped thread go on. Returns whether it goes on untraced. One that was killed meanwhile is not there to be let run.
pub(crate) fn release(kernel: &mut impl Kernel, thread: i32, release: Release) -> bool {
    match release {
        Release::Run(signal) => drop(kernel.resume(thread, signal)),
        #[cfg(feature = "simulated-pmu")]
        Release::Step(signal) => drop(kernel.single_step(thread, signal)),
        Release::StayStopped => drop(kernel.listen(thread)),
        Release::LetGo(signal) if kernel.detach(thread, signal).is_ok() => return true,
        Release::LetGo(signal) => drop(kernel.resume(thread, signal)),
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_told_apart() {
        assert_eq!(stop_of(Report::Ended(256)), Err(256));
        assert_eq!(stop_of(Report::Signal(libc::SIGUSR1)), Ok(Stop::Signal(libc::SIGUSR1)));
        assert_eq!(stop_of(Report::Event(libc::PTRACE_EVENT_STOP, libc::SIGTRAP)), Ok(Stop::Interrupt));
        assert_eq!(stop_of(Report::Event(libc::PTRACE_EVENT_STOP, libc::SIGTSTP)), Ok(Stop::JobControl));
        assert_eq!(stop_of(Report::Event(libc::PTRACE_EVENT_EXEC, libc::SIGTRAP)), Ok(Stop::Exec));
        for event in [libc::PTRACE_EVENT_CLONE, libc::PTRACE_EVENT_FORK, libc::PTRACE_EVENT_VFORK] {
            assert_eq!(stop_of(Report::Event(event, libc::SIGTRAP)), Ok(Stop::StartedAnother));
        }
    }
}
