//! The program's own handlers, where the agent's took their place.

use std::ffi::c_int;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::inside::faults::bit;
use crate::inside::frame::Frame;
use crate::inside::system::{self, Action, exchange_action};

/// An [`Action`] that threads share, in the order of its fields.
pub(crate) type SharedAction = [AtomicU64; 4];

pub(crate) const fn no_action() -> SharedAction {
    [const { AtomicU64::new(0) }; 4]
}

pub(crate) fn load(words: &SharedAction) -> Action {
    let [handler, flags, restorer, mask] = words.each_ref().map(|word| word.load(Relaxed));
    Action { handler, flags, restorer, mask }
}

pub(crate) fn store(words: &SharedAction, action: Action) {
    let values = [action.handler, action.flags, action.restorer, action.mask];
    words.iter().zip(values).for_each(|(word, value)| word.store(value, Relaxed));
}

/// A signal that is not the agent's: does what the kernel would do without the agent. Returns the address of the program's handler, if
/// there is one: it is to be called with what the agent's was called with. 0: nothing is left to be done.
///
/// Nothing here uses thread-local storage.
pub(crate) fn pass_on(signal: c_int, info: *const libc::siginfo_t, frame: &mut Frame, action: &SharedAction) -> u64 {
    let programs = load(action);
    // SAFETY: the kernel has written it.
    let is_sent = unsafe { (*info).si_code } <= 0;
    if programs.is_function() {
        if programs.flags & libc::SA_RESETHAND as u64 != 0 {
            exchange_action(signal, &Action::default());
        }
        let own = if programs.flags & libc::SA_NODEFER as u64 != 0 { 0 } else { bit(signal) };
        system::set_mask(frame.blocked | programs.mask | own);
        frame.return_by(programs.restorer);
        return programs.handler;
    }
    let is_ignored = programs.handler == libc::SIG_IGN as u64 && is_sent;
    if is_ignored || matches!(signal, libc::SIGURG | libc::SIGWINCH) {
        return 0;
    }
    // What ends the program. A fault happens again when the handler returns, anything else has to be sent again.
    exchange_action(signal, &Action::default());
    if is_sent || matches!(signal, libc::SIGTRAP | libc::SIGSYS) {
        system::send_to_self(signal, info);
    }
    0
}
