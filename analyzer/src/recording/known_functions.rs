//! Functions of which the names are known, and perhaps nothing else: of the kernel, whose list of names is easier to come by than its code.

use serde::{Deserialize, Serialize};

use crate::address::FileOffset;

/// The functions of a module by name: not its code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownFunctions(Vec<KnownFunction>);

/// One of them: `[start, end)`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct KnownFunction {
    /// Its first byte, where samples of the module are: of the kernel's image the address at which it ran.
    pub start: FileOffset,
    /// After its last byte, or where the next symbol is.
    pub end: FileOffset,
    /// Its name, as the kernel has it.
    pub name: String,
}

impl KnownFunctions {
    /// Of functions in any order; of several that begin at one place the first one is kept, and those that end where they begin are none.
    pub fn new(functions: impl IntoIterator<Item = KnownFunction>) -> Self {
        let mut functions: Vec<KnownFunction> =
            functions.into_iter().filter(|function| function.start < function.end).collect();
        functions.sort_by_key(|function| function.start);
        functions.dedup_by_key(|function| function.start);
        Self(functions)
    }

    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The index of the function around a place: of functions one in the other, the one that begins last.
    pub fn at(&self, at: FileOffset) -> Option<u32> {
        let index = self.0.partition_point(|function| function.start <= at).checked_sub(1)?;
        let is_inside = at < self.0.get(index)?.end;
        u32::try_from(index).ok().filter(|_| is_inside)
    }

    /// The function of an index.
    pub fn get(&self, index: u32) -> Option<&KnownFunction> {
        self.0.get(index as usize)
    }

    /// The function of that name; of several the first one.
    pub fn named(&self, name: &str) -> Option<&KnownFunction> {
        self.0.iter().find(|function| function.name == name)
    }

    /// The function around a place.
    pub fn around(&self, at: FileOffset) -> Option<&KnownFunction> {
        self.get(self.at(at)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_any_of_their_bytes() {
        let of = |start, end, name: &str| KnownFunction {
            start: FileOffset(start),
            end: FileOffset(end),
            name: name.to_owned(),
        };
        let functions = KnownFunctions::new([
            of(0x40, 0x80, "second"),
            of(0x10, 0x40, "first"),
            of(0x40, 0x50, "alias"),
            of(0x90, 0x90, "empty"),
            of(u64::MAX - 1, u64::MAX, "last"),
        ]);
        let name = |at| functions.around(FileOffset(at)).map(|function| function.name.as_str());
        assert_eq!(
            [0xf, 0x10, 0x3f, 0x40, 0x7f].map(name),
            [None, Some("first"), Some("first"), Some("second"), Some("second")]
        );
        assert_eq!([0x80, 0x90, u64::MAX - 1, u64::MAX].map(name), [None, None, Some("last"), None]);
        assert_eq!(functions.get(99), None);
        assert_eq!(functions.named("second").map(|function| function.start), Some(FileOffset(0x40)));
        assert_eq!(["empty", "thirs"].map(|name| functions.named(name)), [None, None]);
    }
}
