//! Two recordings, compared.

use analyzer::BinarySearch;
use analyzer::flow::Moved;
use analyzer::mix::{Query, mix};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use reports::diff::{Changes, Compared, Names, Noise, Pivot, Work, said_of_mix};
use serde_json::Value;

use crate::columns::Columns;
use crate::pivot::{filters, keys};
use crate::recording::{Recording, with_files};
use crate::table::{Table, raised as of_arrow};
use crate::values::python_of;
use crate::words::{Keywords, Meaningless, Paths, Texts, raised, warn};

/// How two recordings differ, as `hbbp diff --format json` says it.
#[pyclass(frozen, module = "hbbp")]
pub struct Diff {
    compared: Compared,
    files: [String; 2],
    /// By keys, if there are any.
    pivot: Option<Pivot>,
    /// What there is to say of both sides; it was said as warnings.
    #[pyo3(get)]
    notes: Vec<String>,
}

/// Compares two recordings, merged files or exact counts.
///
/// Args:
///     before, after: what `hbbp.open` opened.
///     rows: keys by which their mixes are compared, too: the table `rows`.
///     filter: keep only what passes, in that table.
///     taxonomies: files with taxonomies of your own, whose names are keys.
#[pyfunction]
#[pyo3(signature = (before, after, *, rows=None, filter=None, taxonomies=None))]
pub fn diff(
    py: Python<'_>,
    before: &Recording,
    after: &Recording,
    rows: Option<Texts>,
    filter: Option<Texts>,
    taxonomies: Option<Paths>,
) -> PyResult<Diff> {
    let taxonomies = with_files(&Paths::all(taxonomies))?;
    let query = Query {
        rows: keys("rows", &rows.map(Texts::names).unwrap_or_default(), &taxonomies)?,
        filters: filters(&filter.map(Texts::all).unwrap_or_default(), &taxonomies)?,
        threads: before.threads(),
        ..Query::default()
    };
    if query.rows.is_empty() && !query.filters.is_empty() {
        return Err(Meaningless::argument("filter", "it is for the table `rows`, and no rows are asked for").into());
    }
    if let Some(side) = [before, after].into_iter().find(|side| side.has_nothing_to_choose()) {
        return Err(Meaningless(reports::diff::nothing_to_choose("model", side.file())).into());
    }
    if before.search().symfs != after.search().symfs {
        let why = "the two sides were opened with different `symfs`: a comparison reads binaries under one folder";
        return Err(Meaningless(why.to_owned()).into());
    }
    let diff = py.detach(|| Diff::of([before, after], &query)).map_err(|error| raised(&error))?;
    warn(py, &diff.notes)?;
    Ok(diff)
}

impl Diff {
    fn of(sides: [&Recording; 2], query: &Query) -> anyhow::Result<Self> {
        let [before, after] = sides.map(|side| side.side(query));
        let analyses = [&*before?, &*after?];
        let [of_before, of_after] = sides.map(Recording::search);
        let search = BinarySearch {
            overrides: [&of_before.overrides[..], &of_after.overrides].concat(),
            packed: [&of_before.packed[..], &of_after.packed].concat(),
            packed_only: of_before.packed_only && of_after.packed_only,
            kernel_copies: Default::default(),
            ..of_before.clone()
        };
        let compared = Compared::of(analyses, (&search, query.threads));
        let files = sides.map(|side| side.file().display().to_string());
        let mut notes = Vec::new();
        for (at, file) in files.iter().enumerate() {
            let weaker = sides[at].notes(analyses[at]);
            notes.extend(weaker.iter().chain(&compared.left_out[at]).map(|note| format!("{file}: {note}")));
        }
        let changes = compared.changes(files.clone());
        notes.extend(changes.comparison.notes.iter().chain(&changes.comparison.lacks).cloned());
        let pivot = if query.rows.is_empty() {
            None
        } else {
            let mixes = [mix(analyses[0], query)?, mix(analyses[1], query)?];
            for (file, mix) in files.iter().zip(&mixes) {
                notes.extend(said_of_mix(mix, query, &Keywords).map(|note| format!("{file}: {note}")));
            }
            if mixes.iter().all(|mix| mix.cells.is_empty()) {
                anyhow::bail!("there is nothing to show: no instruction of either side passes the filters");
            }
            let names = Names::of(changes.comparison);
            Some(Pivot::of(query, mixes.each_ref(), changes.sides, &names))
        };
        for (file, sum) in files.iter().zip(changes.comparison.instructions) {
            anyhow::ensure!(sum > 0.0, "{file}: nothing was seen running");
        }
        Ok(Diff { compared, files, pivot, notes })
    }

    fn changes(&self) -> Changes<'_> {
        self.compared.changes(self.files.clone())
    }
}

#[pymethods]
impl Diff {
    /// Names of the tables: functions, blocks, lines, kinds, and rows where keys were asked for.
    #[getter]
    fn tables(&self) -> Vec<&'static str> {
        let rows = self.pivot.is_some().then_some("rows");
        ["functions", "blocks", "lines", "kinds"].into_iter().chain(rows).collect()
    }

    /// How much both have in common, 0 to 1: `blocks`, `functions`, `lines`; `None` where there is nothing to compare.
    #[getter]
    fn overlap<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        python_of(py, &self.changes().overlap())
    }

    /// Whether the same work took fewer instructions: `text`, `change` (-0.1: a tenth fewer), `change_error`, `executed`.
    #[getter]
    fn work<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let changes = self.changes();
        python_of(py, &Work::of(&changes).described(&changes))
    }

    /// A table of what changed, the largest change first: names, the shares `before` and `after` (0 to 1), `change`, `change_error` (half the width of
    /// its 95 % interval; null: not known), `within_error`, and `finding`: more than chance does in any of so many rows.
    ///
    /// Raises:
    ///     KeyError: there is no such table.
    fn table(&self, name: &str) -> PyResult<Table> {
        let changes = self.changes();
        let of = changes.comparison;
        let mut columns = Columns::default();
        match (name, &self.pivot) {
            ("functions", _) => {
                let rows = || of.functions.iter().map(|row| &row.what);
                columns.texts("module", rows().map(|what| Some(&what.module)));
                columns.texts("function", rows().map(|what| what.function.as_deref()));
                add(&mut columns, &of.functions, |row| changes.of_function(row));
            }
            ("blocks", _) => {
                let rows = || of.blocks.iter().map(|row| &row.what);
                columns.texts("module", rows().map(|what| Some(&what.function.module)));
                columns.texts("function", rows().map(|what| what.function.function.as_deref()));
                columns.counts("start", rows().map(|what| Some(what.start.0)));
                columns.counts("end", rows().map(|what| Some(what.end.0)));
                add(&mut columns, &of.blocks, |row| changes.of_block(row));
            }
            ("lines", _) => {
                let rows = || of.lines.iter().map(|row| &row.what);
                columns.texts("function", rows().map(|what| Some(&what.function)));
                columns.integers("line", rows().map(|what| Some(what.line)));
                add(&mut columns, &of.lines, |row| changes.of_line(row));
            }
            ("kinds", _) => {
                columns.texts("isa", of.mix.iter().map(|row| Some(&row.what.isa)));
                columns.texts("packing", of.mix.iter().map(|row| Some(&row.what.packing)));
                add(&mut columns, &of.mix, |row| changes.of_kind(row));
            }
            ("rows", Some(pivot)) => {
                for (at, key) in pivot.keys.iter().enumerate() {
                    columns.texts(key, pivot.rows.iter().map(|row| row.moved.what.get(at)));
                }
                let moved: Vec<&Moved<Vec<String>>> = pivot.rows.iter().map(|row| &row.moved).collect();
                let noise: Vec<Noise> = pivot.rows.iter().map(|row| row.noise).collect();
                add_shares(&mut columns, &moved, &noise);
                columns.numbers("count_before", pivot.rows.iter().map(|row| Some(row.counts[0])));
                columns.numbers("count_after", pivot.rows.iter().map(|row| Some(row.counts[1])));
            }
            _ => {
                let tables = self.tables().join(", ");
                return Err(PyKeyError::new_err(format!("there is no table {name:?}; there are {tables}")));
            }
        }
        columns.batch().map(Table::new).map_err(of_arrow)
    }

    /// Both sides: `file`, `unit`, `instructions`, and which part of them is in files that both have, unread, with lines.
    #[getter]
    fn sides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let changes = self.changes();
        python_of(py, &Value::Array(vec![changes.side(0), changes.side(1)]))
    }

    fn __repr__(&self) -> String {
        format!("<hbbp.Diff of {} and {}>", self.files[0], self.files[1])
    }
}

fn add<N>(columns: &mut Columns, rows: &[Moved<N>], noise: impl Fn(&Moved<N>) -> Noise) {
    let noise: Vec<Noise> = rows.iter().map(noise).collect();
    add_shares(columns, &rows.iter().collect::<Vec<_>>(), &noise);
}

/// The shares of both sides, their change, and how far it is from none.
fn add_shares<N>(columns: &mut Columns, rows: &[&Moved<N>], noise: &[Noise]) {
    columns.numbers("before", rows.iter().map(|row| Some(row.shares[0])));
    columns.numbers("after", rows.iter().map(|row| Some(row.shares[1])));
    columns.numbers("change", rows.iter().map(|row| Some(row.change())));
    columns.numbers("change_error", noise.iter().map(|noise| noise.error));
    columns.flags("within_error", noise.iter().map(|noise| noise.is_within));
    columns.flags("finding", noise.iter().map(|noise| noise.is_finding));
}
