//! From what ran to a profile.

use std::collections::BTreeSet;

use super::calls::{Call, calls, own_scope, place, targets};
use super::executed::{Executed, executed};
use super::names::Names;
use super::positions::{Instructions, Positions, Symbols, Unplaced};
use super::samples::{Placement, SampleProfile};
use crate::address::Svma;
use crate::code::Image;
use crate::counting::AnalysedModule;
use crate::flow::Flow;
use crate::lines::{ScopeId, SourceIndex, Span, joined};

/// Makes the profile of a module of a flow, whose code is `code`, and returns as well what was damaged or missing in its debug
/// information, in words.
pub fn build(
    flow: &Flow,
    module: usize,
    code: &AnalysedModule,
    names: Names,
    threads: usize,
) -> (SampleProfile, Vec<String>) {
    let of = &flow.modules[module];
    let executed = executed(of);
    let AnalysedModule { binary, functions, .. } = code;
    let source = SourceIndex::read(binary, &joined(executed.iter().map(|piece| piece.start..piece.end)), threads);
    let calls: Vec<_> = calls(flow, module, &binary.image, functions).collect();
    let (targets, symbols) = (targets(&calls, &source, functions), Symbols::of(&source, functions));
    let mut positions = Positions::of(&source, &symbols, names);
    let sampled = of.ranges.is_empty();
    let placement = place_executions(&executed, &source, &binary.image, sampled, &mut positions);
    place(&calls, &targets, &source, names, &mut positions);
    enter_without_calls(&executed, &calls, &source, sampled, &mut positions);
    (SampleProfile { functions: positions.into_functions(), placement }, source.notes().to_vec())
}

fn place_executions(
    executed: &[Executed],
    source: &SourceIndex,
    image: &Image,
    sampled: bool,
    positions: &mut Positions<'_>,
) -> Placement {
    let mut placement = Placement::default();
    let mut first = 0;
    for span in source.spans() {
        let location = positions.location(span.scope, span.position);
        first += executed[first..].partition_point(|piece| piece.end <= span.start);
        let inside = executed[first..].iter().take_while(|piece| piece.start < span.end);
        for piece in inside {
            let bytes = piece.end.min(span.end).0 - piece.start.max(span.start).0;
            let weight = piece.count * bytes as f64;
            match location {
                Ok(_) => placement.placed += weight,
                Err(Unplaced::NoLine) => placement.without_line += weight,
                Err(Unplaced::NoStart) => placement.without_start_line += weight,
            }
        }
        if let Ok(location) = location {
            let counts = instructions(image, span, &executed[first..]);
            match sampled {
                false => positions.executed(location, &counts, span.position.discriminator.duplication),
                true => positions.sampled(location, &counts),
            }
        }
    }
    let all: f64 = executed.iter().map(|piece| piece.count * (piece.end.0 - piece.start.0) as f64).sum();
    placement.without_debug_information = (all - placement.all()).max(0.0);
    placement
}

/// The counts of the instructions of a span. `executed` starts with what reaches into it.
fn instructions(image: &Image, span: &Span, executed: &[Executed]) -> Instructions {
    let mut counts = Instructions::default();
    let mut executed = executed.iter().peekable();
    for instruction in image.decoder(span.start, span.end.0 - span.start.0) {
        let at = Svma(instruction.ip());
        while executed.next_if(|piece| piece.end <= at).is_some() {}
        let count = executed.peek().filter(|piece| piece.start <= at).map_or(0.0, |piece| piece.count);
        counts.number += 1;
        counts.most = counts.most.max(count);
        counts.sum += count;
        counts.bytes += count * instruction.len() as f64;
    }
    counts
}

/// Functions that no call was seen of were called as often as their first instruction ran: exact counts have no calls through pointers.
/// A single sampled instruction says little, so of samples it is the position of that instruction.
fn enter_without_calls(
    executed: &[Executed],
    calls: &[Call],
    source: &SourceIndex,
    sampled: bool,
    positions: &mut Positions<'_>,
) {
    let called: BTreeSet<ScopeId> = calls.iter().filter_map(|call| own_scope(source, call.to)).collect();
    for (id, scope) in (0..).map(ScopeId).zip(source.scopes()) {
        if scope.caller.is_some() || called.contains(&id) {
            continue;
        }
        let count = match sampled {
            true => {
                let span = source.at(scope.entry);
                let place = span.and_then(|span| positions.location(span.scope, span.position).ok());
                place.map(|place| positions.mean(place))
            }
            false => {
                let after = executed.partition_point(|piece| piece.start <= scope.entry);
                let piece = after.checked_sub(1).map(|index| &executed[index]);
                piece.filter(|piece| scope.entry < piece.end).map(|piece| piece.count)
            }
        };
        positions.entered(id, count.unwrap_or(0.0));
    }
}
