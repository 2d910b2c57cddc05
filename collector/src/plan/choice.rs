//! From a plan to the events that really open.

pub use formats::metadata::CountsFrom;

use crate::errno::Errno;
use crate::machine::{EventOpener, Machine};
use crate::plan::event_spec::{EventSpec, Levels, Role, SessionAttrs, Unit};
use crate::plan::fallback_chain::FallbackChain;
use crate::plan::{Options, Plan, PlanError, plan, user_only_sentence};

/// The events of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// What the counts come from.
    pub source: CountsFrom,
    /// The events, in the order they are opened.
    pub events: Vec<EventSpec>,
    /// They are events of CPUs, of which only what is of the recorded processes is kept.
    pub by_cpu: bool,
    /// Everything that is less than it could be, in sentences.
    pub degradations: Vec<String>,
}

/// Plans, and tries the events on `opener`.
///
/// # Errors
/// No plan, or an event without which there is none does not open in any way.
pub fn choose(machine: &Machine, options: &Options, opener: &mut dyn EventOpener) -> Result<Choice, PlanError> {
    let first = plan(machine, options)?;
    match walk(machine, options, &first, opener) {
        Err(PlanError::NothingOpens { errno, .. }) if errno.is_permission() && first.levels_may_shrink => {
            let user = Options { levels: Some(Levels::User), ..options.clone() };
            let mut choice = walk(machine, &user, &plan(machine, &user)?, opener)?;
            choice.degradations.insert(0, user_only_sentence(machine));
            Ok(choice)
        }
        result => result,
    }
}

fn walk(machine: &Machine, options: &Options, plan: &Plan, opener: &mut dyn EventOpener) -> Result<Choice, PlanError> {
    let mut choice = Choice {
        source: CountsFrom::Other,
        events: Vec::new(),
        by_cpu: false,
        degradations: plan.degradations.clone(),
    };
    for chain in &plan.chains {
        descend(machine, options, chain, opener, &mut choice)?;
    }
    choice.source = source(&choice.events);
    Ok(choice)
}

/// Adds the first attempt that opens.
fn descend(
    machine: &Machine,
    options: &Options,
    chain: &FallbackChain,
    opener: &mut dyn EventOpener,
    choice: &mut Choice,
) -> Result<(), PlanError> {
    let mut refusal: Option<(String, Errno)> = None;
    for attempt in &chain.attempts {
        let own = attempt.spec.cpus.as_ref().map(|cpus| cpus.intersection(&machine.online));
        let cpu = own.as_ref().unwrap_or(&machine.online).iter().next();
        let cpu = cpu.filter(|_| own.is_some() || options.system_wide);
        let attr = attempt.spec.attr(&SessionAttrs::default(), false);
        match opener.try_open(&attr, cpu, options.system_wide) {
            Ok(()) => {
                let because = refusal.map_or(String::new(), |(name, errno)| format!(" ({name}: {errno})"));
                for (index, sentence) in attempt.losses.iter().chain(&attempt.caveats).enumerate() {
                    // Another kind of core, or the other role, may have lost the same already.
                    if !choice.degradations.iter().any(|said| said.starts_with(sentence)) {
                        let because = if index == 0 && !attempt.losses.is_empty() { because.as_str() } else { "" };
                        choice.degradations.push(format!("{sentence}{because}"));
                    }
                }
                choice.events.push(attempt.spec.clone());
                return Ok(());
            }
            Err(errno) if errno.is_permission() => {
                return Err(PlanError::NothingOpens { name: attempt.spec.name(), errno });
            }
            Err(errno) => refusal = refusal.or(Some((attempt.spec.name(), errno))),
        }
    }
    let (name, errno) = refusal.unwrap_or_else(|| ("any event".to_owned(), Errno::EOPNOTSUPP));
    if !chain.optional {
        return Err(PlanError::NothingOpens { name, errno });
    }
    choice.degradations.push(format!("no branch records: {name} does not open ({errno})"));
    Ok(())
}

fn source(events: &[EventSpec]) -> CountsFrom {
    let has = |test: fn(&EventSpec) -> bool| events.iter().any(test);
    if has(|event| event.role == Role::Lbr) {
        CountsFrom::BranchRecords
    } else if has(|event| {
        matches!(event.unit, Unit::Instructions | Unit::Operations | Unit::Branches | Unit::TakenBranches)
    }) {
        CountsFrom::Counter
    } else if has(|event| event.unit == Unit::Nanoseconds) {
        CountsFrom::Clock
    } else {
        CountsFrom::Other
    }
}
