//! What is said after instructions, and of loops.

use analyzer::annotate::{AnnotatedBlock, AnnotatedFunction, Branch, CountedLoop, Place, Seen, Target};
use analyzer::paths::{LoopTrips, TripBucket};
use analyzer::uncertainty::Interval;
use instructions::BranchKind;

use crate::output::{count, share_cells, with_digits};

/// Shares of trips in one line have so many columns.
const WIDTH_OF_TRIPS: usize = 60;
/// So many targets of a computed branch are named.
const TARGETS: usize = 3;

/// What the last instruction of a block did.
pub fn of_branch(function: &AnnotatedFunction, block: &AnnotatedBlock) -> Option<String> {
    let branch = block.branch.as_ref()?;
    let outside = || branch.target.as_ref().filter(|target| is_outside(function, target)).map(Place::name);
    let went = match branch.kind {
        BranchKind::Conditional => taken(function, block, branch),
        BranchKind::IndirectCall | BranchKind::IndirectJump | BranchKind::SystemCall => {
            computed(function, block, branch)
        }
        _ => None,
    };
    let target = if branch.kind == BranchKind::Call { branch.target.as_ref().map(Place::name) } else { outside() };
    // Of a branch that is not taken there is no record.
    let mispredicted = branch.mispredict_rate().filter(|part| *part > 0.0).map(|part| match branch.kind {
        BranchKind::Conditional => format!("{} of these mispredicted", rate(part)),
        _ => format!("mispredicted {}", rate(part)),
    });
    let parts: Vec<String> = [target, went, mispredicted].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// What the source saw that was not chosen, where the chosen one saw nothing.
pub fn by_other_source(block: &AnnotatedBlock) -> Option<String> {
    let counted = block.count.filter(|_| block.seen == Seen::ByOtherSource)?;
    let some = |number: u64, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
    Some(match counted.ebs_samples {
        0 => format!("not seen in samples, in {}", some(counted.lbr_streams, "stream")),
        samples => format!("not seen in branches, in {}", some(samples, "sample")),
    })
}

/// A loop, for people.
pub fn of_loop(one: &CountedLoop) -> String {
    let blocks = if one.blocks == 1 { "1 block".into() } else { format!("{} blocks", one.blocks) };
    let trips = match (one.mean_trips(), one.repeats) {
        (Some(trips), _) => format!(": {} trips on average", with_digits(trips, 3)),
        (None, Some(repeats)) if repeats > 0.0 => ": seen running, but not being entered".into(),
        (None, Some(_)) => ": not seen".into(),
        (None, None) => String::new(),
    };
    format!("loop of {blocks}{trips}")
}

/// How often a loop went around each time that it was entered, in lines.
pub fn of_trips(of: &LoopTrips) -> Vec<String> {
    let shown = |share: f64, interval: Interval| {
        let [value, width] = share_cells(share, 1.0, interval);
        if width.is_empty() || value.starts_with('<') { value } else { format!("{value} ± {width}") }
    };
    let shares = of.buckets.iter().filter(|bucket| bucket.share > 0.0).map(|bucket| {
        let TripBucket { least, most, .. } = bucket;
        let range = if least == most { least.to_string() } else { format!("{least} to {most}") };
        format!("{range}: {}", shown(bucket.share, bucket.share_interval))
    });
    let mut lines: Vec<String> = shares.collect();
    lines.extend(
        (of.longer > 0.0).then(|| format!("at least {}: {}", of.at_least, shown(of.longer, of.longer_interval))),
    );
    let number =
        |number: u64, what: &str| format!("{} {what}{}", count(number as f64), if number == 1 { "" } else { "s" });
    let mut seen = vec![format!("{} seen from entry to exit", number(of.whole, "trip"))];
    seen.extend((of.cut > 0).then(|| format!("{} cut off", count(of.cut as f64))));
    seen.extend((of.without_entry > 0).then(|| format!("{} whose entry was not seen", count(of.without_entry as f64))));
    let mut wrapped = vec![String::new()];
    for share in lines {
        match wrapped.last_mut() {
            Some(line) if line.is_empty() => *line = share,
            Some(line) if line.len() + share.len() < WIDTH_OF_TRIPS => *line += &format!(", {share}"),
            _ => wrapped.push(share),
        }
    }
    wrapped.retain(|line| !line.is_empty());
    wrapped.push(seen.join(", "));
    let indented = wrapped.into_iter().enumerate();
    indented.map(|(at, line)| format!("{}{line}", if at == 0 { "  trips  " } else { "         " })).collect()
}

/// A part of a whole for people, who are not to take a small sample for a law: whole per cents, and none for sure.
fn rate(part: f64) -> String {
    match part {
        ..0.01 => "< 1 %".into(),
        0.99.. => "> 99 %".into(),
        _ => format!("{:.0} %", 100.0 * part),
    }
}

/// Functions of one name can be several: it must be the same symbol.
fn is_outside(function: &AnnotatedFunction, target: &Place) -> bool {
    target.function.as_deref() != Some(function.name.as_str()) || target.symbol() != Some(function.start)
}

fn taken(function: &AnnotatedFunction, block: &AnnotatedBlock, branch: &Branch) -> Option<String> {
    match (branch.taken_rate(), branch.taken, branch.fallen) {
        (None, ..) => unknown(function, block).map(|why| format!("taken ?{why}")),
        (_, Some(0.0), _) => Some("not seen taken".into()),
        (_, _, Some(0.0)) => Some("seen taken only".into()),
        (Some(part), ..) => Some(format!("taken {}", rate(part))),
    }
}

/// Why nothing is known of a branch that ran; `None` where it was not seen running, or the head of the report says it.
fn unknown(function: &AnnotatedFunction, block: &AnnotatedBlock) -> Option<&'static str> {
    (function.has_ways && block.seen == Seen::Counted).then_some(" (no branch stack has it)")
}

fn computed(function: &AnnotatedFunction, block: &AnnotatedBlock, branch: &Branch) -> Option<String> {
    if branch.targets.is_empty() {
        return unknown(function, block).map(|why| format!("to ?{why}"));
    }
    let all = branch.taken.unwrap_or(0.0);
    let name =
        |place: &Place| if is_outside(function, place) { place.name() } else { format!("{:#x}", place.address.0) };
    let one = |target: &Target| format!("{} {}", name(&target.place), rate(target.count / all));
    if let [only] = branch.targets.as_slice() {
        return Some(format!("seen only to {}", name(&only.place)));
    }
    let mut parts: Vec<String> = branch.targets.iter().take(TARGETS).map(one).collect();
    let more = branch.targets.len().saturating_sub(TARGETS) + branch.other_targets;
    parts.extend((more > 0).then(|| format!("{more} more")));
    Some(format!("to {}", parts.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_rate_is_certain() {
        assert_eq!([0.0001, 0.254, 0.9999].map(rate), ["< 1 %", "25 %", "> 99 %"]);
    }
}
