//! The code of BPF programs, which the kernel has as long as they are loaded.
//!
//! ```text
//! record BPF_EVENT: loaded --+
//! programs there before -----+-> bpf(2): code of each function -> kept while it is there
//! record KSYMBOL: it went ----> kept on if a sample fell into it, forgotten if none did
//! end of the file ------------> records hbbpcode of those in which samples fell
//! ```
//!
//! Records of the kernel say when a function came, where it is and what it is called. Of what was there before they are made up, as `perf
//! record` does. Filters of the old kind (sockets, seccomp) are compiled to code, too, and no record tells of them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use formats::made_code::{KERNEL_PID, MadeCode};
use perf_event_open_sys::bindings as sys;
use perfdata::{Avma, Error, EventDescription, Ksymbol, Writer};

use super::{KernelHits, MOST, PIECE};
use crate::errno::Errno;
use crate::session::kernel_image::{self, IMAGE_END, KernelMapping};
use crate::session::record_layout::{RecordBytes, RecordLayout, word};
use crate::session::standing::sample_id;
use crate::sys::{BpfFunction, bpf_program, next_program};

/// `PERF_BPF_EVENT_PROG_LOAD`, and `PERF_RECORD_KSYMBOL_TYPE_BPF`.
const LOADED: u16 = 1;
const OF_BPF: u16 = 1;
/// When what was there before came: 0 is when copies of the end were made.
const BEFORE: u64 = 1;
/// Symbols of which no program is known yet: its record is the next one.
const MOST_SYMBOLS: usize = 4096;

/// What asks the kernel for a program.
type Ask = fn(u32) -> Result<Vec<BpfFunction>, Errno>;

/// Functions of programs.
#[derive(Debug)]
pub(crate) struct BpfCode {
    layout: RecordLayout,
    ask: Ask,
    /// Those that are loaded, by address and by when they came.
    loaded: BTreeMap<(u64, u64), Function>,
    /// Those that went, in which samples fell.
    ended: Vec<((u64, u64), Function)>,
    /// The last symbols: address, length, record.
    symbols: Vec<(u64, u64, Vec<u8>)>,
    /// Bytes of code that are kept.
    bytes: u64,
    /// Programs that were found when recording began, and why others were not.
    found: BTreeSet<u32>,
    not_found: Option<Errno>,
}

#[derive(Debug)]
struct Function {
    length: u64,
    /// Nothing where it could not be read, and why.
    code: Result<Vec<u8>, Errno>,
    name: Vec<u8>,
    /// The record of its symbol; `None` of what was there before.
    symbol: Option<Vec<u8>>,
    /// The record is in the file.
    is_told: bool,
}

/// What a file is still to have.
#[derive(Debug, Default)]
pub(crate) struct BpfRecords {
    /// Records, whole.
    pub(crate) symbols: Vec<u8>,
    /// Bodies of records of code.
    pub(crate) bodies: Vec<Vec<u8>>,
    /// What is missing, in a sentence.
    pub(crate) degradation: Option<String>,
}

impl BpfCode {
    /// Nothing is loaded yet.
    pub(crate) fn new(layout: RecordLayout) -> Self {
        Self {
            layout,
            ask: bpf_program,
            loaded: BTreeMap::new(),
            ended: Vec::new(),
            symbols: Vec::new(),
            bytes: 0,
            found: BTreeSet::new(),
            not_found: None,
        }
    }

    /// Reads the programs that are there when recording begins.
    pub(crate) fn find(&mut self) {
        let mut id = 0;
        loop {
            match next_program(id) {
                // Ids ascend.
                Ok(Some(next)) if next > id => id = next,
                Ok(_) => return,
                Err(errno) => {
                    self.not_found = Some(errno);
                    return;
                }
            }
            match (self.ask)(id) {
                // It was unloaded meanwhile.
                Err(Errno::ENOENT) => {}
                Err(errno) => self.not_found = Some(errno),
                Ok(functions) => {
                    self.found.insert(id);
                    functions.into_iter().for_each(|function| self.keep(function, BEFORE, None));
                }
            }
        }
    }

    /// Takes in a record that has just come: the program may be gone soon.
    pub(crate) fn take_in(&mut self, record: &RecordBytes<'_>) {
        match record.kind {
            sys::PERF_RECORD_KSYMBOL => {
                if let Some((at, length, false)) = symbol(record) {
                    if self.symbols.len() >= MOST_SYMBOLS {
                        self.symbols.clear();
                    }
                    self.symbols.push((at, length, record.all.to_vec()));
                }
            }
            sys::PERF_RECORD_BPF_EVENT => drop(self.load(record)),
            _ => {}
        }
    }

    /// type, flags, id. The symbols of the program came before.
    fn load(&mut self, record: &RecordBytes<'_>) -> Option<()> {
        let first = word(record.body, 0)?;
        let (kind, id) = (first as u16, (first >> 32) as u32);
        if kind != LOADED {
            return None;
        }
        let symbols = std::mem::take(&mut self.symbols);
        if self.found.contains(&id) {
            return None;
        }
        let time = self.layout.time(record)?.max(BEFORE);
        let (functions, why) = match (self.ask)(id) {
            Ok(functions) => (functions, Errno::ENOENT),
            Err(errno) => (Vec::new(), errno),
        };
        let mut symbols: BTreeMap<u64, (u64, Vec<u8>)> =
            symbols.into_iter().map(|(at, length, symbol)| (at, (length, symbol))).collect();
        for function in functions {
            // Records of another CPU may be lost, or come after this one.
            let symbol = symbols.remove(&function.at).map(|(_, symbol)| symbol);
            self.keep(function, time, symbol);
        }
        for (at, (length, symbol)) in symbols.into_iter().filter(|(_, (_, symbol))| is_program(symbol)) {
            let function = Function { length, code: Err(why), name: Vec::new(), symbol: Some(symbol), is_told: true };
            self.loaded.insert((at, time), function);
        }
        Some(())
    }

    fn keep(&mut self, function: BpfFunction, time: u64, symbol: Option<Vec<u8>>) {
        let BpfFunction { at, code, name } = function;
        let length = code.len() as u64;
        let has_room = self.bytes + length <= MOST;
        let code = if has_room { Ok(code) } else { Err(Errno::ENOSPC) };
        self.bytes += if has_room { length } else { 0 };
        let is_told = symbol.is_some();
        self.loaded.insert((at, time), Function { length, code, name, symbol, is_told });
    }

    /// A record goes by in its place in time: what went is kept on if a sample before fell into it, or if some are `held_back`.
    pub(crate) fn pass(&mut self, record: &RecordBytes<'_>, hits: &KernelHits, held_back: bool) {
        if record.kind != sys::PERF_RECORD_KSYMBOL {
            return;
        }
        let (Some((at, _, true)), Some(time)) = (symbol(record), self.layout.time(record)) else { return };
        let first = self.loaded.range((at, 0)..=(at, time)).next().map(|(key, _)| *key);
        let Some((key, function)) = first.and_then(|key| self.loaded.remove_entry(&key)) else { return };
        if held_back || hits.any_in(function.range(at)) {
            self.ended.push((key, function));
        } else {
            self.bytes -= function.bytes();
        }
    }

    /// What a file is to have of the programs in which its samples fell. What is loaded still is taken out of `hits`.
    ///
    /// # Errors
    /// A name is too long.
    pub(crate) fn take(&mut self, events: &[EventDescription], hits: &mut KernelHits) -> Result<BpfRecords, Error> {
        let mut records = BpfRecords::default();
        let mut unread: BTreeMap<i32, u64> = BTreeMap::new();
        let mut symbols = Writer::of_records(Vec::new(), events)?;
        let ended = std::mem::take(&mut self.ended);
        self.bytes -= ended.iter().map(|(_, function)| function.bytes()).sum::<u64>();
        let mut write = |(at, time): (u64, u64), function: &Function| -> Result<(), Error> {
            match (&function.symbol, function.is_told) {
                (_, true) => {}
                (Some(record), false) => symbols.write_raw(record)?,
                (None, false) => symbols.write_ksymbol(&Ksymbol {
                    addr: Avma(at),
                    len: function.length as u32,
                    ksym_type: OF_BPF,
                    unregister: false,
                    name: &function.name,
                    sample_id: sample_id(events, u32::MAX, 0),
                })?,
            }
            match &function.code {
                Ok(code) => {
                    let pieces = (at..).step_by(PIECE).zip(code.chunks(PIECE)).collect();
                    records.bodies.extend(MadeCode::Executed { time, pid: KERNEL_PID, pieces }.to_record_bodies());
                }
                Err(errno) => *unread.entry(errno.0).or_default() += 1,
            }
            Ok(())
        };
        for (key, function) in ended.iter().filter(|(key, function)| hits.any_in(function.range(key.0))) {
            write(*key, function)?;
        }
        for (key, function) in &mut self.loaded {
            let range = function.range(key.0);
            if hits.any_in(range.clone()) {
                write(*key, function)?;
                if function.code.is_ok() {
                    hits.take_out(range);
                }
            }
            function.is_told = false;
        }
        records.symbols = std::mem::take(symbols.get_mut());
        let of_loaded = |(errno, number): (&i32, &u64)| format!("{number}: {}", why(Errno(*errno)));
        let all: Vec<String> = unread.iter().map(of_loaded).collect();
        let loaded = (!all.is_empty())
            .then(|| format!("functions of BPF programs that samples fell into are unread ({})", all.join("; ")));
        let others = self.not_found.filter(|_| hits.any_beside(IMAGE_END, &modules()));
        let before = others.map(|errno| {
            format!("BPF programs from before the recording are unread, if samples fell into them ({})", why(errno))
        });
        let said: Vec<String> = loaded.into_iter().chain(before).collect();
        records.degradation = (!said.is_empty()).then(|| said.join("; "));
        Ok(records)
    }
}

/// Where modules are, ascending; none where the kernel does not say.
fn modules() -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> =
        kernel_image::modules(Path::new("/"), "").iter().map(KernelMapping::range).collect();
    ranges.sort_unstable_by_key(|range| range.start);
    ranges
}

fn why(errno: Errno) -> String {
    match errno {
        Errno::ENOENT => "unloaded before they could be read".to_owned(),
        Errno::EPERM => "reading them takes CAP_SYS_ADMIN".to_owned(),
        Errno::EACCES => "kernel.kptr_restrict hides their code, or CAP_SYSLOG is missing".to_owned(),
        Errno::ENOSPC => format!("more than a recording keeps, {} MiB", MOST >> 20),
        errno => errno.to_string(),
    }
}

impl Function {
    fn range(&self, at: u64) -> Range<u64> {
        at..at.saturating_add(self.length)
    }

    fn bytes(&self) -> u64 {
        self.code.as_ref().map_or(0, |code| code.len() as u64)
    }
}

/// Address, length and whether it went, of a symbol of BPF.
fn symbol(record: &RecordBytes<'_>) -> Option<(u64, u64, bool)> {
    let (at, second) = (word(record.body, 0)?, word(record.body, 8)?);
    let (length, kind, flags) = (second as u32, (second >> 32) as u16, (second >> 48) as u32);
    let went = flags & sys::PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER != 0;
    (kind == OF_BPF).then_some((at, u64::from(length), went))
}

/// Whether the record of a symbol is one of a program, and not of what the kernel makes to call programs.
fn is_program(symbol: &[u8]) -> bool {
    const NAME: usize = crate::session::record_layout::HEADER + 16;
    symbol.get(NAME..).is_some_and(|name| name.starts_with(b"bpf_prog_"))
}

#[cfg(test)]
mod tests {
    use formats::metadata::RECORD_TYPE;

    use super::*;
    use crate::session::record_layout::{first_record, one_event};

    const AT: u64 = 0xffff_ffff_c000_1000;

    /// Programs with an even id have a function of 8 bytes at `AT` and a page later, each byte the id; others are gone.
    fn ask(id: u32) -> Result<Vec<BpfFunction>, Errno> {
        let function = |at| BpfFunction { at, code: vec![id as u8; 8], name: b"bpf_prog_1".to_vec() };
        if id.is_multiple_of(2) { Ok(vec![function(AT), function(AT + 0x1000)]) } else { Err(Errno::ENOENT) }
    }

    fn programs() -> BpfCode {
        BpfCode { ask, ..BpfCode::new(RecordLayout::of_events(&one_event())) }
    }

    fn ksymbol(at: u64, time: u64, unregister: bool) -> Vec<u8> {
        let mut writer = Writer::of_records(Vec::new(), &one_event()).unwrap();
        let sample_id = perfdata::SampleId { time: Some(time), ..sample_id(&one_event(), 0, 0) };
        let name = b"bpf_prog_0123456789abcdef_name";
        let symbol = Ksymbol { addr: Avma(at), len: 8, ksym_type: 1, unregister, name, sample_id };
        writer.write_ksymbol(&symbol).unwrap();
        std::mem::take(writer.get_mut())
    }

    /// type and flags, id, tag; pid and tid, time, id of the event.
    fn loaded(id: u32, time: u64) -> Vec<u8> {
        let words = [1 | u64::from(id) << 32, 0, 0, time, 5];
        [18, 0, 0, 0, 0, 0, 48, 0].into_iter().chain(words.into_iter().flat_map(u64::to_le_bytes)).collect()
    }

    fn hits(at: &[u64]) -> KernelHits {
        let mut hits = KernelHits::default();
        at.iter().for_each(|at| hits.see(&at.to_le_bytes()));
        hits
    }

    fn take_in(programs: &mut BpfCode, records: &[Vec<u8>]) {
        records.iter().for_each(|record| programs.take_in(&first_record(record, 0).unwrap().unwrap()));
    }

    fn pass(programs: &mut BpfCode, record: &[u8], hits: &KernelHits) {
        programs.pass(&first_record(record, 0).unwrap().unwrap(), hits, false);
    }

    /// Address, time and first byte of the code that is written.
    fn written(records: &BpfRecords) -> Vec<(u64, u64, u8)> {
        let piece = |body: &Vec<u8>| match MadeCode::of_record(RECORD_TYPE, body).unwrap() {
            MadeCode::Executed { time, pid: KERNEL_PID, pieces } => (pieces[0].0, time, pieces[0].1[0]),
            other => panic!("{other:?}"),
        };
        records.bodies.iter().map(piece).collect()
    }

    #[test]
    fn what_was_hit_is_written_though_it_was_unloaded() {
        let mut programs = programs();
        take_in(&mut programs, &[ksymbol(AT, 10, false), ksymbol(AT + 0x1000, 10, false), loaded(2, 10)]);
        let mut seen = hits(&[AT + 4]);
        pass(&mut programs, &ksymbol(AT, 20, true), &seen);
        pass(&mut programs, &ksymbol(AT + 0x1000, 20, true), &seen);
        // Another program at the same address, taken in before.
        take_in(&mut programs, &[ksymbol(AT, 30, false), loaded(4, 30)]);
        let records = programs.take(&one_event(), &mut seen).unwrap();
        assert_eq!(written(&records), [(AT, 10, 2), (AT, 30, 4)]);
        assert!(records.symbols.is_empty() && records.degradation.is_none());
        assert!(seen.is_empty(), "its code is there");
        assert_eq!(programs.bytes, 16, "of both functions, though one symbol did not come");
        // In a file after, it is told again; what was unloaded is not.
        let again = programs.take(&one_event(), &mut hits(&[AT + 4])).unwrap();
        assert_eq!((written(&again), again.symbols), (vec![(AT, 30, 4)], ksymbol(AT, 30, false)));
    }

    #[test]
    fn what_is_loaded_before_the_other_is_known_to_be_gone_is_not_taken_for_it() {
        let mut programs = programs();
        take_in(&mut programs, &[ksymbol(AT, 10, false), loaded(2, 10), ksymbol(AT, 30, false), loaded(4, 30)]);
        let seen = hits(&[AT]);
        pass(&mut programs, &ksymbol(AT, 20, true), &hits(&[]));
        let records = programs.take(&one_event(), &mut seen.clone()).unwrap();
        assert_eq!(written(&records), [(AT, 30, 4)]);
    }

    #[test]
    fn what_was_there_before_is_told() {
        let mut programs = programs();
        ask(6).unwrap().into_iter().for_each(|function| programs.keep(function, BEFORE, None));
        let mut seen = hits(&[AT + 0x1000, AT + 0x5000]);
        let records = programs.take(&one_event(), &mut seen).unwrap();
        assert_eq!(written(&records), [(AT + 0x1000, BEFORE, 6)]);
        let (at, length, went) = symbol(&first_record(&records.symbols, 0).unwrap().unwrap()).unwrap();
        assert_eq!((at, length, went), (AT + 0x1000, 8, false));
        assert!(seen.any_in(AT..u64::MAX), "what is of none stays");
    }

    #[test]
    fn what_could_not_be_read_is_said_where_samples_fell_into_it() {
        let mut programs = programs();
        take_in(&mut programs, &[ksymbol(AT, 10, false), loaded(3, 10)]);
        assert_eq!(programs.take(&one_event(), &mut hits(&[AT + 0x5000])).unwrap().degradation, None);
        let said = programs.take(&one_event(), &mut hits(&[AT])).unwrap().degradation.unwrap();
        assert!(said.contains("1: unloaded before they could be read"), "{said}");
        programs.not_found = Some(Errno::EPERM);
        assert_eq!(programs.take(&one_event(), &mut hits(&[0xffff_ffff_8100_0000])).unwrap().degradation, None);
        let said = programs.take(&one_event(), &mut hits(&[AT + 0x5000])).unwrap().degradation.unwrap();
        assert!(said.contains("from before the recording are unread") && said.contains("CAP_SYS_ADMIN"), "{said}");
    }

    #[test]
    fn records_that_are_cut_off_say_what_they_have() {
        let mut programs = programs();
        for length in 8..48_u8 {
            for mut record in [ksymbol(AT, 10, false), loaded(2, 10)] {
                record.truncate(length.into());
                record[6] = record.len() as u8;
                take_in(&mut programs, &[record.clone()]);
                pass(&mut programs, &record, &hits(&[AT]));
            }
            // Of a symbol without its length nothing is known.
            assert!(length >= 24 || programs.loaded.is_empty(), "{length}");
        }
    }
}
