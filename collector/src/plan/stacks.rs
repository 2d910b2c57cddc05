//! Which branch stacks to ask for, and what is lost where the hardware has none like that.

use perfdata::BranchSampleType;

use crate::plan::branch_filter::{LEVELS, branch_filter_text};
use crate::plan::chain_options::ChainOptions;
use crate::plan::event_spec::{EventSpec, Levels, Role};
use crate::plan::{BranchRecords, EventOption};

/// The branches asked for.
fn asked(chain: &ChainOptions<'_>) -> BranchSampleType {
    let filter = chain.options.filter.unwrap_or(BranchSampleType::ANY);
    if filter.intersects(LEVELS) {
        return filter;
    }
    filter
        | match chain.branch_levels {
            Levels::All => BranchSampleType::USER | BranchSampleType::KERNEL,
            Levels::User => BranchSampleType::USER,
            Levels::Kernel => BranchSampleType::KERNEL,
        }
}

/// The branch stacks to try, best first. The two events must ask the hardware for the same filter, or they cannot count at the same time.
pub(crate) fn stacks(
    role: Role,
    records: Option<BranchRecords>,
    chain: &ChainOptions<'_>,
) -> Vec<Option<BranchSampleType>> {
    let asked = asked(chain);
    // In place of a filter the hardware does not have: all branches, at the levels asked for.
    let plain = BranchSampleType(asked.0 & LEVELS.0) | BranchSampleType::ANY;
    let replaceable = asked != plain && !asked.contains(BranchSampleType::CALL_STACK);
    let filters = if replaceable { vec![Some(asked), Some(plain)] } else { vec![Some(asked)] };
    match (role, records) {
        (Role::Lbr, Some(BranchRecords::WithTakenBranches)) => vec![Some(plain)],
        (Role::Lbr, _) => filters,
        (Role::Ebs, Some(BranchRecords::WithAnyEvent)) if chain.options.lbr != EventOption::None => {
            filters.into_iter().chain([None]).collect()
        }
        (Role::Ebs, _) => vec![None],
    }
}

pub(crate) fn stack_loss(
    spec: &EventSpec,
    stacks: &[Option<BranchSampleType>],
    records: Option<BranchRecords>,
    chain: &ChainOptions<'_>,
) -> Option<String> {
    let asked = asked(chain);
    match spec.branches {
        None if stacks[0].is_some() => Some(format!("{}: its samples come without branch stacks", spec.name())),
        Some(stack) if stack != asked => {
            let who = if records == Some(BranchRecords::WithTakenBranches) { "BRS" } else { "this CPU" };
            Some(format!(
                "{who} does not filter by {}: all taken branches are recorded",
                branch_filter_text(asked.difference(LEVELS))
            ))
        }
        _ => None,
    }
}
