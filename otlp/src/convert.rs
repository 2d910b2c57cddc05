//! Makes recordings of profiles: finds whose they are, and what their values mean.

use std::io::{Cursor, Seek, Write};
use std::path::Path;

use crate::Error;
use crate::attributes::{Attribute, Whose};
use crate::container::{Unpacked, for_each_message};
use crate::events::{BY_ADDRESS, Event, Meaning};
use crate::frames::Frames;
use crate::made::{Files, Made, Profiled, Shared};
use crate::message::{InstrumentationScope, ProfileHead, Sample};
use crate::notes::Notes;
use crate::owners::{OfOwner, Owners, Recordings};
use crate::tables::{Fields, Table, Tables, decode};

/// Writes a recording of what is in a file; returns `out`.
///
/// # Errors
/// The file cannot be read, is no OTLP profile of a version that is known, is damaged, or has nothing that counts; or `out` fails.
pub fn convert<W: Write + Seek>(file: &Path, files: &dyn Files, out: W) -> Result<W, Error> {
    convert_unpacked(&Unpacked::read(file)?, files, out)
}

/// The same of what a file has, unpacked.
///
/// # Errors
/// As [`convert`].
pub fn convert_unpacked<W: Write + Seek>(profiles: &Unpacked, files: &dyn Files, out: W) -> Result<W, Error> {
    let mut made = Made::new(out)?;
    fill(Recordings::One(&mut made), profiles, files)?;
    made.finish()
}

/// A recording in memory of what each service did on each host, in the order of their names.
///
/// # Errors
/// As [`convert`], but that nothing counts is an error of each recording; or there are more than 4,096 of them.
pub fn convert_apart(profiles: &Unpacked, files: &dyn Files) -> Result<Vec<OfOwner>, Error> {
    let mut owners = Owners::new();
    fill(Recordings::Apart(&mut owners, || Cursor::new(Vec::new())), profiles, files)?;
    if owners.is_empty() {
        return Err(Error::NothingToCount { has: Notes::default().instead() });
    }
    Ok(owners.into_iter().map(|(owner, made)| OfOwner::of(owner, made)).collect())
}

/// Puts the samples of all messages into recordings.
fn fill<W: Write + Seek>(recordings: Recordings<'_, W>, profiles: &Unpacked, files: &dyn Files) -> Result<(), Error> {
    let mut converter = Converter { recordings, shared: Shared::new(files, ALWAYS), message: 0, profile: 0 };
    for_each_message(profiles, |message, packed| {
        // What was packed inside of the file may count for more than its bytes there, as honest messages do.
        let bytes = (message.len() as u64).min(packed.saturating_mul(MOST_PACKING));
        converter.shared.most = converter.shared.most.saturating_add(bytes.saturating_mul(MOST_GROWTH));
        converter.message += 1;
        converter.message(message)
    })
}

/// How much larger the recording is than the messages, at most, and what it may have beyond that. A sample is 8 bytes and more there,
/// and some 60 in the recording; a file that a process has for one sample, some 200.
const MOST_GROWTH: u64 = 32;
const ALWAYS: u64 = 64 << 20;
/// How many bytes of a message count for one that it was packed to.
const MOST_PACKING: u64 = 32;
/// How long a profile without a duration is taken to be, ns.
const DURATION: u64 = 1_000_000_000;

struct Converter<'a, W: Write> {
    recordings: Recordings<'a, W>,
    shared: Shared<'a>,
    /// Which message it is, from 1 on.
    message: usize,
    /// Which profile it is, from 1 on.
    profile: u64,
}

/// A profile that has samples.
struct Headed<'a> {
    bytes: &'a [u8],
    head: ProfileHead,
}

impl<'a> Headed<'a> {
    /// `None` of one without samples.
    fn of(bytes: &'a [u8], tables: &Tables<'_>) -> Result<Option<Self>, Error> {
        if samples(bytes).next().is_none() {
            return Ok(None);
        }
        // Other signals have no such tables, and other versions other ones.
        if tables.is_empty(Table::Texts) {
            return Err(Error::Without { what: "dictionary" });
        }
        if tables.is_empty(Table::Stacks) {
            return Err(Error::Without { what: "table of stacks" });
        }
        Ok(Some(Headed { bytes, head: decode("a profile", bytes)? }))
    }

    fn samples(&self) -> impl Iterator<Item = Result<&'a [u8], Error>> {
        samples(self.bytes)
    }
}

/// The samples of a profile.
fn samples(profile: &[u8]) -> impl Iterator<Item = Result<&[u8], Error>> {
    Fields::of("a profile", profile).numbered(2)
}

impl<W: Write + Seek> Converter<'_, W> {
    fn message(&mut self, message: &[u8]) -> Result<(), Error> {
        let tables = Tables::of(message)?;
        let mut frames = Frames::of(&tables);
        for resource in Fields::of("the message", message).numbered(1) {
            let resource = resource?;
            let mut whose = Whose::default();
            for described in Fields::of("profiles of a resource", resource).numbered(1) {
                for attribute in Fields::of("a resource", described?).numbered(1) {
                    whose.set(&Attribute::of_resource(attribute?, &tables)?);
                }
            }
            for scope in Fields::of("profiles of a resource", resource).numbered(2) {
                let scope = scope?;
                let mut producers = Vec::new();
                for named in Fields::of("profiles of a profiler", scope).numbered(1) {
                    let InstrumentationScope { name, version } = decode("the name of a profiler", named?)?;
                    producers.push((name, version));
                }
                let mut profiles = Vec::new();
                for profile in Fields::of("profiles of a profiler", scope).numbered(2) {
                    profiles.extend(Headed::of(profile?, &tables)?);
                }
                let mut by_address = false;
                for Headed { head, .. } in &profiles {
                    by_address |= tables.value_type(head.sample_type)?.0 == BY_ADDRESS;
                }
                for profile in &profiles {
                    self.profile(profile, (&producers, by_address), &whose, (&tables, &mut frames))?;
                }
            }
        }
        Ok(())
    }

    /// `by_address`: the same profiler has the same instructions by address.
    fn profile(
        &mut self,
        profile: &Headed<'_>,
        (producers, by_address): (&[(String, String)], bool),
        whose: &Whose,
        (tables, frames): (&Tables<'_>, &mut Frames<'_>),
    ) -> Result<(), Error> {
        let head = &profile.head;
        let kind = tables.value_type(head.sample_type)?;
        let Some(mut meaning) = Meaning::of(&kind, &tables.value_type(head.period_type)?, head.period) else {
            return self.leave_out(profile, whose, frames, |notes, samples| notes.leave_out(&kind, samples));
        };
        if by_address && kind.0 == "instructions" {
            return self.leave_out(profile, whose, frames, |notes, samples| notes.by_context += samples);
        }
        let mut is_relative = false;
        for &index in &head.attribute_indices {
            is_relative |= frames.attribute(index)? == Attribute::Relative;
        }
        if is_relative {
            meaning.event = Event::Samples;
        }
        self.profile += 1;
        let duration = if head.duration_nano == 0 { DURATION } else { head.duration_nano };
        let (number, began) = (self.profile, head.time_unix_nano);
        let profiled = Profiled { number, producers, is_relative, meaning, began, duration };
        for sample in profile.samples() {
            let (sample, own) = of_whom(sample?, whose, frames)?;
            let made = self.recordings.of(&own)?;
            made.sample(&sample, (&profiled, &own), (self.message, frames), &mut self.shared)?;
        }
        Ok(())
    }

    /// Notes the samples of a profile that do not count.
    fn leave_out(
        &mut self,
        profile: &Headed<'_>,
        whose: &Whose,
        frames: &mut Frames<'_>,
        note: impl Fn(&mut Notes, u64),
    ) -> Result<(), Error> {
        if let Some(made) = self.recordings.only() {
            note(&mut made.notes, profile.samples().count() as u64);
            return Ok(());
        }
        for sample in profile.samples() {
            let (_, own) = of_whom(sample?, whose, frames)?;
            note(&mut self.recordings.of(&own)?.notes, 1);
        }
        Ok(())
    }
}

/// A sample, and whose it is: its own attributes go before those of its resource.
fn of_whom(sample: &[u8], whose: &Whose, frames: &mut Frames<'_>) -> Result<(Sample, Whose), Error> {
    let sample: Sample = decode("a sample", sample)?;
    let own = whose.of_sample(sample.attribute_indices.iter().map(|&index| frames.attribute(index)))?;
    Ok((sample, own))
}
