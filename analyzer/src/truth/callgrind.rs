//! Reads what callgrind writes with `--dump-instr=yes` (valgrind's manual, "Callgrind Format Specification").
//!
//! ```text
//! positions: instr line         what stands before the costs of a line
//! events: Ir                    which costs follow
//! ob=/usr/lib/libc.so.6         the object of the lines that follow; also `ob=(3) NAME` and later `ob=(3)`
//! 0x48c30 225 400001            address in the object, source line, instructions executed there
//! +2 * 400001                   the same with addresses told by their distance from the line before
//! calls=400000 0x48c10 106      the next line is what the callee cost, and is counted there
//! 0x1174 0 40400000
//! ```

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, Read};

use crate::address::Svma;

/// A profile: how many instructions were counted at every address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Callgrind {
    /// Who wrote it: `callgrind-3.19.0`.
    pub creator: String,
    /// The command line that ran.
    pub command: String,
    /// The process that ran.
    pub pid: Option<u64>,
    /// By the path of the object; callgrind calls code of no object `???`.
    pub objects: BTreeMap<String, Object>,
    /// Instructions executed in all, as the file says.
    pub total: u64,
}

/// What was counted in one object. Addresses are those of the file; in the object `???` those of the running process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Object {
    /// Instructions counted by address: executions, and iterations of `rep` instructions.
    pub counts: BTreeMap<Svma, u64>,
    /// Instructions that follow the cost of a call, at the same address: those of the stub that was called, where callgrind
    /// skipped stubs of the procedure linkage table (its default), as a rule.
    pub after_calls: BTreeMap<Svma, u64>,
    /// Calls of code of no object, by the addresses of the call and of the callee.
    pub calls_of_unknown: BTreeMap<(Svma, u64), u64>,
}

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CallgrindError {
    /// The system said so.
    #[error(transparent)]
    Read(#[from] std::io::Error),
    /// It is something else, or damaged.
    #[error("line {line}: {why}")]
    Line {
        /// Number of the line in the file, counted from 1.
        line: u64,
        /// What is wrong with it.
        why: CallgrindLineError,
    },
    /// There are no addresses in it.
    #[error("it counts by source line only: make it with `valgrind --tool=callgrind --dump-instr=yes`")]
    NoAddresses,
    /// The end is missing.
    #[error("it ends without `totals:`: it was cut short, or the program was killed while it was written")]
    Truncated,
    /// Lines are missing, or were changed.
    #[error("its lines add up to {sum} instructions, its end says {total}: part of it is missing")]
    Sum {
        /// Instructions that the lines add up to.
        sum: u64,
        /// Instructions that the line `totals:` states.
        total: u64,
    },
}

/// The name of code of no object.
pub const UNKNOWN: &str = "???";

/// Longest line; names are no longer.
const LONGEST_LINE: u64 = 1 << 20;

/// What is wrong with a line of a file of callgrind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallgrindLineError {
    /// No line that callgrind writes comes near it.
    #[error("it is longer than any callgrind writes")]
    TooLong,
    /// The first line is one of something else.
    #[error("no callgrind file begins like that")]
    Beginning,
    /// It has no meaning; its first 60 characters.
    #[error("`{0}` is nothing that callgrind writes")]
    Unknown(String),
    /// Instructions were not counted.
    #[error("`Ir`, instructions executed, is not among the events")]
    NoInstructions,
    /// The sum of all is not stated as a number.
    #[error("its total is no number")]
    Total,
    /// How often something was called is not stated.
    #[error("calls= without a number")]
    Calls,
    /// What was called is not stated.
    #[error("calls= without the address called")]
    Called,
    /// A name is used by a number that it was not given.
    #[error("nothing has number {0} yet")]
    Name(String),
    /// It is not stated yet what the columns are.
    #[error("costs come before `positions:` and `events:`")]
    BeforeColumns,
    /// Costs without a place.
    #[error("there is no address in it")]
    Address,
    /// Costs without a number.
    #[error("its cost is no number")]
    Cost,
    /// It is not stated yet which file's code it is.
    #[error("costs come before `ob=`")]
    BeforeObject,
    /// The sum of all costs does not fit into 64 bits.
    #[error("the costs are larger than any program's")]
    TooLarge,
}

impl Callgrind {
    /// Whether a file that begins with these bytes may be one of callgrind's.
    pub fn begins_like(bytes: &[u8]) -> bool {
        bytes.starts_with(b"# callgrind format") || bytes.starts_with(b"version:")
    }

    /// Reads one file. Files of several parts or threads are added up.
    ///
    /// # Errors
    /// What is wrong with it, and in which line.
    pub fn read(mut file: impl BufRead) -> Result<Self, CallgrindError> {
        let mut reader = Reader::default();
        let mut text = Vec::new();
        let mut line = 0;
        loop {
            line += 1;
            text.clear();
            let read = (&mut file).take(LONGEST_LINE).read_until(b'\n', &mut text)?;
            if read == 0 {
                break;
            }
            let wrong = |why: CallgrindLineError| CallgrindError::Line { line, why };
            if read as u64 == LONGEST_LINE {
                return Err(wrong(CallgrindLineError::TooLong));
            }
            if line == 1 && !Self::begins_like(&text) {
                return Err(wrong(CallgrindLineError::Beginning));
            }
            reader.line(&String::from_utf8_lossy(text.trim_ascii_end())).map_err(wrong)?;
        }
        reader.finish()
    }
}

/// The state from line to line.
#[derive(Default)]
struct Reader {
    profile: Callgrind,
    objects: Vec<Object>,
    indexes: HashMap<String, usize>,
    /// Names of objects that were given a number.
    names: HashMap<String, String>,
    /// The object of the lines that follow.
    object: usize,
    callee: Option<String>,
    /// The call whose cost is in the next line, if it is one of code of no object: callee, calls.
    call: Option<Option<(u64, u64)>>,
    /// The line before told the cost of a call at this address.
    after_call: Option<u64>,
    /// Columns before the costs, and which of them is the address.
    positions: Option<(usize, Option<usize>)>,
    /// The column of executed instructions among the costs.
    instructions: Option<usize>,
    last: u64,
    sum: u64,
    totals: Option<u64>,
}

impl Reader {
    fn finish(mut self) -> Result<Callgrind, CallgrindError> {
        if self.positions.is_some_and(|(_, address)| address.is_none()) {
            return Err(CallgrindError::NoAddresses);
        }
        let total = self.totals.ok_or(CallgrindError::Truncated)?;
        if total != self.sum {
            return Err(CallgrindError::Sum { sum: self.sum, total });
        }
        self.profile.total = total;
        let objects = &mut self.objects;
        let object = |(name, index): (_, usize)| Some((name, std::mem::take(objects.get_mut(index)?)));
        self.profile.objects = self.indexes.into_iter().filter_map(object).collect();
        self.profile.objects.retain(|_, object| *object != Object::default());
        Ok(self.profile)
    }

    fn line(&mut self, text: &str) -> Result<(), CallgrindLineError> {
        if text.is_empty() || text.starts_with('#') {
            return Ok(());
        }
        if text.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
            return self.costs(text);
        }
        let nothing = || CallgrindLineError::Unknown(text.chars().take(60).collect());
        let (key, value) = text.split_once(['=', ':']).ok_or_else(nothing)?;
        let is_assignment = text.as_bytes().get(key.len()) == Some(&b'=');
        if is_assignment { self.assignment(key, value.trim()) } else { self.header(key, value.trim()) }
    }

    fn header(&mut self, key: &str, value: &str) -> Result<(), CallgrindLineError> {
        match key {
            "creator" => value.clone_into(&mut self.profile.creator),
            "cmd" => value.clone_into(&mut self.profile.command),
            "pid" => self.profile.pid = value.parse().ok(),
            "positions" => {
                let names: Vec<&str> = value.split_whitespace().collect();
                self.positions = Some((names.len(), names.iter().position(|&name| name == "instr")));
            }
            "events" => {
                self.instructions = value.split_whitespace().position(|name| name == "Ir");
                if self.instructions.is_none() {
                    return Err(CallgrindLineError::NoInstructions);
                }
            }
            "totals" => {
                // One at the end of every part. Costs at the end that are zero are left out.
                let total = self.instructions.and_then(|column| value.split_whitespace().nth(column));
                let total: u64 = total.map_or(Ok(0), str::parse).map_err(|_| CallgrindLineError::Total)?;
                self.totals = Some(self.totals.unwrap_or(0).saturating_add(total));
            }
            // A part begins: distances are of its own.
            "part" => self.last = 0,
            _ => {}
        }
        Ok(())
    }

    fn assignment(&mut self, key: &str, value: &str) -> Result<(), CallgrindLineError> {
        match key {
            "ob" => {
                let name = self.name(value)?;
                self.object = *self.indexes.entry(name).or_insert(self.objects.len());
                if self.object == self.objects.len() {
                    self.objects.push(Object::default());
                }
            }
            "cob" => self.callee = Some(self.name(value)?),
            "calls" => {
                let mut fields = value.split_whitespace();
                let calls = fields.next().and_then(number).ok_or(CallgrindLineError::Calls)?;
                let to_column = self.positions.and_then(|(_, address)| address).unwrap_or(0);
                let target = fields.nth(to_column).and_then(|target| relative(target, self.last));
                let target = target.ok_or(CallgrindLineError::Called)?;
                let of_unknown = self.callee.take().is_some_and(|callee| callee == UNKNOWN);
                self.call = Some(of_unknown.then_some((target, calls)));
            }
            "fn" => self.after_call = None,
            _ => {}
        }
        Ok(())
    }

    /// `(3) NAME` gives a number to a name, `(3)` uses it; without numbers it is the name.
    fn name(&mut self, value: &str) -> Result<String, CallgrindLineError> {
        let Some((id, name)) = value.strip_prefix('(').and_then(|rest| rest.split_once(')')) else {
            return Ok(value.to_owned());
        };
        if name.trim().is_empty() {
            return self.names.get(id).cloned().ok_or_else(|| CallgrindLineError::Name(id.to_owned()));
        }
        self.names.insert(id.to_owned(), name.trim().to_owned());
        Ok(name.trim().to_owned())
    }

    fn costs(&mut self, text: &str) -> Result<(), CallgrindLineError> {
        let (Some((positions, address)), Some(instructions)) = (self.positions, self.instructions) else {
            return Err(CallgrindLineError::BeforeColumns);
        };
        let Some(address) = address else { return Ok(()) };
        let mut fields = text.split_whitespace();
        let at = fields.clone().nth(address).and_then(|field| relative(field, self.last));
        let at = at.ok_or(CallgrindLineError::Address)?;
        self.last = at;
        // Costs at the end that are zero are left out; after `jump=` there are none at all.
        let count = fields.nth(positions + instructions).map_or(Some(0), |field| field.parse().ok());
        let count: u64 = count.ok_or(CallgrindLineError::Cost)?;
        let after_call = self.after_call.take();
        let object = self.objects.get_mut(self.object).ok_or(CallgrindLineError::BeforeObject)?;
        let counts = match self.call.take() {
            Some(of_unknown) => {
                self.after_call = Some(at);
                if let Some((target, calls)) = of_unknown {
                    let sum = object.calls_of_unknown.entry((Svma(at), target)).or_default();
                    *sum = sum.saturating_add(calls);
                }
                return Ok(());
            }
            None if count == 0 => {
                self.after_call = after_call;
                return Ok(());
            }
            None if after_call == Some(at) => &mut object.after_calls,
            None => &mut object.counts,
        };
        // No sum of a part is larger than the sum of all.
        self.sum = self.sum.checked_add(count).ok_or(CallgrindLineError::TooLarge)?;
        *counts.entry(Svma(at)).or_default() += count;
        Ok(())
    }
}

/// `0x1f`, `31`, or by its distance from the address before: `+4`, `-4`, `*`.
fn relative(field: &str, last: u64) -> Option<u64> {
    match field.as_bytes().first()? {
        b'*' => Some(last),
        b'+' => last.checked_add(number(&field[1..])?),
        b'-' => last.checked_sub(number(&field[1..])?),
        _ => number(field),
    }
}

fn number(field: &str) -> Option<u64> {
    match field.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => field.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Callgrind, String> {
        Callgrind::read(text.as_bytes()).map_err(|error| error.to_string())
    }

    const HEAD: &str = "# callgrind format\nversion: 1\ncreator: callgrind-3.19.0\npid: 7\ncmd:  ./hot a=1\npositions: instr line\nevents: Ir\n";

    fn counts(counts: &BTreeMap<Svma, u64>) -> Vec<(u64, u64)> {
        counts.iter().map(|(at, n)| (at.0, *n)).collect()
    }

    #[test]
    fn what_a_callee_cost_is_not_counted_at_the_call() {
        let text = "ob=/bin/hot\nfn=main\n0x1174 0 5\ncob=???\ncfn=f\ncalls=4 0x109030 0\n0x1174 0 408\n0x1179 0 5\n\nob=???\nfn=f\n0x109030 0 4\n";
        let profile = read(&format!("{HEAD}{text}totals: 14\n")).unwrap();
        let hot = &profile.objects["/bin/hot"];
        assert_eq!(counts(&hot.counts), [(0x1174, 5), (0x1179, 5)]);
        assert_eq!(hot.calls_of_unknown, BTreeMap::from([((Svma(0x1174), 0x109030), 4)]));
        assert_eq!(counts(&profile.objects[UNKNOWN].counts), [(0x109030, 4)]);
        assert_eq!(profile.command, "./hot a=1");
        assert_eq!((profile.creator.as_str(), profile.pid, profile.total), ("callgrind-3.19.0", Some(7), 14));
    }

    #[test]
    fn what_follows_the_cost_of_a_call_at_its_address_is_told_apart() {
        let call = "cob=/lib/f\ncfn=f\ncalls=99 0x1109 0\n";
        let text = format!(
            "ob=/bin/hot\nfn=main\n0x1161 0 99\n{call}0x1161 0 198\n{call}0x1161 0 7\n0x1161 0 104\n0x1166 0 99\nfn=g\n0x1166 0 1\n"
        );
        let hot = &read(&format!("{HEAD}{text}totals: 303\n")).unwrap().objects["/bin/hot"];
        assert_eq!(counts(&hot.counts), [(0x1161, 99), (0x1166, 100)]);
        assert_eq!(counts(&hot.after_calls), [(0x1161, 104)]);
    }

    #[test]
    fn names_and_addresses_may_be_short() {
        let text = "ob=(1) /bin/a\nfl=(1) a.c\nfn=(1) main\n0x100 7 2\nfi=(2) a.h\n+4 * 2\nfe=(1)\njcnd=1/2 +3 +1\n* *\n+3 +1 1\ncalls=5 +9 8\n* * 700\njump=3 0x100 7\n+1 2\n\nob=(2) /bin/b\n0x50 1 9\n\nob=(1)\n-1 3 1\n";
        let profile = read(&format!("{HEAD}{text}totals: 15\n")).unwrap();
        assert_eq!(counts(&profile.objects["/bin/a"].counts), [(0x4f, 1), (0x100, 2), (0x104, 2), (0x107, 1)]);
        assert_eq!(counts(&profile.objects["/bin/b"].counts), [(0x50, 9)]);
    }

    #[test]
    fn parts_are_added_up() {
        let part = "part: 1\npositions: instr line\nevents: Dr Ir\nob=/a\nfn=f\n0x10 0 3 2\n0x12 0 8\ntotals: 11 2\n";
        let profile = read(&format!("{HEAD}{part}{part}")).unwrap();
        assert_eq!(counts(&profile.objects["/a"].counts), [(0x10, 4)]);
        assert_eq!(profile.total, 4);
    }

    #[test]
    fn other_files_are_refused() {
        for (text, what) in [
            ("PERFILE2", "line 1: no callgrind file begins like that"),
            ("", "it ends without `totals:`"),
            ("# callgrind format\nevents: Dr\n", "line 2: `Ir`, instructions executed, is not among the events"),
            ("# callgrind format\n0x10 1 1\n", "line 2: costs come before `positions:` and `events:`"),
            ("# callgrind format\npositions: line\nevents: Ir\n12 3\n", "--dump-instr=yes"),
            ("# callgrind format\npositions: instr\nevents: Ir\n-1 3\n", "line 4: there is no address in it"),
            ("# callgrind format\npositions: instr\nevents: Ir\n0x1 3\n", "line 4: costs come before `ob=`"),
            ("# callgrind format\npositions: instr\nevents: Ir\nob=(4)\n", "line 4: nothing has number 4 yet"),
            ("# callgrind format\nwhat is this\n", "line 2: `what is this` is nothing that callgrind writes"),
            (
                "# callgrind format\npositions: instr\nevents: Ir\nob=/a\n0x1 3\ntotals: 9\n",
                "its lines add up to 3 instructions, its end says 9",
            ),
        ] {
            let said = read(text).unwrap_err();
            assert!(said.contains(what), "{said}");
        }
    }
}
