//! Names that are written once, and are numbers from then on.

use std::collections::HashMap;

use crate::output::printable;

/// The numbers of names of one kind: objects, files or functions.
#[derive(Default)]
pub struct Names {
    known: HashMap<String, usize>,
}

impl Names {
    /// `(1) name`, the next time `(1)`.
    pub fn short(&mut self, name: &str) -> String {
        if let Some(number) = self.known.get(name) {
            return format!("({number})");
        }
        let number = self.known.len() + 1;
        self.known.insert(name.to_string(), number);
        format!("({number}) {}", printable(name))
    }
}
