//! Reads what the mix tool of Intel SDE and Pin writes (`sde64 -mix -- COMMAND`, `sde-mix-out.txt`).
//!
//! ```text
//! # Intel(R) SDE version: 9.33.0 external
//! BLOCK: 0   PC: 401000   ICOUNT: 210   EXECUTIONS: 10   #BYTES: 22   PCT: ..   FN: _start   IMG: /bin/four
//! XDIS 401000: BASE     90                       nop
//! # $global-dynamic-counts
//! *total                                     470
//! JNZ                                         10
//! # END_GLOBAL_DYNAMIC_STATS
//! ```
//!
//! Blocks start wherever control came in, so they overlap: their executions are added up per instruction. Only those with the most
//! instructions are in the file (`-top_blocks`), at addresses of the process.

use std::collections::BTreeMap;
use std::io::{BufRead, Read};

use crate::truth::mix_words::CONDITIONS;

/// A file of the mix tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MixFile {
    /// Name and version of the tool that wrote it: `Intel SDE 9.33.0`.
    pub engine: String,
    /// Instructions executed by image and address in the process; without an image where the file names none.
    pub counts: BTreeMap<(Option<String>, u64), u64>,
    /// All instructions executed, by mnemonic as the analyzer names it.
    pub mnemonics: BTreeMap<String, u64>,
}

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum MixFileError {
    /// The system said so.
    #[error(transparent)]
    Read(#[from] std::io::Error),
    /// It is something else, or damaged.
    #[error("line {line}: {why}")]
    Line {
        /// Number of the line in the file, counted from 1.
        line: u64,
        /// What is wrong with it.
        why: MixLineError,
    },
    /// The sums at its end are missing.
    #[error("it has no counts under `# $global-dynamic-counts`: it was cut short, or is no file of SDE's -mix")]
    NoCounts,
    /// The sums contradict each other.
    #[error("its mnemonics add up to {sum} instructions, `*total` says {total}")]
    Total {
        /// Instructions that the lines of the mnemonics add up to.
        sum: u64,
        /// In the line `*total`.
        total: u64,
    },
}

/// The longest line that is read, in bytes.
const LONGEST_LINE: u64 = 1 << 20;

/// What is wrong with a line of a file of the mix tool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MixLineError {
    /// No line that the tool writes comes near it.
    #[error("it is longer than any the mix tool writes")]
    TooLong,
    /// How often a block ran is not stated.
    #[error("a block without a number of EXECUTIONS:")]
    Executions,
    /// An instruction of no block.
    #[error("XDIS outside of a block")]
    OutsideOfBlock,
    /// An instruction without a place.
    #[error("XDIS without an address")]
    Address,
    /// The count of this instruction class is something else.
    #[error("the count of {0} is no number")]
    Count(String),
}

impl MixFile {
    /// Whether a file that begins with these bytes may be one of the mix tool's.
    pub fn begins_like(bytes: &[u8]) -> bool {
        let words: [&[u8]; 4] = [b"# Mix output", b"# Intel(R) SDE", b"# $", b"# EMIT_"];
        words.iter().any(|word| bytes.starts_with(word))
    }

    /// Executed instructions of all mnemonics together.
    pub fn total(&self) -> u64 {
        self.mnemonics.values().copied().fold(0, u64::saturating_add)
    }

    /// Reads the output of SDE's mix tool.
    ///
    /// # Errors
    /// What is wrong with it, and in which line.
    pub fn read(mut file: impl BufRead) -> Result<Self, MixFileError> {
        let mut reader = Reader::default();
        let mut text = Vec::new();
        for line in 1.. {
            text.clear();
            let read = (&mut file).take(LONGEST_LINE).read_until(b'\n', &mut text)?;
            if read == 0 {
                break;
            }
            let wrong = |why: MixLineError| MixFileError::Line { line, why };
            if read as u64 == LONGEST_LINE {
                return Err(wrong(MixLineError::TooLong));
            }
            reader.line(String::from_utf8_lossy(&text).trim()).map_err(wrong)?;
        }
        reader.finish()
    }
}

#[derive(Default)]
struct Reader {
    file: MixFile,
    /// Image and executions of the block whose instructions follow.
    block: Option<(Option<String>, u64)>,
    in_counts: bool,
    total: Option<u64>,
}

impl Reader {
    fn finish(mut self) -> Result<MixFile, MixFileError> {
        let total = self.total.ok_or(MixFileError::NoCounts)?;
        let sum = self.file.total();
        if sum != total {
            return Err(MixFileError::Total { sum, total });
        }
        if self.file.engine.is_empty() {
            self.file.engine = "Pin mix".into();
        }
        Ok(self.file)
    }

    fn line(&mut self, text: &str) -> Result<(), MixLineError> {
        if let Some(comment) = text.strip_prefix('#') {
            self.comment(comment.trim());
            Ok(())
        } else if text.starts_with("BLOCK:") {
            self.begin_block(text)
        } else if let Some(rest) = text.strip_prefix("XDIS ") {
            self.instruction(rest)
        } else if self.in_counts {
            self.count(text)
        } else {
            Ok(())
        }
    }

    fn comment(&mut self, text: &str) {
        if let Some(version) = text.strip_prefix("Intel(R) SDE version:") {
            self.file.engine = format!("Intel SDE {}", version.trim());
        } else if text.starts_with("$global-dynamic-counts") {
            // The tool can write the sums several times; the last are those of the whole run.
            self.in_counts = true;
            self.total = None;
            self.file.mnemonics.clear();
        } else if text.starts_with("END_") || text.starts_with("EMIT_") || text.starts_with('$') {
            self.in_counts = false;
        }
    }

    fn begin_block(&mut self, text: &str) -> Result<(), MixLineError> {
        let field = |key: &str| text.split_once(key).and_then(|(_, rest)| rest.split_whitespace().next());
        let executions = field(" EXECUTIONS:").and_then(|value| value.parse().ok());
        let executions = executions.ok_or(MixLineError::Executions)?;
        let image = text.split_once(" IMG:").map(|(_, image)| image.trim().to_string());
        self.block = Some((image.filter(|image| !image.is_empty()), executions));
        Ok(())
    }

    fn instruction(&mut self, text: &str) -> Result<(), MixLineError> {
        let Some((image, executions)) = &self.block else { return Err(MixLineError::OutsideOfBlock) };
        let address = text.split_once(':').and_then(|(address, _)| {
            let address = address.trim();
            u64::from_str_radix(address.strip_prefix("0x").unwrap_or(address), 16).ok()
        });
        let address = address.ok_or(MixLineError::Address)?;
        let sum = self.file.counts.entry((image.clone(), address)).or_default();
        *sum = sum.saturating_add(*executions);
        Ok(())
    }

    /// `JNZ 10`, or with a star a sum of another kind.
    fn count(&mut self, text: &str) -> Result<(), MixLineError> {
        let mut fields = text.split_whitespace();
        let (Some(name), Some(count)) = (fields.next(), fields.next()) else { return Ok(()) };
        let count: u64 = count.parse().map_err(|_| MixLineError::Count(name.to_owned()))?;
        match name.strip_prefix('*') {
            None => {
                let sum = self.file.mnemonics.entry(mnemonic_of_iclass(name)).or_default();
                *sum = sum.saturating_add(count);
            }
            Some("total") => self.total = Some(count),
            Some(_) => {}
        }
        Ok(())
    }
}

/// The analyzer's name of what XED, the decoder of SDE, calls so: `JNZ` is `jne`, `CALL_NEAR` is `call`, `REP_STOSB` is `stosb`.
pub(super) fn mnemonic_of_iclass(iclass: &str) -> String {
    let name = iclass.to_ascii_lowercase();
    let name = ["rep_", "repe_", "repne_"].iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(&name);
    if name == "ret_far" {
        return "retf".to_owned();
    }
    let name = ["_near", "_far", "_lock", "_xmm"].iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name);
    for prefix in ["cmov", "set", "j"] {
        if let Some(condition) = name.strip_prefix(prefix)
            && let Some((_, ours)) = CONDITIONS.iter().find(|(xed, _)| *xed == condition)
        {
            return format!("{prefix}{ours}");
        }
    }
    name.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
# Mix output version 14
# Intel(R) SDE version: 9.33.0 external
# EMIT_TOP_BLOCK_STATS FOR TID 0 OS-TID 71  EMIT #1
BLOCK:     0   PC: 401000   ICOUNT:    40   EXECUTIONS:   20   #BYTES: 3   PCT: 66.67   CUMLPCT: 66.67   FN: _start   IMG: /bin/two words
XDIS 401000: BASE     90                       nop
XDIS 401001: BASE     75fd                     jnz 0x401000

BLOCK:     1   PC: 401001   ICOUNT:    20   EXECUTIONS:   20   #BYTES: 2
XDIS 0x401001: BASE     75fd                     jnz 0x401000
# END_TOP_BLOCK_STATS
# EMIT_GLOBAL_DYNAMIC_STATS   EMIT# 1
#
# $global-dynamic-counts
#
#             iclass     count
*isa-ext-BASE                   60
JNZ                             40
CALL_NEAR                        0
NOP                             20
*total                          60
# END_GLOBAL_DYNAMIC_STATS
";

    #[test]
    fn blocks_are_added_up_per_instruction() {
        let file = MixFile::read(FILE.as_bytes()).unwrap();
        let image = || Some("/bin/two words".to_string());
        assert_eq!(
            file.counts,
            BTreeMap::from([((None, 0x401001), 20), ((image(), 0x401000), 20), ((image(), 0x401001), 20)])
        );
        assert_eq!(file.engine, "Intel SDE 9.33.0 external");
        assert_eq!((file.mnemonics["jne"], file.mnemonics["nop"], file.total()), (40, 20, 60));
    }

    #[test]
    fn names_of_xed_are_translated() {
        for (xed, ours) in [
            ("JNBE", "ja"),
            ("JRCXZ", "jrcxz"),
            ("JMP", "jmp"),
            ("SETNLE", "setg"),
            ("CMOVS", "cmovs"),
            ("REP_MOVSB", "movsb"),
            ("RET_NEAR", "ret"),
            ("XADD_LOCK", "xadd"),
            ("MOVSD_XMM", "movsd"),
        ] {
            assert_eq!(mnemonic_of_iclass(xed), ours);
        }
    }

    #[test]
    fn damaged_files_are_refused() {
        let check = |text: &str, what: &str| {
            let said = MixFile::read(text.as_bytes()).unwrap_err().to_string();
            assert!(said.contains(what), "{said}");
        };
        check(&FILE[..FILE.find("*total").unwrap()], "it has no counts under `# $global-dynamic-counts`");
        check(&FILE.replace("20\n*total", "21\n*total"), "its mnemonics add up to 61 instructions, `*total` says 60");
        check(&FILE.replace("EXECUTIONS:   20", ""), "line 4: a block without a number of EXECUTIONS:");
        check("XDIS 401000: BASE 90 nop\n", "line 1: XDIS outside of a block");
    }
}
