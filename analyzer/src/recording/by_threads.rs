//! The samples of a recording, read by several threads.

use std::sync::{Mutex, PoisonError};

use perfdata::{Chunk, Error, RawRecord, RecordType, Recording};

/// Gives each sample to one of that many workers, of which each thread has one, and returns the workers. `read` is told how many bytes were
/// read so far. Which worker gets which samples is not the same from time to time.
///
/// # Errors
/// The recording cannot be read.
pub fn samples_by_threads<W: Send>(
    recording: &Recording,
    threads: usize,
    read: &(dyn Fn(u64) + Sync),
    worker: impl Fn() -> W + Sync,
    add: impl Fn(&mut W, &RawRecord<'_>) + Sync,
) -> Result<Vec<W>, Error> {
    let reader = Mutex::new(recording.chunks());
    let work = || {
        let mut worker = worker();
        let mut chunk = Chunk::new();
        loop {
            let mut reader = reader.lock().unwrap_or_else(PoisonError::into_inner);
            if !reader.next_into(&mut chunk)? {
                return Ok(worker);
            }
            let position = reader.position();
            drop(reader);
            chunk.records().filter(|raw| raw.record_type == RecordType::SAMPLE).for_each(|raw| add(&mut worker, &raw));
            read(position);
        }
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut results = vec![work()];
        for other in others {
            results.push(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        results.into_iter().collect()
    })
}
