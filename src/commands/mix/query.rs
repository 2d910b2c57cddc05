//! What the options ask for, and the other way round.

use std::ffi::OsString;
use std::fmt::Display;
use std::path::PathBuf;

use analyzer::counting::{GroupBy, TaskGroups};
use analyzer::mix::{Dimension, Key, Query, Taxonomies};
use clap::ValueEnum;

use super::numbers::Number;
use super::order::Order;
use super::{Args, unmatched};
use crate::commands::filtering::FilterArgs;
use crate::commands::nearest::nearest;
use crate::usage::wrong_usage;

/// What a pivot is of.
#[derive(clap::Args)]
pub struct PivotArgs {
    /// Keys of the rows: see the list below
    #[arg(long, value_name = "KEYS", value_delimiter = ',', default_value = "mnemonic")]
    pub rows: Vec<String>,

    /// Keys of the columns: the same as for rows
    #[arg(long, value_name = "KEYS", value_delimiter = ',')]
    pub columns: Vec<String>,

    #[command(flatten)]
    pub kept: FilterArgs,
}

/// What is asked for. The process ends with what is wrong, if something is; `A` are all options of the command of that name.
pub fn query<A: clap::Args>(name: &'static str, args: &PivotArgs, taxonomies: &Taxonomies, threads: usize) -> Query {
    fn wrong<A: clap::Args>(name: &'static str, option: &str, why: impl Display) -> ! {
        wrong_usage::<A>(name, format!("{option}: {why}"))
    }
    let keys = |option: &str, names: &[String]| -> Vec<Key> {
        let key = |word: &String| key(word, taxonomies).unwrap_or_else(|why| wrong::<A>(name, option, why));
        names.iter().map(key).collect()
    };
    Query {
        rows: keys("--rows", &args.rows),
        columns: keys("--columns", &args.columns),
        filters: args.kept.filters::<A>(name, taxonomies),
        threads,
        ..Query::default()
    }
}

/// A query with the groups that are asked for, and what its numbers and its order need. The process ends with what is wrong, if something is.
pub fn shaped(args: &Args, query: Query, taxonomies: &Taxonomies) -> Query {
    fn wrong(option: &str, why: impl Display) -> ! {
        wrong_usage::<Args>("hbbp mix", format!("{option}: {why}"))
    }
    let of_group = |name: &String| key(name, taxonomies).unwrap_or_else(|why| wrong("--per", why));
    let mut rows: Vec<Key> = args.per.iter().map(of_group).collect();
    rows.extend(query.rows.iter().filter(|key| !rows.contains(key)).cloned().collect::<Vec<_>>());
    let asks = |wanted: fn(Number) -> bool| args.asks(wanted);
    let (calls, taken, operations) =
        (asks(Number::is_per_call), asks(Number::is_of_branches), asks(Number::is_of_operations));
    let query = Query { rows, calls, taken, operations, cycles: asks(Number::is_of_cycles), ..query };
    if query.rows.len() == args.per.len() {
        wrong("--per", "--rows names nothing else, so there is nothing in the groups");
    }
    if query.calls && !query.rows.contains(&Key::from(Dimension::Function)) {
        let numbers = [
            ("flops-per-call", asks(|number| number == Number::FlopsPerCall)),
            ("bytes-per-call", asks(|number| number == Number::BytesPerCall)),
        ];
        let asked = numbers.iter().find(|(_, is_asked)| *is_asked).map_or("per-call", |(name, _)| name);
        wrong(asked, "it needs `function` among the keys of --rows or --per");
    }
    if (query.calls || query.taken) && query.keys().filter_map(Key::dimension).any(Dimension::is_of_task) {
        let what = "calls and branches are not told apart by processes, threads and phases: leave out such keys";
        wrong("--values or --sort", what);
    }
    let elsewhere = query.columns.iter().chain(query.filters.iter().map(|filter| &filter.key));
    if query.calls && elsewhere.into_iter().any(|key| *key == Dimension::Module) {
        wrong("--values per-call", "calls are known by function and module: name `module` among the keys of --rows");
    }
    if args.subtotals && query.rows.len() < args.per.len() + 2 {
        wrong("--subtotals", "sums are of all keys of --rows but the last, and there is one only");
    }
    if query.columns.is_empty()
        && let Order::Column(name) = &args.sort
    {
        let numbers: Vec<String> = Number::value_variants()
            .iter()
            .filter_map(|number| Some(number.to_possible_value()?.get_name().to_owned()))
            .chain(["name".to_owned()])
            .collect();
        let mean = nearest(name, &numbers).first().map_or(String::new(), |near| format!(": did you mean {near}?"));
        wrong("--sort", format!("there is no number {name:?}, and there are no columns{mean}"));
    }
    if query.columns.is_empty() && asks(|number| number == Number::RowShare) {
        wrong("row-share", "it is the share that a column has of its row, and there is no --columns");
    }
    query
}

/// The key of a name.
///
/// # Errors
/// Why there is none, in words.
pub fn key(name: &str, taxonomies: &Taxonomies) -> Result<Key, String> {
    Key::named(name, taxonomies).map_err(|error| match unmatched::near_key(name, taxonomies) {
        Some(near) => format!("there is no key {name:?}: did you mean {near}?"),
        None => error.to_string(),
    })
}

/// The options that ask for the same rows and columns.
pub fn query_options(query: &Query, taxonomies: &[PathBuf]) -> Vec<OsString> {
    let keys = |keys: &[Key]| keys.iter().map(Key::to_string).collect::<Vec<_>>().join(",");
    let mut options = vec!["--rows".to_owned(), keys(&query.rows)];
    if !query.columns.is_empty() {
        options.extend(["--columns".to_owned(), keys(&query.columns)]);
    }
    options.extend(query.filters.iter().flat_map(|filter| ["--filter".to_owned(), filter.to_string()]));
    let taxonomies = taxonomies.iter().flat_map(|file| ["--taxonomy".into(), file.into()]);
    options.into_iter().map(OsString::from).chain(taxonomies).collect()
}

/// What must be told apart when the samples are counted.
pub fn group_by(query: &Query) -> GroupBy {
    query.keys().filter_map(Key::dimension).fold(GroupBy::default(), |by, key| match key {
        Dimension::Thread => GroupBy { tasks: TaskGroups::Thread, ..by },
        Dimension::Process | Dimension::Comm => GroupBy { tasks: by.tasks.max(TaskGroups::Process), ..by },
        Dimension::Phase => GroupBy { phases: true, ..by },
        Dimension::Cgroup => GroupBy { cgroups: true, ..by },
        _ => by,
    })
}

#[cfg(test)]
mod tests {
    use analyzer::mix::Filter;
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: PivotArgs,
    }

    /// What `--precision` looks at is the same mix.
    #[test]
    fn options_ask_for_the_same_query() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mine.toml");
        std::fs::write(&file, "name = \"mine\"\ndescription = \"x\"\n").unwrap();
        let taxonomy = file.to_str().unwrap();
        let given = [
            "--rows",
            "mine,isa",
            "--columns",
            "flops",
            "--filter",
            "flops>=2",
            "--filter",
            "function!~a|b",
            "--filter",
            "mnemonic=mov*,lea",
            "--taxonomy",
            taxonomy,
        ];
        let parsed = |words: Vec<OsString>| Cli::parse_from([OsString::from("x")].into_iter().chain(words)).args;
        let args = parsed(given.map(OsString::from).to_vec());
        let asked = query::<PivotArgs>("x", &args, &args.kept.taxonomies().unwrap(), 1);
        let words = query_options(&asked, &args.kept.taxonomies);
        let args = parsed(words.clone());
        let again = query::<PivotArgs>("x", &args, &args.kept.taxonomies().unwrap(), 1);
        assert_eq!((&asked.rows, &asked.columns), (&again.rows, &again.columns));
        let filters = |query: &Query| query.filters.iter().map(Filter::to_string).collect::<Vec<_>>();
        assert_eq!(filters(&asked), filters(&again));
        assert_eq!(filters(&asked), ["flops>=2", "function!~a|b", "mnemonic=mov*,lea"]);
        assert_eq!(words, query_options(&again, &args.kept.taxonomies));
    }
}
