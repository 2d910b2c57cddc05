//! The text of `perf script --show-mmap-events -F ip,brstack`, which llvm-profgen and many scripts read.
//!
//! ```text
//! PERF_RECORD_MMAP2 7/7: [0x401000(0x1000) @ 0x1000 fe:00 12 0]: r-xp /bin/four
//!            401019 0x40101e/0x401000/P/-/-/0/  0x401019/0x40101d/M/-/-/0/
//! ```
//!
//! Records are in the order of the file, not sorted by time. Where the recording has branch stacks, samples without one are left out: for
//! llvm-profgen an address alone is part of a call chain.

use std::fmt;
use std::io::{self, Write};

use perfdata::{
    BranchKind, Chunk, EventDescription, MappedFile, Mmap, RawRecord, Record, Recording, Sample, SampleFormat,
};

/// What is not in the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NotWritten {
    /// Samples without a branch stack, in a recording that has some.
    pub without_stack: u64,
    /// Samples of events that were not asked for.
    pub of_other_events: u64,
    /// Records that cannot be read.
    pub malformed: u64,
}

/// Writes mappings and samples of a recording as they are read: of all events, or of `only` these (by index).
pub fn perf_script(recording: &Recording, only: Option<&[usize]>, out: &mut dyn Write) -> anyhow::Result<NotWritten> {
    let has_stacks = |event: &EventDescription| event.attr.sample_format.contains(SampleFormat::BRANCH_STACK);
    let wants_stacks = recording.events().iter().any(has_stacks);
    let mut not_written = NotWritten::default();
    let mut chunks = recording.chunks();
    let mut chunk = Chunk::new();
    while chunks.next_into(&mut chunk)? {
        for raw in chunk.records() {
            if !raw.is_sample() {
                not_written.malformed += u64::from(!mapping(recording, &raw, out)?);
                continue;
            }
            match recording.sample(&raw) {
                Ok(Sample { branch_stack, .. })
                    if wants_stacks && branch_stack.is_none_or(|stack| stack.is_empty()) =>
                {
                    not_written.without_stack += 1;
                }
                Ok(Sample { event, .. }) if only.is_some_and(|only| !only.contains(&event)) => {
                    not_written.of_other_events += 1;
                }
                Ok(sample) => write_sample(&sample, out)?,
                Err(_) => not_written.malformed += 1,
            }
        }
    }
    Ok(not_written)
}

fn write_sample(sample: &Sample<'_>, out: &mut dyn Write) -> io::Result<()> {
    write!(out, " {:16x}", sample.ip.unwrap_or_default().0)?;
    for branch in sample.branch_stack.iter().flat_map(|stack| stack.iter()) {
        let flags = branch.flags;
        let predicted = match (flags.mispredicted(), flags.predicted()) {
            (true, _) => 'M',
            (false, true) => 'P',
            (false, false) => '-',
        };
        let letter = |set, letter| if set { letter } else { '-' };
        let [in_tx, abort] = [letter(flags.in_tx(), 'X'), letter(flags.abort(), 'A')];
        let kind = if flags.kind() == BranchKind::UNKNOWN { String::new() } else { flags.kind().to_string() };
        let (from, to, cycles) = (branch.from.0, branch.to.0, flags.cycles());
        write!(out, " {from:#x}/{to:#x}/{predicted}/{in_tx}/{abort}/{cycles}/{kind} ")?;
    }
    writeln!(out)
}

/// Writes a mapping, of other records nothing; whether the record could be read.
fn mapping(recording: &Recording, raw: &RawRecord<'_>, out: &mut dyn Write) -> io::Result<bool> {
    match recording.parse(raw) {
        Ok(Record::Mmap(mmap)) => {
            let letter = if mmap.data { 'r' } else { 'x' };
            writeln!(out, "PERF_RECORD_MMAP {}]: {letter} {}", MappedRange(&mmap), String::from_utf8_lossy(mmap.path))?;
        }
        Ok(Record::Mmap2(mmap)) => {
            let letter = |bit, letter| if mmap.prot & bit != 0 { letter } else { '-' };
            let shared = if mmap.flags & 1 != 0 { 's' } else { 'p' };
            let prot: String = [letter(1, 'r'), letter(2, 'w'), letter(4, 'x'), shared].iter().collect();
            let path = String::from_utf8_lossy(mmap.path);
            writeln!(out, "PERF_RECORD_MMAP2 {} {}]: {prot} {path}", MappedRange(&mmap), FileId(mmap.file))?;
        }
        Ok(_) => {}
        Err(_) => return Ok(false),
    }
    Ok(true)
}

/// `pid/tid: [start(length) @ offset`
struct MappedRange<'a>(&'a Mmap<'a>);

impl fmt::Display for MappedRange<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mmap = self.0;
        let (pid, tid) = (mmap.pid as i32, mmap.tid as i32);
        // As `%#x` of C: no 0x before 0.
        let [start, length, offset] = [mmap.start.0, mmap.len, mmap.pgoff].map(|number| match number {
            0 => "0".to_string(),
            number => format!("{number:#x}"),
        });
        write!(f, "{pid}/{tid}: [{start}({length}) @ {offset}")
    }
}

struct FileId(MappedFile);

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            MappedFile::Inode { maj, min, ino, generation } => write!(f, "{maj:02x}:{min:02x} {ino} {generation}"),
            MappedFile::BuildId(id) => write!(f, "<{id}>"),
            MappedFile::Unknown => f.write_str("00:00 0 0"),
        }
    }
}
