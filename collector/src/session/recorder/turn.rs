//! From one file of a recording to the next.

use std::io::Write;
use std::time::{Duration, Instant};

use formats::metadata::{MappedFilesMetadata, RECORD_TYPE};
use perfdata::{RecordType, Writer};

use crate::session::lead::Lead;
use crate::session::record_layout::{BrokenRecord, SAMPLE, records};
use crate::session::recorder::{Recorder, RecorderError, RingSource, Stop};
use crate::session::rotation::Safe;
use crate::session::tally::Tally;

/// A file that is not written to any more.
pub(crate) struct Ended<W: Write> {
    /// To be finished.
    pub(crate) writer: Writer<W>,
    pub(crate) tally: Tally,
    /// What is known of the files that were mapped.
    pub(crate) mapped_files: MappedFilesMetadata,
    /// What makes it less than it could be, in sentences.
    pub(crate) degradations: Vec<String>,
    pub(crate) safe: Safe,
    /// Whether all of it could be written.
    pub(crate) written: Result<(), RecorderError>,
}

impl<W: Write> Recorder<W> {
    /// Comes to the end of this file, which is before the next burst, for tools look at the first sample of a file; where none comes for so
    /// long, the next file begins without. Returns the code of the next file that was handed over already, or that the recording ends.
    ///
    /// ```text
    /// round                  1             2                3
    /// drained           a b | what only this file is to have | c D e | f g
    /// written here      ..  | a b                            | c     |
    /// of the next file                                       | D e   | f g
    /// ```
    /// Rounds from the second on bring all code again, and no burst of before is among what the third one writes.
    pub(crate) fn turn(
        &mut self,
        source: &mut dyn RingSource,
        patience: Duration,
    ) -> Result<Result<Vec<u8>, Stop>, RecorderError> {
        self.round(source)?;
        let mut of_this = Vec::new();
        source.next_file(&mut of_this);
        self.writer.write_raw(&of_this)?;
        let (began, mut of_both, mut is_first) = (Instant::now(), Vec::new(), true);
        loop {
            for ring in 0..source.rings() {
                self.ring.clear();
                source.drain(ring, &mut self.ring);
                take_own_records(&mut self.ring, &mut of_both)?;
                self.take_in()?;
            }
            self.hear()?;
            self.order.end_round(&mut self.out);
            self.leave_out()?;
            let burst = if is_first { None } else { self.first_burst()? };
            let rest = burst.map(|burst| self.out.split_off(burst));
            let put = self.put();
            let is_over = rest.is_some() || self.burst.is_none() || !is_first && began.elapsed() >= patience;
            self.out.extend(rest.unwrap_or_default());
            put?;
            is_first = false;
            let stop = if is_over { None } else { source.wait().map_err(RecorderError::Wait)? };
            if is_over || stop.is_some() {
                self.writer.write_raw(&of_both)?;
                return Ok(stop.map_or(Ok(of_both), Err));
            }
        }
    }

    /// Where the first burst begins in what is to be written.
    fn first_burst(&self) -> Result<Option<usize>, BrokenRecord> {
        let mut offset = 0;
        for record in records(&self.out) {
            let record = record?;
            if record.kind == SAMPLE && self.layout.sample_id(&record) == self.burst {
                return Ok(Some(offset));
            }
            offset += record.all.len();
        }
        Ok(None)
    }

    /// Goes on in another file, and returns the one before, with its counts. Nothing is written yet: neither what the new file begins with nor
    /// what is on its way.
    pub(crate) fn go_on_in(&mut self, writer: Writer<W>) -> Ended<W> {
        let written = self.end_file();
        let (mapped_files, not_kept) = self.files.conclude(false);
        let degradations = self.degradations().chain(not_kept).collect();
        let ids: Vec<Vec<u64>> = writer.events().iter().map(|event| event.ids.clone()).collect();
        let tally = std::mem::replace(&mut self.tally, Tally::new(self.layout, &ids, self.burst));
        let writer = std::mem::replace(&mut self.writer, writer);
        let safe = std::mem::take(&mut self.safe);
        self.lead = Lead::new(self.layout, self.burst);
        self.unmarked = 0;
        Ended { writer, tally, mapped_files, degradations, safe, written }
    }

    /// Writes what a file begins with: what lives, and code.
    pub(crate) fn begin_file(&mut self, code: &[u8]) -> Result<(), RecorderError> {
        let events = self.writer.events().to_vec();
        if let Some(standing) = &self.standing {
            self.write_standing(&standing.records(&events)?)?;
        }
        for mark in self.cgroups.standing() {
            self.writer.write_user_record(RecordType(RECORD_TYPE), &mark.to_record_body())?;
        }
        self.vdso_32.write_again();
        self.writer.write_raw(code)?;
        self.put()?;
        Ok(self.writer.flush()?)
    }
}

/// Takes the records out of `ring` that are the collector's own.
fn take_own_records(ring: &mut Vec<u8>, own: &mut Vec<u8>) -> Result<(), BrokenRecord> {
    let mut others = Vec::with_capacity(ring.len());
    for record in records(ring) {
        let record = record?;
        (if record.kind == RECORD_TYPE { &mut *own } else { &mut others }).extend_from_slice(record.all);
    }
    *ring = others;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::io::Cursor;

    use perfdata::{Chunk, EventDescription, Features, Recording};

    use super::*;
    use crate::errno::Errno;

    /// What rings hold at each round, one after the other.
    struct Script(VecDeque<Vec<u8>>);

    impl RingSource for Script {
        fn rings(&self) -> usize {
            1
        }

        fn drain(&mut self, _ring: usize, records: &mut Vec<u8>) {
            records.extend(self.0.pop_front().unwrap_or_default());
        }

        fn wait(&mut self) -> Result<Option<Stop>, Errno> {
            Ok(self.0.is_empty().then_some(Stop::TargetsEnded))
        }

        fn stop(&mut self) {}

        fn next_file(&mut self, records: &mut Vec<u8>) {
            records.extend(own(NAMES));
        }
    }

    const CLOCK: u64 = 5;
    const BURST: u64 = 7;
    const NAMES: u64 = 1000;
    const CODE: u64 = 2000;

    fn sample(id: u64, time: u64) -> Vec<u8> {
        [&[9, 0, 0, 0, 0, 0, 24, 0][..], &id.to_le_bytes(), &time.to_le_bytes()].concat()
    }

    /// A record of the collector's own.
    fn own(word: u64) -> Vec<u8> {
        [&[65, 0, 0, 0, 0, 0, 16, 0][..], &word.to_le_bytes()].concat()
    }

    /// Times of the samples, and words of the collector's own records, in the order of a file.
    fn words(file: Vec<u8>) -> Vec<u64> {
        let recording = Recording::from_bytes(file).unwrap();
        let (mut chunks, mut chunk, mut words) = (recording.chunks(), Chunk::new(), Vec::new());
        while chunks.next_into(&mut chunk).unwrap() {
            let last = |body: &[u8]| u64::from_le_bytes(*body.last_chunk().unwrap());
            words.extend(chunk.records().map(|raw| last(raw.body)));
        }
        words
    }

    fn events() -> Vec<EventDescription> {
        use perfdata::SampleFormat as F;
        let attr = perfdata::EventAttr { sample_format: F::IDENTIFIER | F::TIME, ..Default::default() };
        [CLOCK, BURST].map(|id| EventDescription { attr: attr.clone(), ids: vec![id], ..Default::default() }).to_vec()
    }

    /// Two files, or one if the recording ends meanwhile, of what rings held from the turn on.
    fn turned(rounds: &[&[Vec<u8>]], burst: Option<u64>, patience: Duration) -> Vec<Vec<u64>> {
        let writer = || Writer::create(Cursor::new(Vec::new()), &events()).unwrap();
        let finished =
            |writer: Writer<Cursor<Vec<u8>>>| words(writer.finish(&Features::default()).unwrap().into_inner());
        let mut source = Script(rounds.iter().map(|round| round.concat()).collect());
        let mut recorder = Recorder::new(writer(), burst);
        let mut files = Vec::new();
        if let Ok(code) = recorder.turn(&mut source, patience).unwrap() {
            let ended = recorder.go_on_in(writer());
            ended.written.unwrap();
            let samples: u64 = ended.tally.samples.iter().sum();
            assert_eq!(ended.tally.counts.samples, samples);
            files.push(finished(ended.writer));
            recorder.begin_file(&code).unwrap();
        }
        while recorder.step(&mut source).unwrap().is_none() {}
        recorder.end(&mut source).unwrap();
        assert_eq!(recorder.tally.counts.late, 0);
        files.push(finished(recorder.ended().writer));
        files
    }

    #[test]
    fn files_follow_each_other_at_a_burst() {
        let long = Duration::from_secs(3600);
        let rounds = [
            &[sample(BURST, 1), sample(CLOCK, 2)][..],
            &[sample(CLOCK, 3), own(CODE), sample(BURST, 4), sample(CLOCK, 5)],
            &[sample(CLOCK, 6)],
            &[sample(CLOCK, 7)],
        ];
        // Code that comes in the turn is of both, what is said once of the first one only.
        assert_eq!(turned(&rounds, Some(BURST), long), [vec![NAMES, 1, 2, 3, CODE], vec![CODE, 4, 5, 6, 7]]);
        // Without bursts it is what comes after.
        assert_eq!(turned(&rounds, None, long), [vec![NAMES, 1, 2, CODE], vec![CODE, 3, 4, 5, 6, 7]]);
        // Where no burst comes, nobody waits for ever, and nothing is lost; where the recording ends, there is no other file.
        let without = [&[sample(BURST, 1)][..], &[sample(CLOCK, 2)], &[sample(CLOCK, 3)], &[sample(CLOCK, 4)]];
        assert_eq!(turned(&without, Some(BURST), Duration::ZERO), [vec![NAMES, 1, 2], vec![3, 4]]);
        assert_eq!(turned(&without, Some(BURST), long), [[NAMES, 1, 2, 3, 4]]);
    }
}
