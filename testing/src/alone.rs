use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};

static LIVE: Mutex<()> = Mutex::new(());

thread_local! {
    static HELD: Cell<bool> = const { Cell::new(false) };
}

/// While a test has it, no other test of the same program that asks for it runs: cargo runs one program of tests after another, but
/// the tests within one in parallel. Tests that record or trace do so alone, as load is what they measure.
#[derive(Debug)]
pub struct Alone {
    guard: Option<MutexGuard<'static, ()>>,
}

impl Alone {
    /// Waits for the others. A thread that has one already gets another at once.
    pub fn wait() -> Self {
        if HELD.replace(true) {
            return Alone { guard: None };
        }
        // A test that failed leaves nothing behind that others would meet.
        Alone { guard: Some(LIVE.lock().unwrap_or_else(PoisonError::into_inner)) }
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        if self.guard.is_some() {
            HELD.set(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::Alone;

    #[test]
    fn one_at_a_time_and_a_thread_may_ask_twice() {
        let inside = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let _alone = Alone::wait();
                        let _again = Alone::wait();
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        std::thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
    }
}
