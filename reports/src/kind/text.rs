//! Texts that are made of recordings, by how they begin.

/// In which form a file that begins so shows something to people; `None` if it is none of those that are known.
pub fn form_of(begin: &[u8]) -> Option<&'static str> {
    let text = begin.trim_ascii_start();
    let begins_with = |word: &str| text.get(..word.len()).is_some_and(|it| it.eq_ignore_ascii_case(word.as_bytes()));
    let has = |word: &str| text.windows(word.len()).any(|window| window == word.as_bytes());
    if begins_with("<!doctype html") || begins_with("<html") {
        return Some("an HTML page");
    }
    if begins_with("<svg") || (begins_with("<?xml") && has("<svg")) {
        return Some("an SVG picture");
    }
    // A long line may go on after what was read.
    let (line, is_whole) = match text.iter().position(|byte| *byte == b'\n') {
        Some(end) => (text.get(..end)?, true),
        None => (text, false),
    };
    let line = String::from_utf8_lossy(line);
    if is_of_perf_script(&line) {
        Some("text of `perf script`")
    } else if is_whole && is_folded(&line) {
        Some("folded stacks")
    } else if is_whole && is_header(&line) {
        Some("a table (CSV)")
    } else {
        None
    }
}

/// `PERF_RECORD_MMAP2 ..`, or a sample: `name 4711 [000] 1234.567890: ..`.
fn is_of_perf_script(line: &str) -> bool {
    let is_time = |word: &str| {
        let parts = word.strip_suffix(':').and_then(|time| time.split_once('.'));
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        parts.is_some_and(|(seconds, rest)| is_number(seconds) && is_number(rest) && matches!(rest.len(), 6 | 9))
    };
    line.starts_with("PERF_RECORD_") || line.split_whitespace().skip(2).any(is_time)
}

/// `main;work;[unknown] 4711`.
fn is_folded(line: &str) -> bool {
    let parts = line.trim_end().rsplit_once(' ');
    let is_frame = |frame: &str| !frame.is_empty() && !frame.starts_with(' ');
    parts.is_some_and(|(stack, count)| {
        stack.contains(';') && stack.split(';').all(is_frame) && count.parse::<u64>().is_ok()
    })
}

/// `mnemonic,count,share`: titles of columns as reports have them.
fn is_header(line: &str) -> bool {
    let is_title = |title: &str| {
        title.starts_with(|first: char| first.is_ascii_lowercase())
            && title.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'))
    };
    line.contains(',') && line.trim_end().split(',').all(is_title)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_told_by_how_they_begin() {
        for (begin, form) in [
            ("<!doctype html>\n<html lang=\"en\">", Some("an HTML page")),
            ("<!DOCTYPE HTML><html>", Some("an HTML page")),
            ("<?xml version=\"1.0\"?>\n<svg xmlns=", Some("an SVG picture")),
            ("<?xml version=\"1.0\"?>\n<project>", None),
            ("PERF_RECORD_MMAP2 7/7: [0x55]", Some("text of `perf script`")),
            ("Web Content   77/78   [001]  4356.123456:  250000 cpu-clock:u:", Some("text of `perf script`")),
            ("a 7 4356.123456789: 1 x", Some("text of `perf script`")),
            ("at 10 12.50: lunch\n", None),
            ("[unknown callers];main 158\nmain 1\n", Some("folded stacks")),
            ("int a; return 1\n", None),
            (";; 1\n", None),
            ("main;a line that goes on 1", None),
            ("mnemonic,count,share_error\nje,1,2\n", Some("a table (CSV)")),
            ("hello, world\n", None),
            ("Name,Value\n", None),
            ("hello\n", None),
            ("", None),
        ] {
            assert_eq!(form_of(begin.as_bytes()), form, "{begin}");
        }
        assert_eq!(form_of(&[0xff; 256]), None);
    }
}
