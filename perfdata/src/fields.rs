//! Takes the fields of a record or feature section off its front.

use crate::Error;

/// The bytes left of one record or section; `what` and `offset` are for the error messages.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a> {
    what: &'static str,
    offset: u64,
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(crate) fn new(what: &'static str, offset: u64, bytes: &'a [u8]) -> Self {
        Self { what, offset, rest: bytes }
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], Error> {
        match self.rest.split_at_checked(count) {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(taken)
            }
            None => Err(self.short(count as u64)),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        match self.rest.split_first_chunk::<N>() {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(*taken)
            }
            None => Err(self.short(N as u64)),
        }
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Error> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Error> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Error> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Error> {
        self.array().map(u64::from_le_bytes)
    }

    /// `count` items of `item_size` bytes each, as one slice.
    pub(crate) fn items(&mut self, count: u64, item_size: u64, things: &'static str) -> Result<&'a [u8], Error> {
        let needs = count.saturating_mul(item_size);
        let left = self.rest.len() as u64;
        if needs > left {
            return Err(Error::Count { what: self.what, offset: self.offset, count, things, needs, left });
        }
        self.bytes(needs as usize)
    }

    /// What is left up to the first NUL.
    pub(crate) fn c_string(&self) -> &'a [u8] {
        until_nul(self.rest)
    }

    fn short(&self, needs: u64) -> Error {
        Error::Short { what: self.what, offset: self.offset, needs, left: self.rest.len() as u64 }
    }
}

/// The bytes before the first NUL, all of them if there is none.
pub(crate) fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}
