//! How the overflow of a thread's clock makes the thread stop.

/// How the tracer learns of an overflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// The thread gets this signal, and stops before it is delivered.
    Signal(i32),
    /// The tracer gets a signal, and interrupts the thread: for threads that block the signals that could be used.
    Interrupt,
}

/// Signals that nothing happens on by default, so that one that is left over does no harm.
pub(crate) const SIGNALS: [i32; 2] = [libc::SIGWINCH, libc::SIGURG];

/// The same as a mask: bit n - 1 for signal n.
pub(crate) const SIGNAL_MASK: u64 = 1 << (libc::SIGWINCH - 1) | 1 << (libc::SIGURG - 1);

/// Whether nothing at all comes through. Programs cannot block the signals that the C library has for itself; the library does, for a
/// moment, when it begins or ends a thread.
pub(crate) fn blocks_all(blocked: u64) -> bool {
    blocked | 1 << (libc::SIGKILL - 1) | 1 << (libc::SIGSTOP - 1) == u64::MAX
}

/// How a thread is best stopped, given the signals it blocks and those its process has handlers for; a signal that is pending while the
/// program sends another of its kind would swallow that one.
pub(crate) fn best_notice(blocked: u64, caught: u64) -> Notice {
    let free = |set: u64| SIGNALS.into_iter().find(|signal| set & 1 << (signal - 1) == 0);
    match free(blocked | caught).or_else(|| free(blocked)) {
        Some(signal) => Notice::Signal(signal),
        None => Notice::Interrupt,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn mask(signal: i32) -> u64 {
        1 << (signal - 1)
    }

    #[test]
    fn a_signal_that_the_thread_takes_and_the_program_does_not_use() {
        let (first, second) = (libc::SIGWINCH, libc::SIGURG);
        assert_eq!(best_notice(0, 0), Notice::Signal(first));
        assert_eq!(best_notice(mask(first), 0), Notice::Signal(second));
        assert_eq!(best_notice(0, mask(first)), Notice::Signal(second));
        assert_eq!(
            best_notice(mask(second), mask(first)),
            Notice::Signal(first),
            "one with a handler, if there is no other"
        );
        assert_eq!(best_notice(mask(first) | mask(second), 0), Notice::Interrupt);
        assert_eq!(best_notice(u64::MAX, 0), Notice::Interrupt);
    }

    #[test]
    fn two_signals_cannot_be_blocked() {
        assert!(blocks_all(!(mask(libc::SIGKILL) | mask(libc::SIGSTOP))));
        // SIGSETXID of glibc, which sigprocmask leaves out.
        assert!(!blocks_all(!mask(33)));
    }
}
