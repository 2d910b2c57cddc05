//! Reads GCC's profiles, as strictly as GCC does.

use std::fmt::Write;

struct Reader<'bytes> {
    bytes: &'bytes [u8],
    version: u32,
    names: Vec<String>,
}

/// The profile as text; panics where GCC would not read it.
pub fn print(bytes: &[u8]) -> String {
    let mut reader = Reader { bytes, version: 0, names: Vec::new() };
    assert_eq!(reader.word(), 0x6763_6461, "magic");
    reader.version = reader.word();
    assert_eq!(reader.word(), 0);
    if reader.version == 3 {
        reader.summary();
    }
    let end = reader.section(0xaa00_0000);
    if reader.version == 3 {
        assert_eq!(reader.word(), 0, "files");
    }
    for _ in 0..reader.word() {
        let name = reader.string();
        reader.names.push(name);
        if reader.version == 3 {
            assert_eq!(reader.word(), u32::MAX, "no file");
        }
    }
    assert_eq!(reader.names[0], "", "GCC takes index 0 for none");
    assert!(reader.names.is_sorted());
    reader.must_be_at(end);
    let end = reader.section(0xac00_0000);
    let mut text = String::new();
    for _ in 0..reader.word() {
        let calls = reader.counter();
        if reader.version == 3 {
            assert_eq!(reader.counter(), 0, "time of the first call");
        }
        let name = reader.name();
        writeln!(text, "{name} calls {calls}").unwrap();
        reader.instance(1, &mut text);
    }
    reader.must_be_at(end);
    let end = reader.section(0xae00_0000);
    assert_eq!(reader.word(), 0, "modules");
    reader.must_be_at(end);
    let end = reader.section(0xaf00_0000);
    for _ in 0..128 {
        reader.word();
        reader.counter();
    }
    reader.must_be_at(end);
    assert!(reader.bytes.is_empty());
    text
}

impl Reader<'_> {
    fn word(&mut self) -> u32 {
        let (word, rest) = self.bytes.split_first_chunk().expect("it ends too early");
        self.bytes = rest;
        u32::from_le_bytes(*word)
    }

    fn counter(&mut self) -> u64 {
        u64::from(self.word()) | u64::from(self.word()) << 32
    }

    fn string(&mut self) -> String {
        let length = self.word() as usize * if self.version == 1 { 4 } else { 1 };
        let (bytes, rest) = self.bytes.split_at(length);
        self.bytes = rest;
        assert_eq!(bytes.last(), Some(&0));
        let text: Vec<u8> = bytes.iter().copied().take_while(|&byte| byte != 0).collect();
        assert!(bytes.len() - text.len() <= if self.version == 1 { 4 } else { 1 });
        String::from_utf8(text).unwrap()
    }

    fn name(&mut self) -> String {
        let index = self.word() as usize;
        self.names[index].clone()
    }

    /// The bytes left behind a section; its length is in words.
    fn section(&mut self, tag: u32) -> (usize, u32) {
        assert_eq!(self.word(), tag);
        let words = self.word() as usize;
        (self.bytes.len() / 4 - words, tag)
    }

    fn must_be_at(&self, (end, tag): (usize, u32)) {
        assert_eq!(self.bytes.len() / 4, end, "length of section {tag:x}");
    }

    fn summary(&mut self) {
        assert_eq!(self.word(), 0xa800_0000);
        let [total, largest, calls, counts, functions, cutoffs] = [(); 6].map(|()| self.counter());
        assert_eq!((total, largest, calls, counts, functions, cutoffs), (800, 200, 200, 6, 2, 16));
        let mut last = 0;
        for _ in 0..cutoffs {
            let share = self.word();
            let (smallest, counts) = (self.counter(), self.counter());
            assert!(share > last);
            last = share;
            // Two counts of 200 are half of all, four of 100 the rest.
            assert_eq!((smallest, counts), if share <= 500_000 { (200, 2) } else { (100, 6) }, "{share}");
        }
    }

    fn instance(&mut self, depth: usize, text: &mut String) {
        let (positions, inlined) = (self.word(), self.word());
        let mut lines: Vec<((u32, u32), u64, String)> = Vec::new();
        for _ in 0..positions {
            let offset = self.word();
            let targets = self.word();
            let count = self.counter();
            let mut line = count.to_string();
            for _ in 0..targets {
                assert_eq!(self.word(), 7, "kind of value");
                let name = self.counter() as usize;
                let calls = self.counter();
                write!(line, " {}:{calls}", self.names[name]).unwrap();
            }
            lines.push(((offset >> 16, offset & 0xffff), count, line));
        }
        // GCC 12 takes the last position of a line: the one that ran most must be it.
        assert!(lines.is_sorted_by_key(|((line, _), count, _)| (*line, *count)));
        lines.sort();
        for ((line, discriminator), _, rest) in lines {
            writeln!(text, "{:depth$}{}: {rest}", "", place(line, discriminator)).unwrap();
        }
        for _ in 0..inlined {
            let offset = self.word();
            let name = self.name();
            writeln!(text, "{:depth$}{}: {name}", "", place(offset >> 16, offset & 0xffff)).unwrap();
            self.instance(depth + 1, text);
        }
    }
}

fn place(line: u32, discriminator: u32) -> String {
    if discriminator == 0 { line.to_string() } else { format!("{line}.{discriminator}") }
}
