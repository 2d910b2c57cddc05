//! Code of the running kernel: the functions in which samples fell are copied when the recording ends. What changes before is told by records
//! of the kernel (`changes`), and BPF programs are read while they are there (`bpf`).
//!
//! ```text
//! samples: addresses of kernel code --+
//! /proc/kallsyms: functions ----------+-> ranges -> /proc/kcore, or a program of BPF: bytes -> records hbbpcode, hbbpname
//! /proc/modules: loaded meanwhile ----+-> mappings
//! events: KSYMBOL, BPF_EVENT ---------+-> programs -> bpf(2): bytes ----> records hbbpcode
//!         TEXT_POKE -------------------------------------------------> as they are
//! ```
//!
//! The kernel patches its code while it runs (static keys, alternatives, ftrace), so its file has other instructions, and servers seldom have
//! the file.

mod bpf;
mod changes;
#[cfg(test)]
mod cost;
mod kcore;
mod late_modules;
mod memory;
mod symbols;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::path::Path;

use formats::kernel_entries::{FRED, INT_80, SYSCALL};
use formats::made_code::{KERNEL_PID, MadeCode};

pub(crate) use bpf::BpfCode;
pub(crate) use changes::KernelChanges;

use crate::errno::{Errno, plain};
use crate::session::kernel_image::{KernelMapping, modules};
use late_modules::{Known, late_modules};
pub(crate) use memory::by_bpf;
use memory::{ByBpf, Memory};
use symbols::Symbols;

/// Where the kernel's image and its modules are on x86-64: the highest 2 GiB.
const TEXT: u64 = 0xffff_ffff_8000_0000;
/// Addresses that are kept.
const MOST_ADDRESSES: usize = 1 << 18;
/// Bytes of code that a recording has at most,
const MOST: u64 = 64 << 20;
/// and those of a function. Of a longer one, and of code without a symbol, the pages are copied in which samples fell.
const LONGEST_FUNCTION: u64 = 1 << 20;
const PAGE: u64 = 4096;
/// Where system calls enter the kernel: no sample falls there while it has interrupts off, and they are kept all the same.
const ENTRIES: [&str; 3] = [SYSCALL, INT_80[0], INT_80[1]];
/// Bytes of a piece in a record.
const PIECE: usize = 32 << 10;

/// Addresses of kernel code in samples.
#[derive(Clone, Debug, Default)]
pub(crate) struct KernelHits {
    addresses: BTreeSet<u64>,
    left_out: bool,
    known: Vec<Known>,
}

/// What was copied.
#[derive(Debug)]
pub(crate) struct KernelCode {
    /// Modules of the kernel that were loaded while it was recorded.
    pub(crate) modules: Vec<KernelMapping>,
    /// Code and names, as bodies of records.
    pub(crate) bodies: Vec<Vec<u8>>,
    /// What is missing, in a sentence.
    pub(crate) degradation: Option<String>,
    /// The same of modules that were loaded meanwhile.
    pub(crate) unclear_modules: Option<String>,
}

impl KernelHits {
    /// Takes in the words of a sample: an instruction pointer, a call chain or branches. A word that only looks like an address of kernel code
    /// costs the copy of a function at most.
    pub(crate) fn see(&mut self, sample: &[u8]) {
        for word in sample.as_chunks::<8>().0 {
            let address = u64::from_le_bytes(*word);
            if address < TEXT || self.addresses.contains(&address) {
                continue;
            }
            if self.addresses.len() < MOST_ADDRESSES {
                self.addresses.insert(address);
            } else {
                self.left_out = true;
            }
        }
    }

    /// Takes in a mapping of the kernel that the recording has.
    pub(crate) fn map(&mut self, start: u64, length: u64, path: &[u8]) {
        self.known.push(Known::new(start, length, path));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }

    /// Whether some are in the range.
    pub(crate) fn any_in(&self, range: Range<u64>) -> bool {
        self.addresses.range(range).next().is_some()
    }

    /// Whether some from `start` on are in none of these ranges, which ascend.
    pub(crate) fn any_beside(&self, start: u64, ranges: &[Range<u64>]) -> bool {
        self.addresses.range(start..).any(|at| {
            let before = ranges.partition_point(|range| range.start <= *at);
            before.checked_sub(1).and_then(|last| ranges.get(last)).is_none_or(|range| !range.contains(at))
        })
    }

    /// Takes those in the range out: their code is kept otherwise.
    pub(crate) fn take_out(&mut self, range: Range<u64>) {
        let within: Vec<u64> = self.addresses.range(range).copied().collect();
        within.iter().for_each(|at| {
            self.addresses.remove(at);
        });
    }

    /// Copies the code around the addresses, and its names: from the files `proc/kcore` and `proc/kallsyms` below `root`; without the first one
    /// `by_bpf` reads the code. What cannot be read of one is said; the other is read all the same. `release`: of the kernel, by which the files of
    /// modules are found that were loaded meanwhile.
    pub(crate) fn copy(&self, root: &Path, by_bpf: ByBpf, release: &str) -> KernelCode {
        let memory = Memory::open(root, by_bpf);
        let mut addresses: Vec<u64> = self.addresses.iter().copied().collect();
        if let Ok(memory) = &memory {
            let there: Vec<u64> = addresses.iter().copied().filter(|at| memory.has(*at)).collect();
            // Of none of them there are the names.
            if !there.is_empty() {
                addresses = there;
            }
        }
        let entries = if has_fred(&root.join("proc/cpuinfo")) { &[FRED][..] } else { &ENTRIES };
        let symbols = Symbols::around(&root.join("proc/kallsyms"), &addresses, entries);
        let without_names = symbols.as_ref().err().filter(|_| memory.is_ok()).map(|error| {
            format!("functions of the kernel have no names: /proc/kallsyms cannot be read ({})", plain(error))
        });
        let symbols = symbols.unwrap_or_default();
        let (code, degradation) = match memory {
            Ok(memory) => {
                let of_entry = |(range, name): &(Range<u64>, String)| entries.contains(&&**name).then_some(range.start);
                addresses.extend(symbols.functions.iter().filter_map(of_entry));
                addresses.sort_unstable();
                let (ranges, no_room) = ranges(&addresses, &symbols);
                let missing = (self.left_out || no_room).then(|| {
                    format!(
                        "more kernel code ran than a recording keeps ({} MiB): the rest of it is unread",
                        MOST >> 20
                    )
                });
                let code = copied(&memory, ranges);
                let nothing = (code.is_empty() && !symbols.functions.is_empty())
                    .then(|| without_code(true, "nothing of it could be read"));
                (code, nothing.or(missing))
            }
            Err(why) => (Vec::new(), Some(without_code(!symbols.functions.is_empty(), &without_memory(&why)))),
        };
        let pieces =
            code.iter().flat_map(|(start, bytes)| (*start..).step_by(PIECE).zip(bytes.chunks(PIECE))).collect();
        let names =
            symbols.functions.iter().map(|(range, name)| (range.start, range.end - range.start, name.as_bytes()));
        let mut bodies = MadeCode::Executed { time: 0, pid: KERNEL_PID, pieces }.to_record_bodies();
        bodies.extend(MadeCode::Named { since: 0, pid: KERNEL_PID, names: names.collect() }.to_record_bodies());
        let (modules, unclear_modules) = late_modules(modules(root, release), self);
        KernelCode { modules, bodies, degradation: degradation.or(without_names), unclear_modules }
    }
}

/// Whether the kernel uses FRED: it takes the flag out of the list where it does not.
fn has_fred(cpuinfo: &Path) -> bool {
    let list = std::fs::read_to_string(cpuinfo).unwrap_or_default();
    let flags = list.lines().find(|line| line.starts_with("flags"));
    flags.is_some_and(|flags| flags.split_ascii_whitespace().any(|flag| flag == "fred"))
}

/// The bytes of these ranges, and where they begin.
fn copied(memory: &Memory, ranges: Vec<Range<u64>>) -> Vec<(u64, Vec<u8>)> {
    // What was unloaded meanwhile reads as zeros.
    let is_there = |(_, bytes): &(u64, Vec<u8>)| bytes.iter().any(|byte| *byte != 0);
    ranges.iter().flat_map(|range| memory.read(range)).filter(is_there).collect()
}

/// What is said where the code cannot be read.
fn without_code(has_names: bool, why: &str) -> String {
    let names =
        if has_names { ", its functions have their names alone" } else { ", nor are the names of its functions" };
    format!("kernel code is not in the recording{names}: {why}")
}

/// Why nothing has the kernel's memory, and what to do.
fn without_memory((no_kcore, no_bpf): &(io::Error, Errno)) -> String {
    format!(
        "/proc/kcore cannot be read ({}), nor can BPF read the kernel's memory ({no_bpf}); record with CAP_SYS_ADMIN, or give reports the \
         kernel's vmlinux (--binary)",
        plain(no_kcore)
    )
}

/// The code around the addresses, which ascend: disjoint, not adjacent. And whether there was no room for some.
fn ranges(addresses: &[u64], symbols: &Symbols) -> (Vec<Range<u64>>, bool) {
    let mut wanted: BTreeMap<u64, u64> = BTreeMap::new();
    for at in addresses {
        let function = symbols.at(*at).filter(|range| range.end - range.start <= LONGEST_FUNCTION);
        let range = function.unwrap_or_else(|| {
            let page = at - at % PAGE;
            page..page.saturating_add(PAGE)
        });
        let end = wanted.entry(range.start).or_insert(range.end);
        *end = range.end.max(*end);
    }
    let (mut ranges, mut bytes): (Vec<Range<u64>>, u64) = (Vec::new(), 0);
    for (start, end) in wanted {
        let more = match ranges.last() {
            Some(last) if start <= last.end => end.saturating_sub(last.end),
            _ => end - start,
        };
        if bytes + more > MOST {
            return (ranges, true);
        }
        bytes += more;
        match ranges.last_mut() {
            Some(last) if start <= last.end => last.end = end.max(last.end),
            _ => ranges.push(start..end),
        }
    }
    (ranges, false)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use formats::metadata::RECORD_TYPE;

    use super::*;

    const AT: u64 = 0xffff_ffff_9f00_0000;
    const NO_BPF: ByBpf = || Err(Errno::EPERM);

    /// A folder with `proc/kcore`, two pages of code of which each byte is the low byte of its address plus 1, and `proc/kallsyms`.
    fn root(kallsyms: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("proc")).unwrap();
        let code: Vec<u8> = (0..2 * PAGE).map(|at| (at % 255) as u8 + 1).collect();
        fs::write(root.path().join("proc/kcore"), kcore::elf(&[(AT, &code)])).unwrap();
        fs::write(root.path().join("proc/kallsyms"), kallsyms).unwrap();
        root
    }

    fn hits(addresses: &[u64]) -> KernelHits {
        let mut hits = KernelHits::default();
        let words: Vec<u8> = addresses.iter().flat_map(|word| word.to_le_bytes()).collect();
        hits.see(&words);
        hits
    }

    type Copied = (Vec<(u64, usize)>, Vec<(u64, u64, String)>);

    /// Addresses and lengths of the pieces, whose bytes are right; names.
    fn records(code: &KernelCode) -> Copied {
        let (mut pieces, mut named) = (Vec::new(), Vec::new());
        for body in &code.bodies {
            match MadeCode::of_record(RECORD_TYPE, body).unwrap() {
                MadeCode::Executed { time: 0, pid: KERNEL_PID, pieces: of_record } => {
                    for (at, bytes) in of_record {
                        assert_eq!(bytes[0], ((at - AT) % 255) as u8 + 1);
                        pieces.push((at, bytes.len()));
                    }
                }
                MadeCode::Named { since: 0, pid: KERNEL_PID, names } => {
                    named.extend(
                        names.iter().map(|(at, size, name)| (*at, *size, String::from_utf8(name.to_vec()).unwrap())),
                    );
                }
                other => panic!("{other:?}"),
            }
        }
        (pieces, named)
    }

    const KALLSYMS: &str = "ffffffff9f000000 T _text\nffffffff9f000000 T first\nffffffff9f000040 t second\n\
                            ffffffff9f000100 t third\nffffffff9f000180 d data\nffffffff9f001000 t of_module\t[ext4]\n";

    #[test]
    fn functions_are_copied_in_which_samples_fell() {
        let root = root(KALLSYMS);
        let hits = hits(&[7, AT + 0x50, AT + 0x44, AT + 0x110, 0x40_1000, u64::MAX, AT + 0x9_0000]);
        let code = hits.copy(root.path(), NO_BPF, "");
        let (pieces, names) = records(&code);
        assert_eq!(pieces, [(AT + 0x40, 0x140)], "two functions, one after the other");
        assert_eq!(names, [(AT + 0x40, 0xc0, "second".into()), (AT + 0x100, 0x80, "third".into())]);
        assert!(code.degradation.is_none());
    }

    #[test]
    fn where_system_calls_enter_the_kernel_is_kept_without_a_sample() {
        let kallsyms = "ffffffff9f000000 T _text\nffffffff9f000000 T entry_SYSCALL_64\nffffffff9f000040 T inside\n\
                        ffffffff9f000080 T asm_fred_entrypoint_user\nffffffff9f0000c0 T other\nffffffff9f000100 t third\n\
                        ffffffff9f000180 t entry_SYSCALL_compat\t[odd]\nffffffff9f000190 t last\n";
        let root = root(kallsyms);
        let copy = || records(&hits(&[AT + 0x110]).copy(root.path(), NO_BPF, ""));
        let third = (AT + 0x100, 0x80, "third".to_owned());
        let expected = vec![(AT, 0x40, "entry_SYSCALL_64".to_owned()), third.clone()];
        assert_eq!(copy(), (vec![(AT, 0x40), (AT + 0x100, 0x80)], expected));
        fs::write(root.path().join("proc/cpuinfo"), "flags\t\t: fpu fred lkgs\n").unwrap();
        let expected = vec![(AT + 0x80, 0x40, "asm_fred_entrypoint_user".to_owned()), third];
        assert_eq!(copy(), (vec![(AT + 0x80, 0x40), (AT + 0x100, 0x80)], expected));
    }

    #[test]
    fn of_code_without_an_end_the_page_is_copied() {
        let root = root(KALLSYMS);
        let (pieces, names) = records(&hits(&[AT + 0x1010]).copy(root.path(), NO_BPF, ""));
        assert_eq!((pieces, names), (vec![(AT + PAGE, PAGE as usize)], vec![(AT + PAGE, PAGE, "of_module".into())]));
    }

    #[test]
    fn names_are_recorded_without_the_code_too() {
        let root = root(KALLSYMS);
        fs::remove_file(root.path().join("proc/kcore")).unwrap();
        let code = hits(&[7, AT + 0x50, AT + 0x1010, u64::MAX, 0u64.wrapping_sub(128)]).copy(root.path(), NO_BPF, "");
        let names = [(AT + 0x40, 0xc0, "second".into()), (AT + PAGE, PAGE, "of_module".into())];
        assert_eq!(records(&code), (Vec::new(), names.to_vec()));
        let said = code.degradation.unwrap();
        assert!(
            said.contains(
                "have their names alone: /proc/kcore cannot be read (No such file or directory), nor can BPF read the kernel's memory \
                 (Operation not permitted)"
            ),
            "{said}"
        );
    }

    /// Where there is no `/proc/kcore`, and BPF may read the memory.
    #[test]
    fn pages_that_bpf_reads_are_copied() {
        struct Nothing;
        impl memory::ReadsPages for Nothing {
            fn read(&self, _: u64, _: &mut [u8]) -> Result<(), Errno> {
                Err(Errno::EPERM)
            }
        }
        let root = root(
            "ffffffff9f000000 T _text\nffffffff9f000040 t second\nffffffff9f001800 t third\nffffffff9f002800 t last\n",
        );
        fs::remove_file(root.path().join("proc/kcore")).unwrap();
        // The last word only looks like an address.
        let hits = hits(&[AT + 0x50, AT + 0x1900, AT + 0x5000]);
        let copied = |code: &KernelCode| {
            let executed = |body: &Vec<u8>| match MadeCode::of_record(RECORD_TYPE, body).unwrap() {
                MadeCode::Executed { pieces, .. } => {
                    pieces.iter().map(|(at, bytes)| (*at, bytes.len() as u64)).collect()
                }
                _ => Vec::new(),
            };
            code.bodies.iter().flat_map(executed).collect::<Vec<_>>()
        };
        let code = hits.copy(root.path(), || Ok(Box::new(memory::tests::SecondPages)), "");
        assert_eq!(copied(&code), [(AT + 0x40, PAGE - 0x40)], "the second page is not there");
        assert_eq!(code.degradation, None);
        let code = hits.copy(root.path(), || Ok(Box::new(Nothing)), "");
        assert_eq!(copied(&code), []);
        assert!(code.bodies.len() == 1 && code.degradation.unwrap().ends_with("nothing of it could be read"));
    }

    #[test]
    fn modules_that_were_loaded_meanwhile_are_mapped() {
        let root = root(KALLSYMS);
        let list = format!("ext4 4096 1 - Live {:#x}\nidle 4096 0 - Live {:#x}\n", AT + PAGE, AT + 2 * PAGE);
        fs::write(root.path().join("proc/modules"), list).unwrap();
        let mut hits = hits(&[AT + 0x1010]);
        let ext4 = KernelMapping { start: AT + PAGE, length: PAGE, reference: 0, name: "[ext4]".to_owned() };
        assert_eq!(hits.copy(root.path(), NO_BPF, "none").modules, [ext4]);
        hits.map(AT + PAGE, PAGE, b"[ext4]");
        assert_eq!(hits.copy(root.path(), NO_BPF, "none").modules, []);
    }

    #[test]
    fn what_hides_the_kernel_is_said() {
        let hidden = root("0000000000000000 T _text\n0000000000000000 t second\n");
        assert_eq!(records(&hits(&[AT]).copy(hidden.path(), NO_BPF, "")).1, []);
        for file in ["proc/kcore", "proc/kallsyms"] {
            fs::remove_file(hidden.path().join(file)).unwrap();
            let code = hits(&[AT]).copy(hidden.path(), NO_BPF, "");
            assert!(code.bodies.is_empty() && code.degradation.unwrap().contains("nor are the names"), "{file}");
        }
    }

    #[test]
    fn there_is_room_for_so_much() {
        let addresses: Vec<u64> = (0..3 * MOST / PAGE).map(|page| TEXT + page * PAGE).collect();
        let (ranges, no_room) = ranges(&addresses, &Symbols::default());
        assert!(no_room && ranges.iter().map(|range| range.end - range.start).sum::<u64>() <= MOST);
        let mut all = KernelHits::default();
        (0..MOST_ADDRESSES as u64 + 1).for_each(|at| all.see(&(TEXT + at).to_le_bytes()));
        assert!(all.left_out && all.addresses.len() == MOST_ADDRESSES);
    }
}
