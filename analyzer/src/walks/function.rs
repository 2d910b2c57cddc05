//! Which function.

use crate::code::{FunctionId, FunctionTable};
use crate::recording::ModuleId;

/// A function of a module. All code of a module that was not read is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionKey {
    module: ModuleId,
    /// Half the size of an `Option`, and there are many contexts.
    function: u32,
}

/// Of code that was not read.
const UNREAD: u32 = u32::MAX;

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

    /// Its module.
    pub fn module(self) -> ModuleId {
        self.module
    }

    /// The function, if its module was read.
    pub fn function(self) -> Option<FunctionId> {
        (self.function != UNREAD).then_some(FunctionId(self.function))
    }

    /// All of it in one number.
    pub(crate) fn bits(self) -> u64 {
        u64::from(self.module.0) << 32 | u64::from(self.function)
    }
}
