//! The fields of a sample that come after its branch stack. Few recordings have any.

use crate::words::{U64s, Word, Words};
use crate::{Error, Registers, SampleFormat, UserStack, Weight};

/// What these are, as in [`crate::Sample`].
#[derive(Clone, Copy, Default)]
pub(crate) struct SampleTail<'a> {
    pub(crate) user_regs: Option<Registers<'a>>,
    pub(crate) user_stack: Option<UserStack<'a>>,
    pub(crate) weight: Option<Weight>,
    pub(crate) data_src: Option<u64>,
    pub(crate) transaction: Option<u64>,
    pub(crate) intr_regs: Option<Registers<'a>>,
    pub(crate) phys_addr: Option<u64>,
    pub(crate) cgroup: Option<u64>,
    pub(crate) data_page_size: Option<u64>,
    pub(crate) code_page_size: Option<u64>,
    pub(crate) aux: Option<&'a [u8]>,
}

/// The fields this file reads.
pub(crate) const TAIL: SampleFormat = SampleFormat(
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

pub(crate) const WHAT: &str = "sample record";

impl<'a> SampleTail<'a> {
    /// Takes the fields off the front of `words`; returns what is left with them.
    #[inline(never)]
    pub(crate) fn parse(
        format: SampleFormat,
        user_regs: u64,
        intr_regs: u64,
        offset: u64,
        words: Words<'a>,
    ) -> Result<(Self, Words<'a>), Error> {
        let mut words = words;
        let w = &mut words;
        let mut tail = Self::default();
        if format.contains(SampleFormat::REGS_USER) {
            tail.user_regs = Some(take_registers(w, offset, user_regs)?);
        }
        if format.contains(SampleFormat::STACK_USER) {
            tail.user_stack = Some(take_stack(w, offset)?);
        }
        if format.contains(SampleFormat::WEIGHT) {
            tail.weight = Some(Weight::Full(one(w, offset)?));
        } else if format.contains(SampleFormat::WEIGHT_STRUCT) {
            let word = one(w, offset)?;
            let (var1, var2, var3) = (word as u32, (word >> 32) as u16, (word >> 48) as u16);
            tail.weight = Some(Weight::Struct { var1, var2, var3 });
        }
        if format.contains(SampleFormat::DATA_SRC) {
            tail.data_src = Some(one(w, offset)?);
        }
        if format.contains(SampleFormat::TRANSACTION) {
            tail.transaction = Some(one(w, offset)?);
        }
        if format.contains(SampleFormat::REGS_INTR) {
            tail.intr_regs = Some(take_registers(w, offset, intr_regs)?);
        }
        if format.contains(SampleFormat::PHYS_ADDR) {
            tail.phys_addr = Some(one(w, offset)?);
        }
        if format.contains(SampleFormat::CGROUP) {
            tail.cgroup = Some(one(w, offset)?);
        }
        if format.contains(SampleFormat::DATA_PAGE_SIZE) {
            tail.data_page_size = Some(one(w, offset)?);
        }
        if format.contains(SampleFormat::CODE_PAGE_SIZE) {
            tail.code_page_size = Some(one(w, offset)?);
        }
        if format.contains(SampleFormat::AUX) {
            let size = one(w, offset)?;
            tail.aux = Some(sized(w, offset, size, "bytes of AUX data")?);
        }
        Ok((tail, words))
    }
}

#[inline]
pub(crate) fn one(words: &mut Words<'_>, offset: u64) -> Result<u64, Error> {
    words.take().ok_or(Error::Short { what: WHAT, offset, needs: 8, left: 0 })
}

/// `count` items of `item_words` words each.
#[inline]
pub(crate) fn counted<'a>(
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
#[inline]
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
#[inline]
pub(crate) fn take_raw<'a>(words: &mut Words<'a>, offset: u64) -> Result<&'a [u8], Error> {
    let left = words.bytes_left();
    let (size, _) = Words(words.0).take_pair().ok_or(Error::Short { what: WHAT, offset, needs: 8, left })?;
    let whole = sized(words, offset, 4 + u64::from(size), "bytes of raw data and their size")?;
    let (_size, raw) = whole.split_first_chunk::<4>().ok_or(Error::Short { what: WHAT, offset, needs: 4, left })?;
    Ok(raw)
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
