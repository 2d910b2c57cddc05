//! How often an event samples: the user's period or frequency where the event can have it, else the table's.

use crate::plan::chain_options::ChainOptions;
use crate::plan::event_spec::{Period, Role};
use crate::plan::periods::{Periods, prime_from};
use crate::plan::{BranchRecords, Options, PlanError};

/// A period, and what it is not.
pub(crate) struct ChosenPeriod {
    pub(crate) value: Period,
    pub(crate) loss: Option<String>,
}

/// The period the user gave for the role.
pub(crate) fn own_period(role: Role, options: &Options) -> Option<u64> {
    if role == Role::Ebs { options.ebs_period } else { options.lbr_period }
}

/// The period of a counter.
pub(crate) fn period(
    role: Role,
    records: Option<BranchRecords>,
    chain: &ChainOptions<'_>,
) -> Result<ChosenPeriod, PlanError> {
    let Periods { ebs, lbr, .. } = chain.options.run_time.periods();
    let table = if role == Role::Ebs { ebs } else { lbr };
    let option = if role == Role::Ebs { "--ebs-period" } else { "--lbr-period" };
    let brs = role == Role::Lbr && records == Some(BranchRecords::WithTakenBranches);
    match (own_period(role, chain.options), chain.options.frequency) {
        (Some(period), _) if brs && period <= 16 => {
            Err(PlanError::Period { period, role: option, rule: "BRS needs more than its 16 entries" })
        }
        (Some(0), _) | (None, Some(0)) => {
            Err(PlanError::Period { period: 0, role: option, rule: "it must be 1 or more" })
        }
        (Some(period), _) => Ok(ChosenPeriod { value: Period::Every(period), loss: None }),
        (None, Some(_)) if brs => Ok(ChosenPeriod {
            value: Period::Every(table),
            loss: Some(format!("BRS has no sampling by frequency: branch stacks come every {table} taken branches")),
        }),
        (None, Some(frequency)) => {
            Ok(ChosenPeriod { value: Period::Frequency(capped(frequency, chain)), loss: cap_loss(frequency, chain) })
        }
        (None, None) => Ok(ChosenPeriod { value: Period::Every(table), loss: None }),
    }
}

/// Clocks have a period in nanoseconds whichever way the rate is given, and a prime one unless the user chose it.
pub(crate) fn clock_period(chain: &ChainOptions<'_>) -> Result<Period, PlanError> {
    let rule = "a clock takes 10,000 ns or more";
    match (chain.options.ebs_period, chain.options.frequency) {
        (Some(period), _) if period < 10_000 => Err(PlanError::Period { period, role: "--ebs-period", rule }),
        (Some(period), _) => Ok(Period::Every(period)),
        (None, Some(0)) => Err(PlanError::Period { period: 0, role: "--freq", rule: "it must be 1 or more" }),
        (None, Some(frequency)) => {
            Ok(Period::Every(prime_from((1_000_000_000 / capped(frequency, chain)).max(10_000))))
        }
        (None, None) => Ok(Period::Every(chain.options.run_time.periods().clock)),
    }
}

/// The kernel refuses frequencies above its limit.
fn capped(frequency: u64, chain: &ChainOptions<'_>) -> u64 {
    chain.rate_limit.map_or(frequency, |limit| frequency.min(limit.max(1)))
}

fn cap_loss(frequency: u64, chain: &ChainOptions<'_>) -> Option<String> {
    let limit = chain.rate_limit.filter(|&limit| frequency > limit)?;
    Some(format!("{limit} samples a second instead of {frequency}: kernel.perf_event_max_sample_rate is {limit}"))
}

/// IBS ignores the low four bits.
pub(crate) fn ibs_period(count: u64) -> u64 {
    (count & !0xf).max(0x10)
}
