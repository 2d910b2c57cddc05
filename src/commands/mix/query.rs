//! What the options ask for, and the other way round.

use std::ffi::OsString;
use std::fmt::Display;
use std::path::PathBuf;

use analyzer::mix::{Key, Query, Taxonomies};
use reports::mix::key;

use super::Args;
use crate::commands::filtering::FilterArgs;
use crate::usage::{CommandLine, wrong_usage};

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
    args.shape()
        .shape(query, taxonomies)
        .unwrap_or_else(|why| wrong_usage::<Args>("hbbp mix", why.sentence(&CommandLine)))
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
