//! `-j FILTER,..`: which branches the hardware records, and what about them.

use perfdata::BranchSampleType;

/// The names `perf record -j` takes, and their bits.
const FILTERS: &[(&str, BranchSampleType)] = &[
    ("any", BranchSampleType::ANY),
    ("any_call", BranchSampleType::ANY_CALL),
    ("any_ret", BranchSampleType::ANY_RETURN),
    ("ind_call", BranchSampleType::IND_CALL),
    ("ind_jmp", BranchSampleType::IND_JUMP),
    ("cond", BranchSampleType::COND),
    ("call", BranchSampleType::CALL),
    ("u", BranchSampleType::USER),
    ("k", BranchSampleType::KERNEL),
    ("hv", BranchSampleType::HV),
    ("in_tx", BranchSampleType::IN_TX),
    ("no_tx", BranchSampleType::NO_TX),
    ("abort_tx", BranchSampleType::ABORT_TX),
    ("no_cycles", BranchSampleType::NO_CYCLES),
    ("no_flags", BranchSampleType::NO_FLAGS),
    ("save_type", BranchSampleType::TYPE_SAVE),
    ("stack", BranchSampleType::CALL_STACK),
    ("call_stack", BranchSampleType::CALL_STACK),
];

/// The privilege levels a filter can name.
pub(crate) const LEVELS: BranchSampleType =
    BranchSampleType(BranchSampleType::USER.0 | BranchSampleType::KERNEL.0 | BranchSampleType::HV.0);

/// The bits that say what is noted about each branch, not which branches are recorded.
const DETAILS: BranchSampleType =
    BranchSampleType(BranchSampleType::NO_CYCLES.0 | BranchSampleType::NO_FLAGS.0 | BranchSampleType::TYPE_SAVE.0);

/// A filter list that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BranchFilterError {
    /// There is no filter of that name.
    #[error("no branch filter is called `{name}`; there are {}", names())]
    Unknown {
        /// The name as it was given.
        name: String,
    },
    /// The call stack is a mode of its own.
    #[error("branch filter `stack` goes with u, k and hv only: the hardware then keeps calls that have not returned")]
    StackWithOthers,
}

/// Reads `any,u` and the like. Levels alone (`u`) mean any branch at these levels.
///
/// # Errors
/// An unknown name, or `stack` together with a kind of branch.
pub fn parse_branch_filter(text: &str) -> Result<BranchSampleType, BranchFilterError> {
    let mut filter = BranchSampleType(0);
    for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        let found = FILTERS.iter().find(|(known, _)| *known == name);
        filter |= found.ok_or_else(|| BranchFilterError::Unknown { name: name.to_owned() })?.1;
    }
    if kinds(filter).is_empty() {
        filter |= BranchSampleType::ANY;
    }
    if filter.contains(BranchSampleType::CALL_STACK) && kinds(filter) != BranchSampleType::CALL_STACK {
        return Err(BranchFilterError::StackWithOthers);
    }
    Ok(filter)
}

/// The bits that select kinds of branches.
pub(crate) fn kinds(filter: BranchSampleType) -> BranchSampleType {
    filter.difference(LEVELS).difference(DETAILS)
}

/// The filter in the words of `-j`.
pub fn branch_filter_text(filter: BranchSampleType) -> String {
    let known: Vec<&str> = FILTERS
        .iter()
        .filter(|(name, bit)| filter.contains(*bit) && *name != "call_stack")
        .map(|(name, _)| *name)
        .collect();
    known.join(",")
}

fn names() -> String {
    FILTERS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, bits: u64, printed: &str) {
        let filter = parse_branch_filter(text).unwrap();
        assert_eq!(filter.0, bits, "{text}");
        assert_eq!(branch_filter_text(filter), printed, "{text}");
    }

    #[test]
    fn names_are_those_of_perf() {
        check("any", 1 << 3, "any");
        check("any,u", 1 << 3 | 1, "any,u");
        check("u,k", 1 << 3 | 3, "any,u,k");
        check("any_call,any_ret,ind_call,ind_jmp,cond,call", 0x3470, "any_call,any_ret,ind_call,ind_jmp,cond,call");
        check("in_tx,no_tx,abort_tx", 0x380, "in_tx,no_tx,abort_tx");
        check("no_cycles,no_flags,save_type", 0x1c008, "any,no_cycles,no_flags,save_type");
        check("stack,u", 0x801, "u,stack");
        check("call_stack", 0x800, "stack");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert!(parse_branch_filter("any,foo").unwrap_err().to_string().contains("`foo`"));
        assert_eq!(parse_branch_filter("stack,cond"), Err(BranchFilterError::StackWithOthers));
    }
}
