//! Bytes as letters (RFC 4648): what a page can hold.

use std::io::{self, Write};

/// Writes what it is given in base64. The last bytes are written by [`Base64Writer::finish`].
pub struct Base64Writer<W> {
    out: W,
    /// Bytes that are not a group of three yet.
    begun: Vec<u8>,
}

impl<W: Write> Base64Writer<W> {
    pub fn new(out: W) -> Self {
        Base64Writer { out, begun: Vec::new() }
    }

    /// Writes what is left.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.write_all(encoded(&self.begun).as_bytes())
    }
}

impl<W: Write> Write for Base64Writer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.begun.extend_from_slice(bytes);
        let left = self.begun.split_off(self.begun.len() - self.begun.len() % 3);
        self.out.write_all(encoded(&self.begun).as_bytes())?;
        self.begun = left;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Bytes in base64.
pub fn encoded(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().enumerate().fold(0, |bits, (at, byte)| bits | u32::from(*byte) << (16 - 8 * at));
        for at in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * at) & 63) as usize];
            text.push(if at <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 4648.
    #[test]
    fn three_bytes_are_four_letters() {
        let examples = ["", "f", "fo", "foo", "foob", "fooba", "foobar"];
        let expected = ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"];
        assert_eq!(examples.map(|text| encoded(text.as_bytes())), expected);
    }

    #[test]
    fn pieces_are_written_as_one() {
        let mut out = Vec::new();
        let mut writer = Base64Writer::new(&mut out);
        ["f", "", "ooba", "r!"].into_iter().for_each(|piece| writer.write_all(piece.as_bytes()).unwrap());
        writer.finish().unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), encoded(b"foobar!"));
    }
}
