//! Which function.

use crate::address::FileOffset;
use crate::code::{FunctionId, FunctionTable};
use crate::recording::{KnownFunctions, ModuleId};

/// A function of a module. All code of a module that was neither read nor is named is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionKey {
    module: ModuleId,
    /// Half the size of an `Option`, and there are many contexts.
    function: u32,
}

/// Of code that was not read.
const UNREAD: u32 = u32::MAX;
/// Set in numbers of functions whose names alone are known.
const NAMED: u32 = 1 << 31;

impl FunctionKey {
    /// A function of the table of its module. Parts of one function are one.
    pub fn of(module: ModuleId, functions: &FunctionTable, id: FunctionId) -> Self {
        let first = functions.at(functions.get(id).symbol).filter(|&first| functions.are_of_one(first, id));
        FunctionKey { module, function: first.unwrap_or(id).0 }
    }

    /// The code of a module that was not read.
    pub fn unread(module: ModuleId) -> Self {
        FunctionKey { module, function: UNREAD }
    }

    /// The function around a place of a module that was not read, where its name is known; or else all code without a name.
    pub(crate) fn named(module: ModuleId, functions: &KnownFunctions, at: FileOffset) -> Self {
        let function = functions.at(at).filter(|index| *index < NAMED - 1).map_or(UNREAD, |index| NAMED | index);
        FunctionKey { module, function }
    }

    /// The index of the function among those whose names alone are known.
    pub(crate) fn known(self) -> Option<u32> {
        (self.function != UNREAD && self.function & NAMED != 0).then_some(self.function & !NAMED)
    }

    /// Its module.
    pub fn module(self) -> ModuleId {
        self.module
    }

    /// The function, if its module was read.
    pub fn function(self) -> Option<FunctionId> {
        (self.function & NAMED == 0).then_some(FunctionId(self.function))
    }

    /// All of it in one number.
    pub(crate) fn bits(self) -> u64 {
        u64::from(self.module.0) << 32 | u64::from(self.function)
    }
}
