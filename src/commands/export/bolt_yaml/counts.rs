//! Executions by function, of both of BOLT's formats: what `llvm-bolt` was given and what it wrote have to be the same.
//!
//! ```text
//! functions:                                        1 collatz/1 30 1 collatz/1 32 0 103601
//!   - name:            'collatz/1'                  1 collatz/1 3c 1 collatz/1 10 0 103600
//!     blocks:
//!       - bid:             4
//!         hash:            0x9FCB307879350032
//!         succ:            [ { bid: 3, cnt: 103600 }, { bid: 5, cnt: 1 } ]
//! ```
//!
//! (bolt/include/bolt/Profile/ProfileYAMLMapping.h)

use std::collections::BTreeMap;
use std::io::{self, BufRead};

/// Executions of branches and fall-throughs by the function that they are in or leave.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Counts {
    functions: BTreeMap<String, u64>,
    /// Blocks that have a hash; none in fdata.
    pub hashes: u64,
}

impl Counts {
    /// Of fdata. What comes from elsewhere is in no function, and stubs have no blocks.
    pub fn of_fdata(file: impl BufRead) -> io::Result<Self> {
        let mut counts = Self::default();
        for line in file.split(b'\n') {
            let line = line?;
            let line = String::from_utf8_lossy(&line);
            let Some((name, rest)) = line.strip_prefix("1 ").and_then(first_word) else { continue };
            if !name.ends_with("@PLT") {
                counts.add(&name, rest.rsplit(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0));
            }
        }
        Ok(counts)
    }

    /// Of YAML as LLVM writes it.
    pub fn of_yaml(file: impl BufRead) -> io::Result<Self> {
        let mut counts = Self::default();
        let mut function = String::new();
        let mut is_block = false;
        for line in file.split(b'\n') {
            let line = line?;
            let line = String::from_utf8_lossy(&line);
            let Some((key, value)) = line.trim_start_matches([' ', '-']).split_once(':') else { continue };
            match key {
                "name" => {
                    function = plain(value.trim());
                    counts.add(&function, 0);
                    is_block = false;
                }
                "bid" => is_block = true,
                "hash" if is_block => counts.hashes += 1,
                "succ" | "calls" => {
                    for pair in value.split("cnt: ").skip(1) {
                        let digits = pair.split(|c: char| !c.is_ascii_digit()).next();
                        counts.add(&function, digits.and_then(|digits| digits.parse().ok()).unwrap_or(0));
                    }
                }
                _ => {}
            }
        }
        Ok(counts)
    }

    pub fn total(&self) -> u64 {
        self.functions.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The functions that executed more here than in `other`, and by how much, those that differ most first.
    pub fn more_than(&self, other: &Self) -> Vec<(&str, u64)> {
        let more =
            |(name, count): (&'_ String, &u64)| count.saturating_sub(other.functions.get(name).copied().unwrap_or(0));
        let mut different: Vec<(&str, u64)> =
            self.functions.iter().map(|function| (function.0.as_str(), more(function))).collect();
        different.retain(|(_, more)| *more > 0);
        different.sort_by_key(|(_, more)| std::cmp::Reverse(*more));
        different
    }

    fn add(&mut self, function: &str, count: u64) {
        let sum = self.functions.entry(function.to_owned()).or_default();
        *sum = sum.saturating_add(count);
    }
}

/// The word before the first space that no backslash stands before, without backslashes, and what comes after it.
fn first_word(text: &str) -> Option<(String, &str)> {
    let mut word = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            ' ' => return Some((word, &text[at + 1..])),
            '\\' => word.extend(letters.next().map(|(_, letter)| letter)),
            _ => word.push(letter),
        }
    }
    None
}

/// A name without quotes, and without the number of its aliases: `'step/1(*2)'`.
fn plain(value: &str) -> String {
    let quoted = value.strip_prefix('\'').and_then(|value| value.strip_suffix('\''));
    let name = quoted.map_or_else(|| value.trim_matches('"').to_owned(), |value| value.replace("''", "'"));
    // Names of Go have such signs, too: `runtime.(*lfstack).push`.
    let is_number =
        |end: &str| end.strip_suffix(')').is_some_and(|number| number.bytes().all(|digit| digit.is_ascii_digit()));
    match name.rsplit_once("(*") {
        Some((name, end)) if is_number(end) => name.to_owned(),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::Counts;

    const YAML: &str = "\
---
header:
  binary-name:     program
  hash-func:       xxh3
functions:
  - name:            main
    fid:             6
    hash:            0x9BE6CD65A7DB1E09
    blocks:
      - bid:             3
        insns:           21
        hash:            0xE180B94FDB7D0040
        calls:           [ { off: 0x6, fid: 7, cnt: 964, mis: 17 }, { off: 0x14, fid: 8, cnt: 6 } ]
        succ:            [ { bid: 3, cnt: 30 }, { bid: 4, cnt: 0 } ]
  - name:            'operator new/1(*2)'
    fid:             7
    hash:            0x3D132752C78B7B0
    blocks:
      - bid:             0
        insns:           7
";

    #[test]
    fn both_formats_have_the_same_counts() {
        let fdata = "\
0 [unknown] 0 1 main 0 0 5
1 main 6 1 step/1 0 17 964
1 main 14 0 [unknown] 0 0 6
1 main 20 1 main 3 0 30
1 operator\\ new/1 0 1 operator\\ new/1 4 0 0
1 puts@PLT 0 0 [unknown] 0 0 7
";
        let [given, made] = [Counts::of_fdata(fdata.as_bytes()).unwrap(), Counts::of_yaml(YAML.as_bytes()).unwrap()];
        assert_eq!((given.functions.clone(), made.hashes, given.hashes), (made.functions.clone(), 1, 0));
        assert_eq!((given.total(), given.more_than(&made).len(), made.more_than(&given).len()), (1000, 0, 0));
    }

    #[test]
    fn functions_that_are_not_the_same_are_found() {
        let given =
            Counts::of_fdata("1 a 0 1 a 1 0 5\n1 b 0 1 b 1 0 9\n1 main 20 1 main 3 0 1000\n".as_bytes()).unwrap();
        let made = Counts::of_yaml(YAML.as_bytes()).unwrap();
        assert_eq!(given.more_than(&made), [("b", 9), ("a", 5)]);
        assert_eq!(made.more_than(&given), []);
        // What one has less than another has more is told all the same.
        let swapped = Counts::of_fdata("1 a 0 1 a 1 0 9\n1 b 0 1 b 1 0 5\n".as_bytes()).unwrap();
        assert_eq!((given.more_than(&swapped)[0], swapped.more_than(&given)), (("main", 1000), vec![("a", 4)]));
    }

    #[test]
    fn names_lose_the_number_of_their_aliases_and_nothing_else() {
        for (written, name) in [
            ("'step/1(*2)'", "step/1"),
            ("'runtime.(*lfstack).push'", "runtime.(*lfstack).push"),
            ("'runtime.(*lfstack).push(*3)'", "runtime.(*lfstack).push"),
            ("'f(*)(int)'", "f(*)(int)"),
        ] {
            assert_eq!(super::plain(written), name);
        }
    }

    #[test]
    fn what_is_no_profile_has_no_functions() {
        for text in
            ["", "\u{0}", "1 main", "1 \\", "succ: [ { cnt: 99999999999999999999999 } ]", "cnt: cnt:\n:::\n- \n"]
        {
            let counts = [Counts::of_fdata(text.as_bytes()).unwrap(), Counts::of_yaml(text.as_bytes()).unwrap()];
            assert!(counts.iter().all(|counts| counts.total() == 0), "{text}");
        }
    }
}
