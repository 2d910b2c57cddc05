//! Where the fields of one event's samples lie: the order of the kernel's `perf_output_sample()`.

use crate::sample_tail::{SampleTail, TAIL, WHAT, counted, one, take_raw};
use crate::words::{U64s, Words};
use crate::{Avma, BranchSampleType, BranchStack, Error, EventAttr, ReadFormat, ReadValues, Sample, SampleFormat};

/// The fields of an event's attr that decide how its samples are laid out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SampleLayout {
    format: SampleFormat,
    read_format: ReadFormat,
    /// Bytes of the fields before READ, which all have one word.
    fixed_bytes: u64,
    hw_index: bool,
    counters: bool,
    user_regs: u64,
    intr_regs: u64,
}

/// The one-word fields at the start of a sample.
const FIXED: SampleFormat = SampleFormat(
    SampleFormat::IDENTIFIER.0
        | SampleFormat::IP.0
        | SampleFormat::TID.0
        | SampleFormat::TIME.0
        | SampleFormat::ADDR.0
        | SampleFormat::ID.0
        | SampleFormat::STREAM_ID.0
        | SampleFormat::CPU.0
        | SampleFormat::PERIOD.0,
);

impl SampleLayout {
    pub(crate) fn new(attr: &EventAttr) -> Self {
        Self {
            format: attr.sample_format,
            read_format: attr.read_format,
            fixed_bytes: u64::from((attr.sample_format.0 & FIXED.0).count_ones()) * 8,
            hw_index: attr.branch_sample_type.contains(BranchSampleType::HW_INDEX),
            counters: attr.branch_sample_type.contains(BranchSampleType::COUNTERS),
            user_regs: attr.sample_regs_user,
            intr_regs: attr.sample_regs_intr,
        }
    }

    /// The place of the event id, in words from the sample's start.
    pub(crate) fn id_from_start(format: SampleFormat) -> Option<usize> {
        if format.contains(SampleFormat::IDENTIFIER) {
            return Some(0);
        }
        let before = [SampleFormat::IP, SampleFormat::TID, SampleFormat::TIME, SampleFormat::ADDR];
        let before = before.iter().filter(|&&field| format.contains(field)).count();
        format.contains(SampleFormat::ID).then_some(before)
    }

    /// Reads a sample's body.
    ///
    /// The sample is put together from values, and nothing takes its address: inlined, fields that the caller does not look
    /// at cost nothing.
    #[inline]
    pub(crate) fn parse<'a>(&self, event: usize, offset: u64, body: &'a [u8]) -> Result<Sample<'a>, Error> {
        let words = Words(body.as_chunks().0);
        if self.hw_index | self.counters {
            return self.parse_exact_fit(event, offset, words);
        }
        let (sample, _rest) = self.parse_words(event, offset, words)?;
        Ok(sample)
    }

    /// The kernel leaves the index word out of an empty stack, and the counter words when the hardware has none, without
    /// saying so. Which it did shows in what fills the record exactly; where nothing does, nothing is left out.
    fn parse_exact_fit<'a>(&self, event: usize, offset: u64, words: Words<'a>) -> Result<Sample<'a>, Error> {
        let plain = match self.parse_words(event, offset, words) {
            Ok((sample, rest)) if rest.0.is_empty() => return Ok(sample),
            plain => plain,
        };
        for (hw_index, counters) in [(false, self.counters), (self.hw_index, false), (false, false)] {
            let other = Self { hw_index, counters, ..*self };
            let Ok((sample, rest)) = other.parse_words(event, offset, words) else { continue };
            let empty_stack = sample.branch_stack.is_some_and(|stack| stack.is_empty());
            if rest.0.is_empty() && (hw_index == self.hw_index || empty_stack) {
                return Ok(sample);
            }
        }
        plain.map(|(sample, _rest)| sample)
    }

    /// The sample and what is left after it.
    #[inline]
    fn parse_words<'a>(
        &self,
        event: usize,
        offset: u64,
        mut words: Words<'a>,
    ) -> Result<(Sample<'a>, Words<'a>), Error> {
        let format = self.format;
        let left = words.bytes_left();
        if left < self.fixed_bytes {
            return Err(Error::Short { what: WHAT, offset, needs: self.fixed_bytes, left });
        }
        // With that checked, every word of these is there.
        let mut field = |field| if format.contains(field) { Some(words.take().unwrap_or_default()) } else { None };
        let identifier = field(SampleFormat::IDENTIFIER);
        let ip = field(SampleFormat::IP).map(Avma);
        let pid_tid = field(SampleFormat::TID);
        let time = field(SampleFormat::TIME);
        let addr = field(SampleFormat::ADDR).map(Avma);
        let id = field(SampleFormat::ID);
        let stream_id = field(SampleFormat::STREAM_ID);
        let cpu = field(SampleFormat::CPU).map(|word| word as u32);
        let period = field(SampleFormat::PERIOD);

        let read = if format.contains(SampleFormat::READ) {
            let (read, rest) = ReadValues::take(self.read_format, words, WHAT, offset)?;
            words = rest;
            Some(read)
        } else {
            None
        };
        let callchain = if format.contains(SampleFormat::CALLCHAIN) {
            let count = one(&mut words, offset)?;
            Some(U64s(counted(&mut words, offset, count, 1, "call chain entries")?))
        } else {
            None
        };
        let raw = if format.contains(SampleFormat::RAW) { Some(take_raw(&mut words, offset)?) } else { None };
        let branch_stack = if format.contains(SampleFormat::BRANCH_STACK) {
            Some(self.take_branches(offset, &mut words)?)
        } else {
            None
        };
        let tail = if format.intersects(TAIL) {
            let (tail, rest) = SampleTail::parse(format, self.user_regs, self.intr_regs, offset, words)?;
            words = rest;
            tail
        } else {
            SampleTail::default()
        };
        let sample = Sample {
            event,
            identifier,
            ip,
            pid: pid_tid.map(|word| word as u32),
            tid: pid_tid.map(|word| (word >> 32) as u32),
            time,
            addr,
            id,
            stream_id,
            cpu,
            period,
            read,
            callchain,
            raw,
            branch_stack,
            user_regs: tail.user_regs,
            user_stack: tail.user_stack,
            weight: tail.weight,
            data_src: tail.data_src,
            transaction: tail.transaction,
            intr_regs: tail.intr_regs,
            phys_addr: tail.phys_addr,
            cgroup: tail.cgroup,
            data_page_size: tail.data_page_size,
            code_page_size: tail.code_page_size,
            aux: tail.aux,
        };
        Ok((sample, words))
    }

    #[inline]
    fn take_branches<'a>(&self, offset: u64, words: &mut Words<'a>) -> Result<BranchStack<'a>, Error> {
        let count = one(words, offset)?;
        let hw_index = if self.hw_index { Some(one(words, offset)?) } else { None };
        let entries = counted(words, offset, count, 3, "branches")?;
        let counters = if self.counters { Some(counted(words, offset, count, 1, "branch counters")?) } else { None };
        Ok(BranchStack::from_words(hw_index, entries, counters))
    }
}
