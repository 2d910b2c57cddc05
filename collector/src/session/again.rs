//! A command that is run again and again, as one process with children.

use std::ffi::OsString;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::error::RecordError;
use crate::session::command::PreparedCommand;
use crate::session::command_outcome::CommandStatus;
use crate::session::signals_to_stop;
use crate::sys::SignalFd;

/// How often to look whether a run has ended, where the kernel does not tell (before Linux 5.3), ns.
const LOOK: i64 = 5_000_000;

/// Runs a command until `goes_on`, which hears how often it has run, says that it is enough, or a run fails, or this process is told to end, which
/// it passes on. Returns how the last run ended.
///
/// # Errors
/// [`RecordError`]: the command cannot be run.
pub fn run_again(command: &[OsString], mut goes_on: impl FnMut(u64) -> bool) -> Result<CommandStatus, RecordError> {
    let signals = SignalFd::block(&signals_to_stop()).map_err(RecordError::system("blocking signals"))?;
    let mut runs = 0;
    let mut is_told_to_end = false;
    loop {
        let mut run = PreparedCommand::start_waiting(command, None, &signals, None)?.start()?;
        let status = loop {
            while let Some((signal, from_terminal)) = signals.next() {
                is_told_to_end = true;
                match signal {
                    // The command got it, too.
                    _ if from_terminal => {}
                    libc::SIGINT => run.interrupt(),
                    _ => run.terminate(),
                }
            }
            if let Some(status) = run.status() {
                break status;
            }
            let mut fds = vec![PollFd::new(&signals, PollFlags::IN)];
            fds.extend(run.pidfd.as_ref().map(|pidfd| PollFd::new(pidfd, PollFlags::IN)));
            let timeout = run.pidfd.is_none().then_some(Timespec { tv_sec: 0, tv_nsec: LOOK });
            let _ = poll(&mut fds, timeout.as_ref());
        };
        runs += 1;
        if status != CommandStatus::Exited(0) || is_told_to_end || !goes_on(runs) {
            return Ok(status);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn it_runs_until_it_is_enough_or_fails() {
        let mut seen = Vec::new();
        let status = run_again(&words(&["true"]), |runs| {
            seen.push(runs);
            runs < 3
        });
        assert_eq!((status.unwrap(), seen), (CommandStatus::Exited(0), vec![1, 2, 3]));
        assert_eq!(run_again(&words(&["sh", "-c", "exit 3"]), |_| true).unwrap(), CommandStatus::Exited(3));
        assert_eq!(run_again(&words(&["sh", "-c", "kill -9 $$"]), |_| true).unwrap(), CommandStatus::Killed(9));
        assert!(run_again(&words(&["/no/such/program"]), |_| true).is_err());
    }
}
