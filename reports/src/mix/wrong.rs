//! What of a question does not go together.

use analyzer::mix::Key;

use super::numbers::Number;
use crate::{Argument, Arguments};

/// What does not go together.
#[derive(Debug, PartialEq)]
pub enum WrongShape {
    /// Groups are of a key that is not there: why, in words.
    NoSuchKey(String),
    /// A key is asked for twice, the second time by this argument.
    KeyTwice {
        /// The argument.
        argument: Argument,
        /// The key.
        key: Key,
    },
    /// A number is asked for twice.
    NumberTwice(Number),
    /// All keys of the rows make groups.
    EmptyGroups,
    /// A number of calls, of rows that are not of functions.
    CallsOfNoFunction(Number),
    /// Calls or branches of processes, threads or phases.
    CallsOfTasks,
    /// Calls of functions, whose modules are a key elsewhere.
    CallsOfModules {
        /// The number that counts calls.
        number: Number,
        /// Where the key is.
        argument: Argument,
    },
    /// Sums are of all keys but the last, and there is one.
    OneKeyToSum,
    /// An order by neither a number nor the name, of rows without columns.
    NoSuchNumber {
        /// What was asked for.
        name: String,
        /// The number that is called nearly so, if one is.
        near: Option<String>,
    },
    /// The share that columns have of rows, where there are none.
    NoColumns,
}

impl WrongShape {
    /// What is wrong, and what to ask instead.
    pub fn sentence(&self, arguments: &dyn Arguments) -> String {
        use Argument::{Columns, Per, Rows, Sort, Subtotals, Values};
        let [rows, columns, per, values, sort, subtotals] =
            [Rows, Columns, Per, Values, Sort, Subtotals].map(|argument| arguments.name(argument));
        match self {
            Self::NoSuchKey(why) => format!("{per}: {why}"),
            Self::KeyTwice { argument, key } => {
                format!("{}: {key} is asked for twice: each key has one column", arguments.name(*argument))
            }
            Self::NumberTwice(number) => {
                format!("{values}: {number} is asked for twice: each number has one column")
            }
            Self::EmptyGroups => format!("{per}: {rows} names nothing else, so there is nothing in the groups"),
            Self::CallsOfNoFunction(number) => {
                format!("{number}: it needs `function` among the keys of {rows} or {per}")
            }
            Self::CallsOfTasks => format!(
                "{values} or {sort}: calls and branches are not told apart by processes, threads and phases: leave out \
                 such keys"
            ),
            Self::CallsOfModules { number, argument } => format!(
                "{number}: calls are known by function and module: `module` may be among the keys of {rows}, not in {}",
                arguments.name(*argument)
            ),
            Self::OneKeyToSum => {
                format!("{subtotals}: sums are of all keys of {rows} but the last, and there is one only")
            }
            Self::NoSuchNumber { name, near } => {
                let mean = near.as_ref().map_or(String::new(), |near| format!(": did you mean {near}?"));
                format!("{sort}: there is no number {name:?}, and there are no columns{mean}")
            }
            Self::NoColumns => {
                format!("{}: it is the share that a column has of its row, and there is no {columns}", Number::RowShare)
            }
        }
    }
}
