//! A recording in files that follow each other, each of them whole.
//!
//! ```text
//! due -> the turn: the next burst ends the file -> features -> its name, old ones go -> the next file: what lives, code, records
//! a write fails -> the file ends early -> no file: what comes is counted -> there is room -> the next file, which says how much that was
//! ```

mod name;
mod series;

use std::fs::{File, OpenOptions};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use perfdata::{EventDescription, Lost, Writer};

use crate::RecordError;
use crate::errno::plain;
use crate::plan::rotation::Rotation;
use crate::session::output::OutputError;
use crate::session::recorder::{Ended, RecorderError, Stop};
use crate::session::rotation::series::{Part, Series};
use crate::session::standing::sample_id;
use crate::session::{Session, Summary};
use crate::sys::own_cpu_time;

/// How long a burst is waited for that the next file can begin with, and which part of the time of a file at most.
const PATIENCE: Duration = Duration::from_secs(2);
const PART_FOR_PATIENCE: u32 = 4;
/// Bytes that there must be on the disk for a file that follows one for which there was no room.
const ROOM: u64 = 1 << 20;
/// When it is looked for room first, and how long after that at most.
const FIRST_LOOK: Duration = Duration::from_secs(1);
const LAST_LOOK: Duration = Duration::from_secs(10);

/// The files of a recording.
#[derive(Debug)]
pub(crate) struct Rotating {
    options: Rotation,
    series: Series,
    /// The file that is being written; `None` while there is no room for one.
    part: Option<Part>,
    /// Bytes of that file before its records.
    before_records: u64,
    /// Bytes of records that it began with.
    first_bytes: u64,
    /// Which file of the recording it is, from 1 on.
    pub(crate) number: u64,
    begun: Instant,
    /// When it ends, or when there is to be looked for room.
    due: Option<Instant>,
    /// After how long it is looked for room.
    look: Duration,
    /// Samples that were made while there was no file, and that no file has told yet.
    unwritten: u64,
    /// Those that this file tells.
    pub(crate) told: u64,
    /// What is to be said with the next finished file.
    sentences: Vec<String>,
    /// CPU time of the collector before this file.
    pub(crate) own_time: Duration,
}

impl Rotating {
    /// Makes the first file of the series that `path` is the pattern of. Returns what is to be said, too.
    ///
    /// # Errors
    /// It cannot be made, or another recorder writes to the series.
    pub(crate) fn begin(path: &Path, options: &Rotation) -> Result<(Self, File, Vec<String>), OutputError> {
        let error = |source| OutputError::Create { path: path.to_owned(), source };
        let (series, sentences) = Series::open(path, options.keep.clone())?;
        let part = series.begin().map_err(error)?;
        let file = part.file().map_err(error)?;
        let rotating = Self {
            options: options.clone(),
            series,
            part: Some(part),
            before_records: 0,
            first_bytes: 0,
            number: 1,
            begun: Instant::now(),
            due: None,
            look: FIRST_LOOK,
            unwritten: 0,
            told: 0,
            sentences: Vec::new(),
            own_time: Duration::ZERO,
        };
        Ok((rotating, file, sentences))
    }

    /// Nothing was recorded: the first file goes again.
    pub(crate) fn abandon(mut self) {
        self.part.take().into_iter().for_each(Part::abandon);
    }

    /// The first file records from now on, of which so much is written.
    pub(crate) fn start(&mut self, before_records: u64, first_bytes: u64) {
        (self.before_records, self.first_bytes) = (before_records, first_bytes);
        self.begun = Instant::now();
        self.due = self.options.every.and_then(|every| self.begun.checked_add(every));
    }

    /// When this file began.
    pub(crate) fn begun(&self) -> Instant {
        self.begun
    }

    /// When something is to be done at the latest.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Whether the next file is to begin: this one has so many bytes of records.
    fn is_due(&mut self, bytes: u64) -> bool {
        let is_time = self.due.is_some_and(|due| Instant::now() >= due);
        if self.part.is_some() {
            let most = self.options.bytes.map(|most| most.saturating_add(self.first_bytes));
            return is_time || most.is_some_and(|most| bytes >= most);
        }
        if is_time {
            self.remove_old();
        }
        let is_due = is_time && self.series.room() >= ROOM;
        if is_time && !is_due {
            self.look_later();
        }
        is_due
    }

    fn remove_old(&mut self) {
        let sentences = self.series.remove_old();
        self.sentences.extend(sentences);
    }

    fn look_later(&mut self) {
        self.due = Instant::now().checked_add(self.look);
        self.look = (2 * self.look).min(LAST_LOOK);
    }

    /// The time of the next file: at the end of this one's, unless that is long past.
    fn next_due(&self) -> Option<Instant> {
        let (every, now) = (self.options.every?, Instant::now());
        let planned = self.due.filter(|_| self.part.is_some()).and_then(|due| due.checked_add(every));
        planned.filter(|&planned| planned > now).or_else(|| now.checked_add(every))
    }

    fn patience(&self) -> Duration {
        self.options.every.map_or(PATIENCE, |every| PATIENCE.min(every / PART_FOR_PATIENCE))
    }

    /// The file is whole: it gets its name, and old ones go. Returns its path, and what is to be said.
    pub(crate) fn finish(&mut self) -> Result<(Option<PathBuf>, Vec<String>), RecordError> {
        let Some(part) = self.part.take() else { return Ok((None, Vec::new())) };
        let renamed = self.series.finish(&part, true);
        let path = renamed.map_err(RecordError::system("giving the recording its name"))?;
        self.look = FIRST_LOOK;
        self.remove_old();
        Ok((Some(path), std::mem::take(&mut self.sentences)))
    }

    /// The file ends early, at so many bytes of records. Returns where it is; nowhere, if it has no samples.
    pub(crate) fn cut(&mut self, safe: Safe) -> Option<PathBuf> {
        let part = self.part.take()?;
        if safe.samples == 0 {
            self.unwritten += std::mem::take(&mut self.told);
            part.abandon();
            return None;
        }
        // What comes after them is half of something.
        let _ = part.cut(self.before_records + safe.bytes);
        let path = self.series.finish(&part, false);
        self.remove_old();
        Some(path.unwrap_or_else(|_| part.path().to_owned()))
    }

    /// The names of the files, with the word TIME.
    pub(crate) fn names(&self) -> String {
        self.series.names()
    }
}

/// What of a file is on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Safe {
    /// Bytes of records,
    pub(crate) bytes: u64,
    /// and the samples among them.
    pub(crate) samples: u64,
}

impl Session<'_> {
    /// Records in files that follow each other until there is a reason to stop.
    pub(crate) fn run_in_files(&mut self, say: &mut dyn FnMut(&str)) -> Result<Stop, RecordError> {
        let stop = loop {
            let Some(rotating) = &mut self.rotating else { return Ok(self.recorder.run(&mut self.live)?) };
            let is_due = rotating.is_due(self.recorder.writer.data_size());
            self.live.due = rotating.due();
            let done = if is_due {
                self.change_file(say)
            } else {
                self.recorder.step(&mut self.live).map_err(RecordError::from)
            };
            if let Some(stop) = done.or_else(|error| self.go_on_without(error, say).map(|()| None))? {
                break stop;
            }
        };
        if let Err(error) = self.recorder.end(&mut self.live) {
            self.go_on_without(error.into(), say)?;
            self.recorder.end(&mut self.live)?;
        }
        Ok(stop)
    }

    /// Ends a file, and begins the next one.
    fn change_file(&mut self, say: &mut dyn FnMut(&str)) -> Result<Option<Stop>, RecordError> {
        let patience = self.rotating.as_ref().map_or(PATIENCE, Rotating::patience);
        self.live.due = Instant::now().checked_add(patience);
        let code = match self.recorder.turn(&mut self.live, patience)? {
            Ok(code) => code,
            Err(stop) => return Ok(Some(stop)),
        };
        let ended = self.recorder.go_on_in(nowhere(self.recorder.writer.events())?);
        let Some(rotating) = &mut self.rotating else { return Ok(None) };
        let was_written = rotating.part.is_some();
        let due = rotating.next_due();
        if was_written {
            self.complete_file(ended, say)?;
        } else {
            rotating.unwritten += ended.tally.counts.samples;
        }
        self.begin_next(&code, due, say)?;
        Ok(None)
    }

    /// Completes a file after which another one comes.
    fn complete_file(&mut self, ended: Ended<BufWriter<File>>, say: &mut dyn FnMut(&str)) -> Result<(), RecordError> {
        let (safe, samples) = (ended.safe, ended.tally.counts.samples);
        match self.finish_file(ended) {
            Ok(summary) => {
                let Some(rotating) = &mut self.rotating else { return Ok(()) };
                let (path, sentences) = match rotating.finish() {
                    Ok(finished) => finished,
                    // Somebody has taken it away.
                    Err(error) => {
                        rotating.unwritten += samples;
                        say(&format!("{}: {error}; {samples} samples are lost", rotating.names()));
                        return Ok(());
                    }
                };
                let summary = Summary { path: path.unwrap_or_default(), ..summary };
                say(&summary.line_of_file());
                sentences.iter().for_each(|sentence| say(sentence));
            }
            Err(error) => self.cut_file(&error, safe, samples, say),
        }
        Ok(())
    }

    /// A file cannot be written on: the recording goes on without, until there is room.
    ///
    /// # Errors
    /// It is not the file that fails.
    fn go_on_without(&mut self, error: RecordError, say: &mut dyn FnMut(&str)) -> Result<(), RecordError> {
        let of_file = matches!(
            &error,
            RecordError::Recorder(RecorderError::Write(perfdata::Error::Io { .. }))
                | RecordError::Write(perfdata::Error::Io { .. })
        );
        if !of_file {
            return Err(error);
        }
        let Ended { safe, tally, writer, .. } = self.recorder.go_on_in(nowhere(self.recorder.writer.events())?);
        // What it holds would come after what is cut off.
        drop(writer);
        self.cut_file(&error, safe, tally.counts.samples, say);
        Ok(())
    }

    /// A file ends early. Of its `samples`, `safe` are in it.
    fn cut_file(&mut self, error: &RecordError, safe: Safe, samples: u64, say: &mut dyn FnMut(&str)) {
        let Some(rotating) = &mut self.rotating else { return };
        rotating.unwritten += samples.saturating_sub(safe.samples);
        let names = rotating.series.names();
        let was_written = rotating.part.is_some();
        let cut = rotating.cut(safe);
        if was_written {
            let early = cut.map_or(String::new(), |path| format!("; {} ends early", path.display()));
            say(&format!("{names}: {error}{early}. Recording goes on in a file when there is room again"));
        }
        rotating.look_later();
    }

    /// Begins the next file, with what lives, and `code`; without room there is none.
    fn begin_next(&mut self, code: &[u8], due: Option<Instant>, say: &mut dyn FnMut(&str)) -> Result<(), RecordError> {
        let events = self.recorder.writer.events().to_vec();
        let Some(rotating) = &mut self.rotating else { return Ok(()) };
        let begun = rotating.series.begin().and_then(|part| Ok((part.file()?, part)));
        let (file, part) = match begun {
            Ok(begun) => begun,
            Err(error) => {
                if rotating.look == FIRST_LOOK {
                    say(&format!(
                        "{}: {}. Recording goes on in a file when one can be made",
                        rotating.series.names(),
                        plain(&error)
                    ));
                }
                rotating.look_later();
                return Ok(());
            }
        };
        rotating.part = Some(part);
        rotating.number += 1;
        rotating.told = std::mem::take(&mut rotating.unwritten);
        rotating.own_time = own_cpu_time();
        let told = rotating.told;
        self.began = SystemTime::now();
        let begun_at = Instant::now();
        self.recorder.writer = Writer::create(BufWriter::with_capacity(1 << 18, file), &events)?;
        self.begin_file()?;
        if told > 0 {
            let id = events.first().and_then(|event| event.ids.first()).copied().unwrap_or(0);
            let lost = Lost { id, lost: told, sample_id: sample_id(&events, 0, 0) };
            self.recorder.writer.write_lost(&lost)?;
        }
        if let Some(standing) = &mut self.recorder.standing {
            standing.prune();
        }
        let before_records = self.before_records()?;
        self.recorder.begin_file(code)?;
        let first_bytes = self.recorder.writer.data_size();
        if let Some(rotating) = &mut self.rotating {
            (rotating.before_records, rotating.first_bytes) = (before_records, first_bytes);
            (rotating.begun, rotating.due) = (begun_at, due);
        }
        if told > 0 {
            say(&format!("recording goes on in a file; {told} samples were made when there was none, and are lost"));
        }
        Ok(())
    }

    /// Bytes of the file before its records.
    pub(crate) fn before_records(&mut self) -> Result<u64, RecordError> {
        let writer = &mut self.recorder.writer;
        writer.flush()?;
        let records = writer.data_size();
        let bytes = writer.get_mut().get_ref().metadata().map_err(RecordError::system("looking at the recording"))?;
        Ok(bytes.len().saturating_sub(records))
    }

    /// The recording ends: if there is no file, one is made for what is to be told.
    ///
    /// # Errors
    /// There is no room for it.
    pub(crate) fn end_with_a_file(&mut self, say: &mut dyn FnMut(&str)) -> Result<(), RecordError> {
        let Some(rotating) = &mut self.rotating else { return Ok(()) };
        if rotating.part.is_some() {
            return Ok(());
        }
        let ended = self.recorder.go_on_in(nowhere(self.recorder.writer.events())?);
        rotating.unwritten += ended.tally.counts.samples;
        let unwritten = rotating.unwritten;
        self.begin_next(&[], None, say)?;
        match &self.rotating {
            Some(Rotating { part: None, .. }) => {
                let error = std::io::Error::other(format!("there is no room for a file; {unwritten} samples are lost"));
                Err(RecordError::System { what: "recording", source: error })
            }
            _ => Ok(()),
        }
    }
}

/// A writer of what cannot be kept.
fn nowhere(events: &[EventDescription]) -> Result<Writer<BufWriter<File>>, RecordError> {
    let file = OpenOptions::new().write(true).open("/dev/null").map_err(RecordError::system("opening /dev/null"))?;
    Ok(Writer::create(BufWriter::new(file), events)?)
}
