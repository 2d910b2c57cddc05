//! Calls: who called whom, how often.

use std::collections::BTreeMap;

use iced_x86::FlowControl;

use super::names::Names;
use super::positions::Positions;
use crate::address::Svma;
use crate::code::{FunctionTable, Image, LONGEST_INSTRUCTION};
use crate::flow::Flow;
use crate::lines::{ScopeId, SourceIndex};

/// Names of all functions that were called, by address.
pub(super) type Targets = BTreeMap<Svma, String>;

/// The functions of the module that branches of any module go to the entry of, but for jumps within the function itself.
pub(super) fn calls<'flow>(
    flow: &'flow Flow,
    module: usize,
    image: &'flow Image,
    functions: &'flow FunctionTable,
) -> impl Iterator<Item = Call> + 'flow {
    flow.modules.iter().enumerate().flat_map(move |(index, from)| {
        let to_here = from.branches.iter().filter(move |branch| branch.to.module == module);
        to_here.filter_map(move |branch| {
            let own = (index == module).then_some(branch.from);
            let (to, count) = (branch.to.at, branch.count);
            let target = functions.at(to).filter(|&target| functions.is_entry(target, to))?;
            let called = match own {
                Some(from) => match flow_control(image, from) {
                    Some(FlowControl::Call | FlowControl::IndirectCall) => true,
                    Some(FlowControl::Return) | None => false,
                    Some(_) => functions.at(from).is_none_or(|from| !functions.are_of_one(from, target)),
                },
                None => true,
            };
            called.then_some(Call { from: own, to, count })
        })
    })
}

/// Calls from one place to one function.
pub(super) struct Call {
    /// In this module; `None` from elsewhere.
    pub from: Option<Svma>,
    pub to: Svma,
    pub count: f64,
}

/// The names of the functions that were called: those of their debug information, or of their symbols.
pub(super) fn targets(calls: &[Call], source: &SourceIndex, functions: &FunctionTable) -> Targets {
    let name = |to: Svma| {
        let described =
            own_scope(source, to).and_then(|scope| source.function(source.scope(scope)).linkage_name.clone());
        described.or_else(|| Some(functions.name(functions.at(to)?).into_owned()))
    };
    calls.iter().filter_map(|call| Some((call.to, name(call.to)?))).filter(|(_, name)| !name.starts_with('[')).collect()
}

/// Puts calls where they come from and where they go to.
pub(super) fn place<'a>(
    calls: &[Call],
    targets: &'a Targets,
    source: &SourceIndex,
    names: Names,
    positions: &mut Positions<'a>,
) {
    for call in calls {
        if let Some(scope) = own_scope(source, call.to) {
            positions.entered(scope, call.count);
        }
        let span = call.from.and_then(|from| source.at(from));
        let place = span.and_then(|span| positions.location(span.scope, span.position).ok());
        if let (Some(place), Some(target)) = (place, targets.get(&call.to)) {
            positions.called(place, names.of(target), call.count);
        }
    }
}

/// The function with code of its own that an address is the entry of.
pub(super) fn own_scope(source: &SourceIndex, entry: Svma) -> Option<ScopeId> {
    let mut scope = source.at(entry)?.scope;
    while let Some((caller, _)) = source.scope(scope).caller {
        scope = caller;
    }
    (source.scope(scope).entry == entry).then_some(scope)
}

fn flow_control(image: &Image, at: Svma) -> Option<FlowControl> {
    let instruction = image.decoder(at, LONGEST_INSTRUCTION).into_iter().next()?;
    (!instruction.is_invalid()).then(|| instruction.flow_control())
}
