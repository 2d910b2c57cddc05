//! Names that processes give to the code they make: `/tmp/perf-PID.map`, a line for each function with address, size and name.

use std::fs::OpenOptions;
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use addresses::Avma;

use crate::sys::process::{namespace_id, proc_path};
use crate::tracer::made_code::known::KnownCode;

/// Bytes of a map that are read,
const MOST: u64 = 256 << 20;
/// and bytes of names that are kept of it.
const MOST_NAMES: usize = 16 << 20;

/// Names of code that the recording has.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    places: Vec<(Range<Avma>, Range<usize>)>,
    text: Vec<u8>,
}

impl Names {
    /// What a process calls its code, as far as it is known; `None` if there is no map.
    ///
    /// The map of a process that runs is looked for where it sees `/tmp`, under the number that it has for itself.
    pub(crate) fn of(pid: u32, known: &KnownCode) -> Option<Self> {
        let name = |pid| format!("tmp/perf-{pid}.map");
        let own = namespace_id(pid).map(|own| proc_path(pid).join("root").join(name(own)));
        let places = own.into_iter().chain([PathBuf::from("/").join(name(pid))]);
        let text = places.into_iter().find_map(|place| read(&place))?;
        Some(Self::parse(&text, known))
    }

    fn parse(text: &[u8], known: &KnownCode) -> Self {
        let mut names = Self::default();
        for line in text.split(|&byte| byte == b'\n') {
            let Some((range, name)) = parse_line(line) else { continue };
            if !known.touches(range.start, range.end) || names.text.len() + name.len() > MOST_NAMES {
                continue;
            }
            let start = names.text.len();
            names.text.extend_from_slice(name);
            names.places.push((range, start..names.text.len()));
        }
        names
    }

    /// Addresses in the process, and names, in the order of the map: the last one at an address holds.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Range<Avma>, &[u8])> {
        self.places.iter().map(|(range, name)| (range.clone(), &self.text[name.clone()]))
    }
}

/// `7f2a10 1c0 JS:*fib file.js:1`: both numbers are hexadecimal, with `0x` or without.
fn parse_line(line: &[u8]) -> Option<(Range<Avma>, &[u8])> {
    let mut fields = line.splitn(3, |&byte| byte == b' ');
    let mut number = || {
        let field = std::str::from_utf8(fields.next()?).ok()?;
        u64::from_str_radix(field.strip_prefix("0x").unwrap_or(field), 16).ok()
    };
    let (start, size) = (number()?, number()?);
    let name = fields.next()?.trim_ascii();
    let end = start.checked_add(size)?;
    (size > 0 && !name.is_empty()).then_some((Avma(start)..Avma(end), name))
}

/// Everybody may write to `/tmp`: only a file of the recording user's or of root's is believed, as `perf` does, and nothing that is opened waits.
fn read(path: &Path) -> Option<Vec<u8>> {
    let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let metadata = file.metadata().ok()?;
    let own = rustix::process::geteuid();
    if !metadata.is_file() || !own.is_root() && metadata.uid() != 0 && metadata.uid() != own.as_raw() {
        return None;
    }
    let mut text = Vec::new();
    file.take(MOST).read_to_end(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_none_are_passed_over() {
        let mut known = KnownCode::default();
        known.put(Avma(0x1000), &[0x90; 64]);
        let text = b"1000 20 JS:*fib file.js:1 (really)\n0x1020 0x10 with prefixes\n1030 0 empty\nffffffffffffffff 10 wraps\n\
                     zzz 10 no number\n1000\n9000 10 elsewhere\n1000 10 \n\xff\xff 1 x\n1030 8 last";
        let names = Names::parse(text, &known);
        let found: Vec<_> = names.iter().map(|(range, name)| (range.start.0, range.end.0, name)).collect();
        assert_eq!(
            found,
            [
                (0x1000, 0x1020, &b"JS:*fib file.js:1 (really)"[..]),
                (0x1020, 0x1030, b"with prefixes"),
                (0x1030, 0x1038, b"last")
            ]
        );
    }

    #[test]
    fn only_plain_files_are_read() {
        assert_eq!(read(Path::new("/tmp")), None);
        assert_eq!(read(Path::new("/dev/zero")), None);
        assert_eq!(read(Path::new("/nowhere/perf-1.map")), None);
    }
}
