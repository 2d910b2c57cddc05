//! The source of all code of a file that was hit.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::disjoint::disjoint;
use super::missing::Missing;
use super::sections::Sections;
use super::split::{PackageBytes, SplitFiles};
use super::unit::{UnitSource, read_unit};
use super::units::{DebugFile, line_offset};
use super::{FileId, Position, Scope, ScopeId, SourceFunction, Span};
use crate::address::Svma;
use crate::binaries::Binary;
use crate::code::regions;

/// The source of the functions of a file that were hit.
#[derive(Debug, Default)]
pub struct SourceIndex {
    files: Vec<String>,
    functions: Vec<SourceFunction>,
    scopes: Vec<Scope>,
    spans: Vec<Span>,
    notes: Vec<String>,
}

/// Address ranges, sorted by start, with those that touch or overlap as one: what [`SourceIndex::read`] is asked for.
pub fn joined(ranges: impl IntoIterator<Item = Range<Svma>>) -> Vec<Range<Svma>> {
    let mut joined: Vec<Range<Svma>> = Vec::new();
    for range in ranges {
        match joined.last_mut().filter(|last| range.start <= last.end) {
            Some(last) => last.end = last.end.max(range.end),
            None => joined.push(range),
        }
    }
    joined
}

impl SourceIndex {
    /// Reads the debug information of a file: that of its own, of its separate debug file, of `.dwo` and `.dwp` files, and what
    /// `dwz` moved to another file.
    /// `hits` are the addresses that were executed, sorted and disjoint; only units and functions with some of them are read.
    pub fn read(binary: &Binary, hits: &[Range<Svma>], threads: usize) -> Self {
        let Some(image) = binary.images().find(|image| image.has_debug_information()) else {
            return Self::default();
        };
        let mut notes = Vec::new();
        let sections = match Sections::of(image) {
            Ok(sections) => sections,
            Err(why) => return Self { notes: vec![why.to_string()], ..Self::default() },
        };
        let alternate = binary.alternate(image).map(|found| match found {
            Ok(file) => Sections::of(&file.image).map_err(Missing::from),
            Err(name) => Err(Missing::Alternate(name)),
        });
        let alternate = alternate.transpose().unwrap_or_else(|why| {
            notes.push(why.to_string());
            None
        });
        let package = PackageBytes::beside(&binary.place).unwrap_or_else(|why| {
            notes.push(why.to_string());
            PackageBytes::none()
        });
        let folder = binary.place.parent().unwrap_or(Path::new("")).to_owned();
        let package = package.package().unwrap_or_else(|why| {
            notes.push(why.to_string());
            None
        });
        let split = SplitFiles { folder, symfs: binary.symfs.clone(), package };
        let mut file = DebugFile::with_alternate(&sections, alternate.as_ref());
        let begins_at_0 = regions(&binary.image).first().is_some_and(|region| region.start == Svma(0));
        let hit = |range: &Range<u64>| {
            // Where there is no code, it is what linkers left out.
            if range.start == 0 && !begins_at_0 {
                return false;
            }
            let next = hits.partition_point(|hit| hit.end.0 <= range.start);
            hits.get(next).is_some_and(|hit| hit.start.0 < range.end)
        };
        let code = file.code_of_units();
        let is_hit = |(index, ranges): (usize, &Vec<Range<u64>>)| ranges.iter().any(hit).then_some(index);
        let wanted: Vec<usize> = code.iter().enumerate().filter_map(is_hit).collect();
        let (wanted, line_starts) = one_unit_per_line_program(&mut file, wanted);
        let wanted = split.read_seldom(&mut file, wanted);
        let flow_sensitive = image.has_flow_sensitive_discriminators();
        let sources =
            in_parallel(threads, &wanted, |index| read_unit(&file, index, &split, &line_starts, flow_sensitive, &hit));
        notes.append(&mut file.notes);
        let mut index = Self { notes, ..Self::default() };
        index.merge(sources);
        index
    }

    /// Addresses by where they come from: sorted, disjoint, without the functions that were not hit.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// The span that holds an address.
    pub fn at(&self, address: Svma) -> Option<&Span> {
        let after = self.spans.partition_point(|span| span.start <= address);
        self.spans.get(after.checked_sub(1)?).filter(|span| address < span.end)
    }

    /// All scopes; callers come before what was inlined into them.
    pub fn scopes(&self) -> &[Scope] {
        &self.scopes
    }

    /// The scope of an id of this index.
    #[expect(clippy::indexing_slicing, reason = "only this index makes its ids")]
    pub fn scope(&self, id: ScopeId) -> &Scope {
        &self.scopes[id.0 as usize]
    }

    /// The function of a scope.
    #[expect(clippy::indexing_slicing, reason = "only this index makes its scopes")]
    pub fn function(&self, scope: &Scope) -> &SourceFunction {
        &self.functions[scope.function as usize]
    }

    /// The path of a file, with the folder of the compilation in front where that makes it absolute.
    pub fn file(&self, id: FileId) -> Option<&str> {
        let index = (id.0 as usize).checked_sub(1)?;
        self.files.get(index).map(String::as_str)
    }

    /// The functions that a span is in, the innermost first, and where in each: in all but the first, the call of the one before.
    pub fn frames(&self, span: &Span) -> impl Iterator<Item = (&SourceFunction, Position)> {
        std::iter::successors(Some((span.scope, span.position)), |&(scope, _)| self.scope(scope).caller)
            .map(|(scope, position)| (self.function(self.scope(scope)), position))
    }

    /// What was damaged or missing, each once, in words.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    fn merge(&mut self, sources: Vec<UnitSource>) {
        let mut notes: BTreeMap<String, usize> = BTreeMap::new();
        let mut known: HashMap<String, FileId> = HashMap::new();
        for source in sources {
            // Units share files.
            let mut files = vec![FileId::default()];
            files.extend(source.files.into_iter().map(|path| {
                *known.entry(path).or_insert_with_key(|path| {
                    self.files.push(path.clone());
                    FileId(self.files.len() as u32)
                })
            }));
            let in_index = |position: Position| {
                // The first file is the one that is not known.
                let file = files.get(position.file.0 as usize).copied().unwrap_or_default();
                Position { file, ..position }
            };
            let (functions, scopes) = (self.functions.len() as u32, self.scopes.len() as u32);
            self.functions.extend(source.functions);
            self.scopes.extend(source.scopes.into_iter().map(|scope| Scope {
                caller: scope.caller.map(|(caller, call)| (ScopeId(caller.0 + scopes), in_index(call))),
                function: scope.function + functions,
                ..scope
            }));
            self.spans.extend(source.spans.into_iter().map(|span| Span {
                scope: ScopeId(span.scope.0 + scopes),
                position: in_index(span.position),
                ..span
            }));
            for note in source.notes {
                *notes.entry(note).or_default() += 1;
            }
        }
        let counted = |(note, times): (String, usize)| if times > 1 { format!("{note} ({times} times)") } else { note };
        self.notes.extend(notes.into_iter().map(counted));
        self.spans = disjoint(std::mem::take(&mut self.spans));
    }
}

/// The units that are the first to name their line program, and where the line programs start. Units with code have one of their own;
/// a file in which many share a long one is not honest.
fn one_unit_per_line_program(file: &mut DebugFile<'_>, units: Vec<usize>) -> (Vec<usize>, BTreeSet<usize>) {
    let mut starts = BTreeSet::new();
    let wanted: Vec<usize> = units
        .iter()
        .copied()
        .filter(|&index| {
            let offset = file.open(index).ok().and_then(|opened| line_offset(&opened.root));
            offset.is_none_or(|offset| starts.insert(offset))
        })
        .collect();
    if wanted.len() < units.len() {
        file.notes.push(format!(
            "{} units share the line program of another one and are not read",
            units.len() - wanted.len()
        ));
    }
    (wanted, starts)
}

/// Results in the order of the work.
fn in_parallel<T: Send>(threads: usize, work: &[usize], run: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(work.len()));
    let run_until_done = || {
        loop {
            let position = next.fetch_add(1, Ordering::Relaxed);
            let Some(&item) = work.get(position) else { break };
            let result = run(item);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((position, result));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(work.len()) {
            scope.spawn(run_until_done);
        }
        run_until_done();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(position, _)| *position);
    done.into_iter().map(|(_, result)| result).collect()
}
