//! From rings to the file: read, put in order of time, count, write.

mod turn;

use std::io::Write;

use formats::made_code::MadeCode;
use formats::metadata::RECORD_TYPE;
use formats::phase_mark::PhaseMark;
use perfdata::{RecordType, Writer};

use crate::control::Control;
use crate::errno::Errno;
use crate::session::cgroups::Cgroups;
use crate::session::family::Family;
use crate::session::kernel_code::BpfCode;
use crate::session::lead::Lead;
use crate::session::made_code::SampledCode;
use crate::session::mapped_files::MappedFiles;
use crate::session::members::Members;
use crate::session::record_layout::{BrokenRecord, RecordLayout, records};
pub(crate) use crate::session::recorder::turn::Ended;
use crate::session::rotation::Safe;
use crate::session::standing::Standing;
use crate::session::tally::{Counts, Tally};
use crate::session::time_order::TimeOrder;
use crate::session::vdso::Vdso32;

/// Rings that records come from: the kernel's, or in a test those of a recording that is played back.
pub(crate) trait RingSource {
    /// How many rings there are.
    fn rings(&self) -> usize;

    /// Appends what ring `ring` holds to `records`, and empties it.
    fn drain(&mut self, ring: usize, records: &mut Vec<u8>);

    /// Waits until there is something to read, or a reason to stop.
    fn wait(&mut self) -> Result<Option<Stop>, Errno>;

    /// Stops the flow of records; what is in the rings stays there to be drained.
    fn stop(&mut self);

    /// Another file is about to begin: appends what only this one is still to have, and says again from now on what a file has once.
    fn next_file(&mut self, _records: &mut Vec<u8>) {}
}

/// Why a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The command has ended.
    CommandEnded,
    /// All processes or threads that were to be recorded have ended, or the control group was removed.
    TargetsEnded,
    /// The time is up.
    Duration,
    /// SIGINT; `from_terminal`: the command got it too.
    Interrupt {
        /// A terminal sent it to the whole foreground process group.
        from_terminal: bool,
    },
    /// The recorder was told to end, by SIGTERM, SIGHUP or SIGQUIT.
    Terminate,
}

/// Why records cannot be put into the file.
#[derive(Debug, thiserror::Error)]
pub enum RecorderError {
    /// The file cannot be written.
    #[error(transparent)]
    Write(#[from] perfdata::Error),
    /// A ring holds no whole records.
    #[error(transparent)]
    Ring(#[from] BrokenRecord),
    /// The rings could not be waited for.
    #[error("waiting for records: {0}")]
    Wait(Errno),
}

/// Records bytes written between two marks that a round has ended, which let readers sort in pieces.
const ROUND_BYTES: usize = 1 << 20;

/// Takes rounds of records to a writer.
pub(crate) struct Recorder<W: Write> {
    order: TimeOrder,
    pub(crate) control: Option<Control>,
    lead: Lead,
    pub(crate) tally: Tally,
    pub(crate) files: MappedFiles,
    pub(crate) cgroups: Cgroups,
    pub(crate) vdso_32: Vdso32,
    /// Where the kernel's code is recorded, and the kernel tells of programs.
    pub(crate) bpf: Option<BpfCode>,
    /// What of them is not in the file that has just ended.
    unread_bpf: Option<String>,
    /// Why the kernel does not tell what it changes of its code: it is said of files that have samples of the kernel.
    pub(crate) unseen_changes: Option<String>,
    /// Code without a file in which samples fall; `None` where records are played back.
    pub(crate) sampled_code: Option<SampledCode>,
    /// Those of the control group that is recorded, if one is.
    pub(crate) members: Option<Members>,
    /// Those whose records are kept, where there are others.
    pub(crate) family: Option<Family>,
    pub(crate) writer: Writer<W>,
    /// What the rings held that are read, and what one of them did.
    rings: Vec<Vec<u8>>,
    ring: Vec<u8>,
    out: Vec<u8>,
    unmarked: usize,
    burst: Option<u64>,
    layout: RecordLayout,
    /// What lives, where the recording may go on in another file.
    pub(crate) standing: Option<Standing>,
    /// Counts of the files before this one, as far as they are counted for all files.
    before: Counts,
    /// What of this file is on the disk.
    pub(crate) safe: Safe,
}

impl<W: Write> Recorder<W> {
    /// Takes records of the writer's events to it. `burst`: the id of the event whose samples are bursts.
    pub(crate) fn new(writer: Writer<W>, burst: Option<u64>) -> Self {
        let events = writer.events();
        let layout = RecordLayout::of_events(events);
        let ids: Vec<Vec<u64>> = events.iter().map(|event| event.ids.clone()).collect();
        Self {
            order: TimeOrder::new(layout),
            control: None,
            lead: Lead::new(layout, burst),
            tally: Tally::new(layout, &ids, burst),
            files: MappedFiles::new(layout, false),
            cgroups: Cgroups::new(layout),
            vdso_32: Vdso32::default(),
            bpf: None,
            unread_bpf: None,
            unseen_changes: None,
            sampled_code: None,
            members: None,
            family: None,
            rings: Vec::new(),
            writer,
            ring: Vec::new(),
            out: Vec::new(),
            unmarked: 0,
            burst,
            layout,
            standing: None,
            before: Counts::default(),
            safe: Safe::default(),
        }
    }

    /// Records until `source` says stop.
    pub(crate) fn run(&mut self, source: &mut dyn RingSource) -> Result<Stop, RecorderError> {
        let stop = loop {
            if let Some(stop) = self.step(source)? {
                break stop;
            }
        };
        self.end(source)?;
        Ok(stop)
    }

    /// Waits for records, and takes them.
    pub(crate) fn step(&mut self, source: &mut dyn RingSource) -> Result<Option<Stop>, RecorderError> {
        let stop = source.wait().map_err(RecorderError::Wait)?;
        if stop.is_none() {
            self.round(source)?;
        }
        Ok(stop)
    }

    /// Takes the last records.
    pub(crate) fn end(&mut self, source: &mut dyn RingSource) -> Result<(), RecorderError> {
        source.stop();
        self.round(source)?;
        if self.family.as_ref().is_some_and(Family::is_ahead) {
            self.round(source)?;
        }
        self.order.finish(&mut self.out);
        self.write()?;
        self.end_file()
    }

    /// Writes what was held back, and counts what is counted in the end.
    fn end_file(&mut self) -> Result<(), RecorderError> {
        let mut held = Vec::new();
        self.lead.give_up(&mut held);
        let rest = std::mem::replace(&mut self.out, held);
        let put = self.put();
        self.out = rest;
        self.write_bpf()?;
        let all = self.counts_of_all_files();
        let counts = &mut self.tally.counts;
        counts.late = all.late - self.before.late;
        counts.before_first_burst = self.lead.left_out();
        counts.switched_off = all.switched_off - self.before.switched_off;
        counts.bursts_switched_off = all.bursts_switched_off - self.before.bursts_switched_off;
        counts.phase_marks = all.phase_marks - self.before.phase_marks;
        self.before = all;
        put
    }

    /// Writes the code of the programs in which samples of the file fell.
    fn write_bpf(&mut self) -> Result<(), RecorderError> {
        let Some(bpf) = &mut self.bpf else { return Ok(()) };
        let records = bpf.take(self.writer.events(), &mut self.tally.kernel)?;
        self.writer.write_raw(&records.symbols)?;
        for body in &records.bodies {
            self.writer.write_user_record(RecordType(RECORD_TYPE), body)?;
        }
        self.unread_bpf = records.degradation;
        Ok(())
    }

    /// What is counted on and on.
    fn counts_of_all_files(&self) -> Counts {
        let left_out = self.control.as_ref().map(Control::left_out).unwrap_or_default();
        Counts {
            late: self.order.late(),
            switched_off: left_out.samples,
            bursts_switched_off: left_out.bursts,
            phase_marks: self.control.as_ref().map_or(0, Control::marks),
            ..Counts::default()
        }
    }

    /// Writes records of what is found when recording begins.
    pub(crate) fn write_found(&mut self, found: &mut [u8]) -> Result<(), RecorderError> {
        self.files.identify(found);
        for record in records(found) {
            let record = record?;
            self.cgroups.see(&record);
            self.vdso_32.see(&record);
        }
        self.sampled_code.iter().try_for_each(|code| code.see(found))?;
        self.members.iter_mut().try_for_each(|members| members.found(found))?;
        if let Some(standing) = &mut self.standing {
            for record in records(found) {
                standing.see(&record?);
            }
        }
        self.write_standing(found)
    }

    /// Writes records of what was there before.
    pub(crate) fn write_standing(&mut self, standing: &[u8]) -> Result<(), RecorderError> {
        for record in records(standing) {
            let record = record?;
            self.tally.see(&record);
            self.files.see(&record);
        }
        Ok(self.writer.write_raw(standing)?)
    }

    /// What makes the file less than it could be, in sentences.
    pub(crate) fn degradations(&self) -> impl Iterator<Item = String> {
        // Where no burst came, that is said, and nobody expects branch stacks.
        let has_bursts = self.burst.is_some_and(|id| self.tally.samples_of(id) > 0);
        let late = (self.lead.is_full() && has_bursts).then(|| {
            let why = if self.vdso_32.is_mapped() { "for 32-bit code has no bursts" } else { "which came late" };
            format!(
                "samples of other events come before the first burst, {why}: tools that judge by the first sample see no branch stacks \
                 (llvm-profgen; give it what `hbbp export --format perf-script --stacks-only` writes)"
            )
        });
        let of_control = self.control.as_ref().and_then(Control::degradation);
        let unseen = self.unseen_changes.clone().filter(|_| !self.tally.kernel.is_empty());
        late.into_iter().chain(of_control).chain(self.unread_bpf.clone()).chain(unseen)
    }

    /// Reads every ring once.
    pub(crate) fn round(&mut self, source: &mut dyn RingSource) -> Result<(), RecorderError> {
        if let Some(family) = &mut self.family {
            family.read(&mut self.rings, source.rings(), |ring, records| source.drain(ring, records))?;
        }
        for ring in 0..source.rings() {
            self.ring.clear();
            match self.rings.get_mut(ring) {
                Some(kept) => std::mem::swap(kept, &mut self.ring),
                None => source.drain(ring, &mut self.ring),
            }
            if let Some(members) = &mut self.members {
                members.complete(&mut self.ring, self.order.let_go())?;
            }
            self.take_in()?;
        }
        self.files.look();
        self.hear()?;
        self.order.end_round(&mut self.out);
        self.write()
    }

    /// Takes in what one ring held: the processes it is of may end soon.
    fn take_in(&mut self) -> Result<(), RecorderError> {
        self.files.identify(&mut self.ring);
        for record in records(&self.ring) {
            let record = record?;
            self.cgroups.see(&record);
            self.vdso_32.see(&record);
            self.bpf.iter_mut().for_each(|bpf| bpf.take_in(&record));
        }
        self.sampled_code.iter().try_for_each(|code| code.see(&self.ring))?;
        Ok(self.order.take(&mut self.ring)?)
    }

    /// Takes in what programs say, and writes the marks of their phases. What they said before a sample was made is there by now.
    fn hear(&mut self) -> Result<(), RecorderError> {
        let marks: Vec<PhaseMark> = self.control.iter_mut().flat_map(Control::hear).collect();
        self.standing.iter_mut().for_each(|standing| marks.iter().for_each(|mark| standing.mark(mark)));
        for mark in marks {
            self.writer.write_user_record(RecordType(RECORD_TYPE), &mark.to_record_body())?;
        }
        for mark in self.cgroups.take_new() {
            self.writer.write_user_record(RecordType(RECORD_TYPE), &mark.to_record_body())?;
        }
        for body in self.vdso_32.take_new().iter().flat_map(|file| MadeCode::Vdso(file).to_record_bodies()) {
            self.writer.write_user_record(RecordType(RECORD_TYPE), &body)?;
        }
        Ok(())
    }

    /// Writes what was let go, and counts it.
    fn write(&mut self) -> Result<(), RecorderError> {
        self.leave_out()?;
        self.put()
    }

    fn leave_out(&mut self) -> Result<(), RecorderError> {
        Ok(self.control.as_mut().map_or(Ok(()), |control| control.leave_out(&mut self.out))?)
    }

    fn put(&mut self) -> Result<(), RecorderError> {
        if let Some(standing) = &mut self.standing {
            for record in records(&self.out) {
                standing.see(&record?);
            }
        }
        if self.vdso_32.is_mapped() {
            self.lead.let_all_through(&mut self.out);
        }
        self.lead.hold_back(&mut self.out)?;
        if self.out.is_empty() {
            return Ok(());
        }
        for record in records(&self.out) {
            let record = record?;
            self.tally.see(&record);
            self.files.see(&record);
            self.bpf.iter_mut().for_each(|bpf| bpf.pass(&record, &self.tally.kernel, self.lead.is_open()));
        }
        let written = self.writer.write_raw(&self.out);
        self.unmarked += self.out.len();
        self.out.clear();
        written?;
        if self.unmarked >= ROUND_BYTES && !self.lead.is_open() {
            self.writer.write_finished_round()?;
            self.unmarked = 0;
        }
        // A collector that is killed loses no more than two rounds.
        self.writer.flush()?;
        self.safe = Safe { bytes: self.writer.data_size(), samples: self.tally.counts.samples };
        Ok(())
    }

    /// The file, to be finished.
    pub(crate) fn ended(mut self) -> Ended<W> {
        let (mapped_files, not_kept) = self.files.conclude(true);
        self.tally.mapped.extend(self.files.served().into_iter().map(|(path, id)| (path, Some(id))));
        let degradations = self.degradations().chain(not_kept).collect();
        let Self { writer, tally, safe, .. } = self;
        Ended { writer, tally, mapped_files, degradations, safe, written: Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::io::Cursor;
    use std::path::PathBuf;

    use perfdata::{Chunk, EventDescription, Features, Recording};

    use super::*;
    use crate::session::record_layout::first_record;

    /// Records of a real recording, handed out through rings as a kernel would: each ring in order of time, read a little later than
    /// the one before, all rings once per round.
    struct Playback {
        rings: Vec<Vec<(usize, Vec<u8>)>>,
        round: usize,
        stopped: bool,
    }

    /// Records that come in during a round, and while one ring is read.
    const ROUND: usize = 97;
    const SKEW: usize = 11;

    impl RingSource for Playback {
        fn rings(&self) -> usize {
            self.rings.len()
        }

        fn drain(&mut self, ring: usize, records: &mut Vec<u8>) {
            let now = if self.stopped { usize::MAX } else { self.round * ROUND + ring * SKEW };
            let held = &mut self.rings[ring];
            let count = held.iter().take_while(|(made, _)| *made < now).count();
            held.drain(..count).for_each(|(_, record)| records.extend(record));
        }

        fn wait(&mut self) -> Result<Option<Stop>, Errno> {
            self.round += 1;
            let left: usize = self.rings.iter().map(Vec::len).sum();
            Ok((left < ROUND / 2).then_some(Stop::TargetsEnded))
        }

        fn stop(&mut self) {
            self.stopped = true;
        }
    }

    /// The kernel's own records, whole, each with its time.
    fn kernel_records(recording: &Recording) -> Vec<(u64, Vec<u8>)> {
        let layout = RecordLayout::of(&recording.events()[0].attr);
        let mut records = Vec::new();
        let mut chunks = recording.chunks();
        let mut chunk = Chunk::new();
        let mut time = 0;
        while chunks.next_into(&mut chunk).unwrap() {
            for raw in chunk.records().filter(|raw| raw.record_type.0 < 64) {
                let size = (raw.body.len() + 8) as u16;
                let header =
                    [&raw.record_type.0.to_le_bytes()[..], &raw.misc.to_le_bytes(), &size.to_le_bytes()].concat();
                let record = [&header, raw.body].concat();
                time = layout.time(&first_record(&record, 0).unwrap().unwrap()).unwrap_or(time);
                records.push((time, record));
            }
        }
        records
    }

    fn recorder(events: &[EventDescription]) -> Recorder<Cursor<Vec<u8>>> {
        Recorder::new(Writer::create(Cursor::new(Vec::new()), events).unwrap(), None)
    }

    fn sorted(records: &[(u64, Vec<u8>)]) -> Vec<&[u8]> {
        let mut bytes: Vec<&[u8]> = records.iter().map(|(_, record)| record.as_slice()).collect();
        bytes.sort();
        bytes
    }

    /// Several events whose records all carry ids: bursts, simulated and written ones; and those of real hardware where they are.
    fn recordings() -> Vec<PathBuf> {
        let committed = ["bursts/threads.data", "simulated/ivy-bridge.data", "containers/several.data"];
        let hardware = [
            "westmere-lbr.perf.data",
            "callgraph_and_branch-3.8.perf.data",
            "branch-4.14.perf.data",
            "lost_samples-4.4.perf.data",
            "hybrid_topology.perf.data",
            "weight_struct.perf.data",
        ];
        let hardware = hardware.into_iter().filter_map(testing::hardware_recording);
        committed.map(testing::fixture_file).into_iter().chain(hardware).collect()
    }

    #[test]
    fn recordings_come_through_the_rings_whole_and_in_order() {
        for path in recordings() {
            let name = path.display();
            let recording = Recording::open(&path).unwrap();
            let mut records = kernel_records(&recording);
            records.sort_by_key(|(time, _)| *time);
            let mut source = Playback { rings: vec![Vec::new(); 5], round: 0, stopped: false };
            // By what it says, not by turns: rings differ in how much they hold.
            for (made, (time, record)) in records.iter().enumerate() {
                let ring = (time / 7 % 5) as usize;
                source.rings[ring].push((made, record.clone()));
            }
            let mut recorder = recorder(recording.events());
            assert_eq!(recorder.run(&mut source).unwrap(), Stop::TargetsEnded);
            let counts = recorder.tally.counts;
            let file = recorder.ended().writer.finish(&Features::default()).unwrap().into_inner();
            let copy = Recording::from_bytes(file).unwrap();
            let copied = kernel_records(&copy);

            assert!(copied.is_sorted_by_key(|(time, _)| *time), "{name}: in order of time");
            assert_eq!(sorted(&copied), sorted(&records), "{name}: the same records");
            assert_eq!(counts.late, 0, "{name}");
            let samples = records.iter().filter(|(_, record)| record[0] == 9).count();
            assert_eq!(counts.samples as usize, samples, "{name}");
            assert!(samples > 0, "{name}");
        }
    }

    #[test]
    fn samples_are_counted_per_event() {
        count_samples(&testing::fixture_file("simulated/ivy-bridge.data"));
        if let Some(path) = testing::hardware_recording("lost_samples-4.4.perf.data") {
            let counts = count_samples(&path);
            assert!(counts.lost + counts.lost_by_hardware > 0, "{counts:?}");
        }
    }

    fn count_samples(path: &std::path::Path) -> crate::session::tally::Counts {
        let recording = Recording::open(path).unwrap();
        let rings = vec![kernel_records(&recording).into_iter().map(|(_, record)| (0, record)).collect()];
        let mut recorder = recorder(recording.events());
        recorder.run(&mut Playback { rings, round: 0, stopped: false }).unwrap();
        let mut expected: HashMap<usize, u64> = HashMap::new();
        let mut chunks = recording.chunks();
        let mut chunk = Chunk::new();
        while chunks.next_into(&mut chunk).unwrap() {
            for raw in chunk.records().filter(|raw| raw.is_sample()) {
                *expected.entry(recording.sample(&raw).unwrap().event).or_default() += 1;
            }
        }
        for (event, &samples) in recorder.tally.samples.iter().enumerate() {
            assert_eq!(samples, expected.get(&event).copied().unwrap_or(0), "event {event}");
        }
        assert!(expected.len() > 1, "{expected:?}");
        recorder.tally.counts
    }

    /// Rounds are marked, so that readers can sort a long recording in pieces.
    #[test]
    fn long_recordings_are_marked() {
        let attr = perfdata::EventAttr { sample_format: perfdata::SampleFormat::TIME, ..Default::default() };
        let events = [EventDescription { attr, ..EventDescription::default() }];
        let records = (0..200_000_u64)
            .map(|time| (time as usize, [&[9, 0, 0, 0, 0, 0, 16, 0][..], &time.to_le_bytes()].concat()));
        let mut source = Playback { rings: vec![records.collect()], round: 0, stopped: false };
        // Reading takes rounds of 97 records; the rest at the end would be one piece.
        let mut recorder = recorder(&events);
        recorder.run(&mut source).unwrap();
        let file = recorder.ended().writer.finish(&Features::default()).unwrap().into_inner();
        let recording = Recording::from_bytes(file).unwrap();
        let (mut chunks, mut chunk) = (recording.chunks(), Chunk::new());
        let mut marks = 0;
        while chunks.next_into(&mut chunk).unwrap() {
            marks += chunk.records().filter(|raw| raw.record_type == perfdata::RecordType::FINISHED_ROUND).count();
        }
        assert_eq!(marks, 200_000 * 16 / ROUND_BYTES);
    }
}
