//! Work that several threads share.

use std::sync::{Mutex, PoisonError};

/// What `make` makes of each piece of work, in their order, by that many threads.
pub fn in_parallel<W: Send, R: Send>(work: Vec<W>, threads: usize, make: impl Fn(W) -> R + Sync) -> Vec<R> {
    let pieces = work.len();
    let next = Mutex::new(work.into_iter().enumerate());
    let done = Mutex::new(Vec::with_capacity(pieces));
    let make_until_done = || {
        loop {
            let Some((index, piece)) = next.lock().unwrap_or_else(PoisonError::into_inner).next() else { return };
            let made = make(piece);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((index, made));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(pieces) {
            scope.spawn(make_until_done);
        }
        make_until_done();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, made)| made).collect()
}
