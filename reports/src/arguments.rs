//! What may be asked, by the names that it has where it is asked: options of the command, arguments in Python.

/// Something that may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// Keys of the rows.
    Rows,
    /// Keys of the columns.
    Columns,
    /// What is kept.
    Filter,
    /// Keys that make groups.
    Per,
    /// The numbers of each row.
    Values,
    /// The order of rows.
    Sort,
    /// Sums of all keys but the last.
    Subtotals,
    /// Files that are read instead of recorded ones.
    Binaries,
    /// The folder under which binaries are looked for.
    Symfs,
}

/// How all that is called, for sentences that say what to ask instead.
pub trait Arguments {
    /// The name of an argument: `--per`.
    fn name(&self, argument: Argument) -> &'static str;

    /// What shows the values that a key has: `hbbp mix --rows function`.
    fn values_of(&self, key: &str) -> String;
}
