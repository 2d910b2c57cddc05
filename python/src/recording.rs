//! A file that was opened, and what it is asked.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use analyzer::counting::{Detail, GroupBy};
use analyzer::flow::Counted;
use analyzer::mix::{Dimension, Query, Taxonomies, mix};
use analyzer::paths::PathQuery;
use analyzer::recording::{Subset, notes};
use analyzer::{Analysis, BinaryOverride, BinarySearch, Microarchitecture, Options, Origin, analyze_paths};
use archive::Archives;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use reports::lacks::{malformed, require_samples};
use reports::left_out::left_out;
use reports::models::Chosen;
use reports::{Head, Reader, Reads, taxonomies};

use crate::blocks;
use crate::pivot::{self, Words};
use crate::samples::{Rows, Stream};
use crate::table::Table;
use crate::values::python_of;
use crate::words::{HbbpError, Meaningless, Paths, Texts, raised, raised_of, warn};

const READER: Reader = Reader { name: "hbbp.open", reads: Reads::Flows, records: false };

/// More are not started.
const MOST_THREADS: usize = 256;

/// A recording, an archive of one, profiles of OpenTelemetry, a file of `hbbp merge`, or exact counts of `hbbp truth`.
///
/// It is analysed when it is asked the first time, and again where a question tells apart what was added up.
#[pyclass(frozen, module = "hbbp")]
pub struct Recording {
    file: PathBuf,
    content: Content,
    /// Where binaries are found.
    search: BinarySearch,
    chosen: Chosen,
    model: Option<String>,
    core: Option<Microarchitecture>,
    threads: usize,
    analyses: Mutex<Vec<(Wanted, Arc<Analysis>)>>,
    /// What was unpacked stays as long as this.
    _archives: Archives,
}

enum Content {
    Recording(Arc<perfdata::Recording>),
    Counted(Box<Counted>),
}

/// How much an analysis is to tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Wanted {
    by: GroupBy,
    detail: Detail,
    cycles: bool,
}

impl Wanted {
    fn of(query: &Query) -> Self {
        let detail = if query.needs_branches() || query.cycles { Detail::Branches } else { Detail::Blocks };
        Wanted { by: reports::mix::group_by(query), detail, cycles: query.cycles }
    }
}

/// Opens a file.
///
/// Args:
///     path: a recording of `hbbp record` or `perf record`, an archive of one, profiles of OpenTelemetry, a file of `hbbp merge`, or exact
///         counts of `hbbp truth`.
///     binaries: files to read instead of recorded ones, each as `FILE`, a path, or `RECORDED=FILE`.
///     symfs: folder under which binaries are looked for instead of under `/`.
///     model: how to choose between the sources: the file of a model, `published`, `hardware`, `software` or `simulated`.
///     core: the core that code is taken to cost as on: `zen-5`, `golden-cove`, ...
///     threads: threads to work with; results are the same for any number. Default: one per CPU.
///
/// Raises:
///     FileNotFoundError, PermissionError, HbbpError: it cannot be opened, or is none of these.
///     ValueError: an argument means nothing.
#[pyfunction]
#[pyo3(signature = (path, *, binaries=None, symfs=None, model=None, core=None, threads=None))]
pub fn open(
    py: Python<'_>,
    path: PathBuf,
    binaries: Option<Paths>,
    symfs: Option<PathBuf>,
    model: Option<PathBuf>,
    core: Option<&str>,
    threads: Option<usize>,
) -> PyResult<Recording> {
    let no_core = |word: &str, why: String| Meaningless::argument("core", format!("there is no {word:?}; {why}"));
    let core = core.map(|word| reports::cores::named(word).map_err(|why| no_core(word, why))).transpose()?;
    let threads = match threads {
        Some(threads @ (0 | 65_536..)) => {
            let why = format!("it is {threads}, expected at least 1 and at most 65535");
            return Err(Meaningless::argument("threads", why).into());
        }
        // Results are the same for any number, and each needs memory.
        Some(threads) => threads.min(MOST_THREADS),
        None => std::thread::available_parallelism().map_or(1, usize::from),
    };
    let overrides =
        Paths::all(binaries).iter().map(|path| BinaryOverride::of_option(&path.to_string_lossy())).collect();
    let search = BinarySearch { symfs, overrides, ..BinarySearch::default() };
    let rule = model.as_ref().map(|model| model.to_string_lossy().into_owned());
    let opened = py.detach(|| Recording::opened(path.clone(), search, rule, (core, threads)));
    let named = || model.as_deref().into_iter().chain([&*path]);
    let (recording, said) = opened.map_err(|error| raised_of(&error, named()))?;
    warn(py, &said)?;
    Ok(recording)
}

impl Recording {
    fn opened(
        file: PathBuf,
        search: BinarySearch,
        model: Option<String>,
        (core, threads): (Option<Microarchitecture>, usize),
    ) -> anyhow::Result<(Self, Vec<String>)> {
        let chosen = reports::models::rules(model.as_deref())?;
        let archives = Archives::default();
        let (content, search, said) = if reports::is_recording(&file) {
            let no_hint = |_: &Reader, _: &Path| String::new();
            let (recording, mut said) = reports::open(&file, &READER, (&archives, search.clone()), no_hint)?;
            said.extend(notes(&recording));
            let search = archives.search_for(&recording, search);
            (Content::Recording(Arc::new(recording)), search, said)
        } else {
            let counted = reports::read_counts(&file, &READER, &search)?;
            let given =
                [("model", model.is_some()), ("core", core.is_some())].into_iter().filter(|(_, is_given)| *is_given);
            let said = given.map(|(option, _)| reports::not_for_counts(option)).collect();
            (Content::Counted(Box::new(counted)), search, said)
        };
        let (analyses, _archives) = (Mutex::default(), archives);
        Ok((Recording { file, content, search, chosen, model, core, threads, analyses, _archives }, said))
    }

    /// The analysis that tells so much, made once.
    fn analysis(&self, wanted: Wanted) -> anyhow::Result<Arc<Analysis>> {
        // Who comes meanwhile waits, and need not make it again.
        let mut analyses = self.analyses.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, analysis)) = analyses.iter().find(|(of, _)| *of == wanted) {
            return Ok(Arc::clone(analysis));
        }
        let analysis = Arc::new(self.analyse(wanted)?);
        analyses.push((wanted, Arc::clone(&analysis)));
        Ok(analysis)
    }

    fn analyse(&self, Wanted { by, detail, cycles }: Wanted) -> anyhow::Result<Analysis> {
        let recording = match &self.content {
            Content::Recording(recording) => recording,
            Content::Counted(counted) => {
                let Counted { flow, origin, mut notes } = (**counted).clone();
                notes.extend(left_out(&flow));
                return Ok(Analysis::of_flow(flow.into(), origin, &self.search, by, notes));
            }
        };
        let options = Options {
            search: self.search.clone(),
            subset: Subset::Whole,
            group_by: by,
            detail,
            core: self.core,
            threads: self.threads,
            rules: &self.chosen.rules,
        };
        let paths = PathQuery { cycles, ..PathQuery::default() };
        let mut analysis = analyze_paths(recording, &options, &paths, &|_| ())?;
        let leave_out = |others| Meaningless(format!("{others}: leave out model"));
        self.chosen.check_analysis(self.model.as_deref(), &mut analysis).map_err(leave_out)?;
        Ok(analysis)
    }

    fn pivot(&self, py: Python<'_>, words: Words, files: &[PathBuf]) -> PyResult<Table> {
        let taxonomies = with_files(files)?;
        let question = words.understood(&taxonomies, self.threads)?;
        let table = py.detach(|| {
            let analysis = self.analysis(Wanted::of(&question.query))?;
            Ok(question.table(&analysis, &mix(&analysis, &question.query)?)?.with_note(malformed(&analysis)))
        });
        said(py, table)
    }

    /// The head of reports, as JSON: what counts are made from, and how good they are.
    fn head_of(&self) -> anyhow::Result<serde_json::Value> {
        let query = Query { rows: vec![Dimension::Mnemonic.into()], threads: self.threads, ..Query::default() };
        let analysis = self.analysis(Wanted::of(&query))?;
        let mut head = Head::of(&analysis);
        head.precision = reports::mix::precision(&analysis, &mix(&analysis, &query)?);
        Ok(serde_json::to_value(head)?)
    }

    /// Its analysis as a side of a comparison that asks for a mix, too. Blocks are counted by a choice of source where one was asked for.
    ///
    /// # Errors
    /// It cannot be analysed, or has no samples.
    pub fn side(&self, query: &Query) -> anyhow::Result<Arc<Analysis>> {
        let wanted = Wanted { detail: Detail::Branches, ..Wanted::of(query) };
        let analysis = match self.model {
            None => self.analysis(wanted)?,
            Some(_) => {
                let mut analysis = self.analyse(wanted)?;
                analysis.count_flow_by_choice();
                Arc::new(analysis)
            }
        };
        require_samples(&analysis)?;
        Ok(analysis)
    }

    /// What is weaker in it than it could be, in sentences.
    pub fn notes(&self, analysis: &Analysis) -> Vec<String> {
        match &self.content {
            Content::Recording(_) => Head::of(analysis).degraded.into_iter().chain(malformed(analysis)).collect(),
            Content::Counted(counted) => counted.notes.clone(),
        }
    }

    /// Whether it is counts, between whose sources a model was asked to choose.
    pub fn has_nothing_to_choose(&self) -> bool {
        self.model.is_some() && matches!(self.content, Content::Counted(_))
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Where binaries are found.
    pub fn search(&self) -> &BinarySearch {
        &self.search
    }

    /// Threads to work with.
    pub fn threads(&self) -> usize {
        self.threads
    }

    fn recording(&self) -> PyResult<Arc<perfdata::Recording>> {
        match &self.content {
            Content::Recording(recording) => Ok(Arc::clone(recording)),
            Content::Counted(_) => {
                let what = format!("{} has counts and no samples: name a recording", self.file.display());
                Err(HbbpError::new_err(what))
            }
        }
    }
}

/// The taxonomies that come with the program, and those of files.
pub fn with_files(files: &[PathBuf]) -> PyResult<Taxonomies> {
    taxonomies::with_files(files).map_err(|error| raised_of(&error, files.iter().map(PathBuf::as_path)))
}

/// A table, whose notes are said as warnings.
fn said(py: Python<'_>, table: anyhow::Result<Table>) -> PyResult<Table> {
    let table = table.map_err(|error| raised(&error))?;
    warn(py, table.notes())?;
    Ok(table)
}

#[pymethods]
impl Recording {
    /// The instruction mix: executed instructions by any keys.
    ///
    /// Args:
    ///     rows: keys of the rows, as a list or with commas between them: `["function", "mnemonic"]`, `"isa,packing"`. `hbbp mix --help`
    ///         lists all.
    ///     columns: more keys; the table has a row for each pair of their values.
    ///     filter: keep only what passes: `"isa=avx,avx2"`, `["function~^qsort", "vector-width>=256"]`.
    ///     per: keys that make groups, whose shares are in `share_of_group`.
    ///     values: more numbers of each row: `per-call`, `taken`, `flops`, `bytes`, `intensity`, `cycles`, `ipc`, `samples`, ...
    ///     sort: the number by which rows are sorted, or `name`.
    ///     taxonomies: files with taxonomies of your own, whose names are keys.
    ///
    /// Returns:
    ///     A table with a column for each key, and `count` (executed instructions, in the unit of the recording), `share` (0 to 1),
    ///     `count_error` and `share_error` (half the width of the 95 % interval; null: not known), `rests_on_little`, and what `values` ask for.
    #[pyo3(signature = (rows=None, columns=None, *, filter=None, per=None, values=None, sort="executions", taxonomies=None))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    fn mix(
        &self,
        py: Python<'_>,
        rows: Option<Texts>,
        columns: Option<Texts>,
        filter: Option<Texts>,
        per: Option<Texts>,
        values: Option<Texts>,
        sort: &str,
        taxonomies: Option<Paths>,
    ) -> PyResult<Table> {
        let names = |of: Option<Texts>| of.map(Texts::names).unwrap_or_default();
        let words = Words {
            rows: rows.map_or_else(|| vec!["mnemonic".to_owned()], Texts::names),
            columns: names(columns),
            filters: filter.map(Texts::all).unwrap_or_default(),
            per: names(per),
            values: names(values),
            sort: sort.to_owned(),
        };
        self.pivot(py, words, &Paths::all(taxonomies))
    }

    /// The functions that ran, those first that executed most: a mix by function and module, with `per_call` (executed instructions for each
    /// call, null: not known) and `samples` (samples and streams that were seen).
    #[pyo3(signature = (*, filter=None, taxonomies=None))]
    fn functions(&self, py: Python<'_>, filter: Option<Texts>, taxonomies: Option<Paths>) -> PyResult<Table> {
        let origin = match &self.content {
            Content::Recording(_) => Origin::Recording,
            Content::Counted(counted) => counted.origin,
        };
        let words = pivot::of_functions(filter.map(Texts::all).unwrap_or_default(), origin);
        self.pivot(py, words, &Paths::all(taxonomies))
    }

    /// The blocks that ran, by module and address: how often each did (`count`), and by which source (`chosen`).
    ///
    /// Addresses are those that the module's file states. `instructions` is the length of the block.
    #[pyo3(signature = (*, filter=None, taxonomies=None))]
    fn blocks(&self, py: Python<'_>, filter: Option<Texts>, taxonomies: Option<Paths>) -> PyResult<Table> {
        let taxonomies = with_files(&Paths::all(taxonomies))?;
        let filters = pivot::filters(&filter.map(Texts::all).unwrap_or_default(), &taxonomies)?;
        if let Some(key) = reports::key_of_task(&filters) {
            let why = format!("blocks add up all processes, threads and phases; mix tells them apart by {key}");
            return Err(Meaningless::argument("filter", why).into());
        }
        let query = Query { filters, ..Query::default() };
        let wanted = Wanted { by: GroupBy::default(), ..Wanted::of(&query) };
        let table = py.detach(|| {
            let analysis = self.analysis(wanted)?;
            Ok(blocks::table(&analysis, query.filters, self.threads)?.with_note(malformed(&analysis)))
        });
        said(py, table)
    }

    /// The samples as they were recorded: `event`, `time` (ns), `pid`, `tid`, `cpu`, `ip`, `period` (events it stands for), `branches`
    /// (the length of its stack). What was not recorded is null.
    fn samples(&self) -> PyResult<Stream> {
        Ok(Stream::new(self.recording()?, Rows::Samples))
    }

    /// The branches of all stacks: `sample` (number of its row among the samples), `position` (0 is the newest), `from`, `to`, `mispredicted`
    /// and `cycles` (null: not recorded).
    fn branches(&self) -> PyResult<Stream> {
        Ok(Stream::new(self.recording()?, Rows::Branches))
    }

    /// What counts are made from and how good they are, as in `hbbp mix --format json` under `head`.
    #[getter]
    fn head<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let head = py.detach(|| self.head_of()).map_err(|error| raised(&error))?;
        python_of(py, &head)
    }

    /// `ebs`, `lbr` or `hybrid`; `exact` or `flow` where it is no recording, `none` where it has no samples.
    #[getter]
    fn source(&self, py: Python<'_>) -> PyResult<&'static str> {
        let analysis = py.detach(|| self.analysis(Wanted::default())).map_err(|error| raised(&error))?;
        Ok(analysis.source())
    }

    /// `executions`, or `relative` where counts are only to be compared with each other.
    #[getter]
    fn unit(&self, py: Python<'_>) -> PyResult<&'static str> {
        let analysis = py.detach(|| self.analysis(Wanted::default())).map_err(|error| raised(&error))?;
        Ok(Head::of(&analysis).unit)
    }

    /// How right the largest rows of a mix by mnemonic are, in a sentence; `None` where it is not known.
    #[getter]
    fn quality(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let head = py.detach(|| self.head_of()).map_err(|error| raised(&error))?;
        Ok(head.pointer("/precision/text").and_then(|text| text.as_str()).map(str::to_owned))
    }

    /// What is weaker than it could be, in sentences.
    #[getter]
    fn weaker(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let analysis = py.detach(|| self.analysis(Wanted::default())).map_err(|error| raised(&error))?;
        Ok(Head::of(&analysis).degraded)
    }

    /// What the recording says of the machine and of how it was made; what it does not say is `None`. Of counts nothing is known: `None`.
    #[getter]
    fn machine<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Content::Recording(recording) = &self.content else { return Ok(None) };
        let facts = PyDict::new(py);
        let features = recording.features();
        facts.set_item("host", &features.hostname)?;
        facts.set_item("kernel", &features.os_release)?;
        facts.set_item("arch", &features.arch)?;
        facts.set_item("cpu", &features.cpu_desc)?;
        facts.set_item("cpuid", &features.cpuid)?;
        facts.set_item("cpus_online", features.nr_cpus.map(|(_, online)| online))?;
        facts.set_item("memory_kib", features.total_mem)?;
        facts.set_item("recorder", &features.version)?;
        facts.set_item("command", &features.cmdline)?;
        let events = recording.events().iter().map(|event| event.name.as_str());
        facts.set_item("events", PyList::new(py, events.collect::<Vec<_>>())?)?;
        Ok(Some(facts))
    }

    /// The file.
    #[getter]
    fn path(&self) -> PathBuf {
        self.file.clone()
    }

    fn __repr__(&self) -> String {
        format!("hbbp.open({:?})", self.file.display().to_string())
    }
}
