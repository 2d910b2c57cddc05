//! Where the fields of one event's samples lie: the order of the kernel's `perf_output_sample()`.

use crate::words::{U64s, Word, Words};
use crate::{
    Avma, BranchSampleType, BranchStack, Error, EventAttr, ReadFormat, ReadValues, Registers, Sample, SampleFormat,
    UserStack, Weight,
};

/// What of an event's attr decides how its samples are laid out.
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

/// The fields after the branch stack.
const AFTER_BRANCHES: SampleFormat = SampleFormat(
    SampleFormat::REGS_USER.0
        | SampleFormat::STACK_USER.0
        | SampleFormat::WEIGHT.0
        | SampleFormat::WEIGHT_STRUCT.0
        | SampleFormat::DATA_SRC.0
        | SampleFormat::TRANSACTION.0
        | SampleFormat::REGS_INTR.0
        | SampleFormat::PHYS_ADDR.0
        | SampleFormat::CGROUP.0
        | SampleFormat::DATA_PAGE_SIZE.0
        | SampleFormat::CODE_PAGE_SIZE.0
        | SampleFormat::AUX.0,
);

const WHAT: &str = "sample record";

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
    #[inline]
    pub(crate) fn parse<'a>(&self, event: usize, offset: u64, body: &'a [u8]) -> Result<Sample<'a>, Error> {
        let whole = Words(body.as_chunks().0);
        let mut words = whole;
        let sample = self.parse_words(event, offset, &mut words);
        if (self.hw_index | self.counters) && !(sample.is_ok() && words.0.is_empty()) {
            return self.parse_other_fits(event, offset, whole, sample);
        }
        sample
    }

    /// The kernel leaves the index word out of an empty stack, and the counter words when the hardware has none, without
    /// saying so. Which it did shows in what fills the record exactly; `plain` is the answer where nothing does.
    #[cold]
    fn parse_other_fits<'a>(
        &self,
        event: usize,
        offset: u64,
        words: Words<'a>,
        plain: Result<Sample<'a>, Error>,
    ) -> Result<Sample<'a>, Error> {
        for (hw_index, counters) in [(false, self.counters), (self.hw_index, false), (false, false)] {
            let mut rest = words;
            let Ok(sample) = Self { hw_index, counters, ..*self }.parse_words(event, offset, &mut rest) else {
                continue;
            };
            let empty_stack = sample.branch_stack.is_some_and(|stack| stack.is_empty());
            if rest.0.is_empty() && (hw_index == self.hw_index || empty_stack) {
                return Ok(sample);
            }
        }
        plain
    }

    #[inline]
    fn parse_words<'a>(&self, event: usize, offset: u64, words: &mut Words<'a>) -> Result<Sample<'a>, Error> {
        let format = self.format;
        let mut sample = Sample { event, ..Sample::default() };
        let short_fixed = |left| Error::Short { what: WHAT, offset, needs: self.fixed_bytes, left };
        let left = words.bytes_left();
        if left < self.fixed_bytes {
            return Err(short_fixed(left));
        }
        let mut word = || words.take().ok_or_else(|| short_fixed(left));

        if format.contains(SampleFormat::IDENTIFIER) {
            sample.identifier = Some(word()?);
        }
        if format.contains(SampleFormat::IP) {
            sample.ip = Some(Avma(word()?));
        }
        if format.contains(SampleFormat::TID) {
            let pair = word()?;
            sample.pid = Some(pair as u32);
            sample.tid = Some((pair >> 32) as u32);
        }
        if format.contains(SampleFormat::TIME) {
            sample.time = Some(word()?);
        }
        if format.contains(SampleFormat::ADDR) {
            sample.addr = Some(Avma(word()?));
        }
        if format.contains(SampleFormat::ID) {
            sample.id = Some(word()?);
        }
        if format.contains(SampleFormat::STREAM_ID) {
            sample.stream_id = Some(word()?);
        }
        if format.contains(SampleFormat::CPU) {
            sample.cpu = Some(word()? as u32);
        }
        if format.contains(SampleFormat::PERIOD) {
            sample.period = Some(word()?);
        }

        if format.contains(SampleFormat::READ) {
            sample.read = Some(ReadValues::take(self.read_format, words, WHAT, offset)?);
        }
        if format.contains(SampleFormat::CALLCHAIN) {
            let count = one(words, offset)?;
            sample.callchain = Some(U64s(counted(words, offset, count, 1, "call chain entries")?));
        }
        if format.contains(SampleFormat::RAW) {
            sample.raw = Some(take_raw(words, offset)?);
        }
        if format.contains(SampleFormat::BRANCH_STACK) {
            let count = one(words, offset)?;
            let hw_index = if self.hw_index { Some(one(words, offset)?) } else { None };
            let entries = counted(words, offset, count, 3, "branches")?;
            let counters =
                if self.counters { Some(counted(words, offset, count, 1, "branch counters")?) } else { None };
            sample.branch_stack = Some(BranchStack::from_words(hw_index, entries, counters));
        }
        if format.intersects(AFTER_BRANCHES) {
            self.parse_after_branches(offset, words, &mut sample)?;
        }
        Ok(sample)
    }

    fn parse_after_branches<'a>(
        &self,
        offset: u64,
        words: &mut Words<'a>,
        sample: &mut Sample<'a>,
    ) -> Result<(), Error> {
        let format = self.format;
        if format.contains(SampleFormat::REGS_USER) {
            sample.user_regs = Some(take_registers(words, offset, self.user_regs)?);
        }
        if format.contains(SampleFormat::STACK_USER) {
            sample.user_stack = Some(take_stack(words, offset)?);
        }
        if format.contains(SampleFormat::WEIGHT) {
            sample.weight = Some(Weight::Full(one(words, offset)?));
        } else if format.contains(SampleFormat::WEIGHT_STRUCT) {
            let word = one(words, offset)?;
            sample.weight =
                Some(Weight::Struct { var1: word as u32, var2: (word >> 32) as u16, var3: (word >> 48) as u16 });
        }
        if format.contains(SampleFormat::DATA_SRC) {
            sample.data_src = Some(one(words, offset)?);
        }
        if format.contains(SampleFormat::TRANSACTION) {
            sample.transaction = Some(one(words, offset)?);
        }
        if format.contains(SampleFormat::REGS_INTR) {
            sample.intr_regs = Some(take_registers(words, offset, self.intr_regs)?);
        }
        if format.contains(SampleFormat::PHYS_ADDR) {
            sample.phys_addr = Some(one(words, offset)?);
        }
        if format.contains(SampleFormat::CGROUP) {
            sample.cgroup = Some(one(words, offset)?);
        }
        if format.contains(SampleFormat::DATA_PAGE_SIZE) {
            sample.data_page_size = Some(one(words, offset)?);
        }
        if format.contains(SampleFormat::CODE_PAGE_SIZE) {
            sample.code_page_size = Some(one(words, offset)?);
        }
        if format.contains(SampleFormat::AUX) {
            let size = one(words, offset)?;
            sample.aux = Some(sized(words, offset, size, "bytes of AUX data")?);
        }
        Ok(())
    }
}

#[inline]
fn one(words: &mut Words<'_>, offset: u64) -> Result<u64, Error> {
    words.take().ok_or(Error::Short { what: WHAT, offset, needs: 8, left: 0 })
}

/// `count` items of `item_words` words each.
#[inline]
fn counted<'a>(
    words: &mut Words<'a>,
    offset: u64,
    count: u64,
    item_words: u64,
    things: &'static str,
) -> Result<&'a [Word], Error> {
    let left = words.bytes_left();
    let needs = count.saturating_mul(item_words * 8);
    let error = || Error::Count { what: WHAT, offset, count, things, needs, left };
    if needs > left {
        return Err(error());
    }
    words.take_many((needs / 8) as usize).ok_or_else(error)
}

/// `size` bytes, padded to whole words.
fn sized<'a>(words: &mut Words<'a>, offset: u64, size: u64, things: &'static str) -> Result<&'a [u8], Error> {
    let left = words.bytes_left();
    let error = || Error::Count { what: WHAT, offset, count: size, things, needs: size, left };
    if size > left {
        return Err(error());
    }
    let taken = words.take_many(size.div_ceil(8) as usize).ok_or_else(error)?;
    taken.as_flattened().get(..size as usize).ok_or_else(error)
}

/// A 32-bit size, then that many bytes; both together fill whole words.
fn take_raw<'a>(words: &mut Words<'a>, offset: u64) -> Result<&'a [u8], Error> {
    let left = words.bytes_left();
    let (size, _) = Words(words.0).take_pair().ok_or(Error::Short { what: WHAT, offset, needs: 8, left })?;
    let whole = sized(words, offset, 4 + u64::from(size), "bytes of raw data and their size")?;
    Ok(&whole[4..])
}

fn take_registers<'a>(words: &mut Words<'a>, offset: u64, mask: u64) -> Result<Registers<'a>, Error> {
    let abi = one(words, offset)?;
    let count = if abi == 0 { 0 } else { u64::from(mask.count_ones()) };
    Ok(Registers { abi, mask, values: U64s(counted(words, offset, count, 1, "registers")?) })
}

fn take_stack<'a>(words: &mut Words<'a>, offset: u64) -> Result<UserStack<'a>, Error> {
    let size = one(words, offset)?;
    let data = sized(words, offset, size, "bytes of user stack")?;
    let dyn_size = if size == 0 { 0 } else { one(words, offset)? };
    Ok(UserStack { data, dyn_size })
}
