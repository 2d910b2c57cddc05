//! What is said of a function above its code.

use analyzer::annotate::{AnnotatedFunction, Seen};
use analyzer::recording::base_name;

use super::{Annotated, code};
use crate::output::{count, rounded, share_cells, times};

/// Its name and its file.
pub fn title(of: &Annotated<'_>, function: &AnnotatedFunction) -> String {
    let path = of.module(function);
    let file = base_name(path);
    format!("{} ({file})", function.name)
}

/// Its share of all instructions and of the time, how often it was called, how much of it was seen, its loops.
pub fn facts(of: &Annotated<'_>, function: &AnnotatedFunction) -> String {
    let [part, error] = share_cells(function.executed, of.instructions, function.share_interval);
    let error = if error.is_empty() { error } else { format!(" ± {error}") };
    let executed = count(rounded(function.executed, function.executed_interval));
    let mut facts = vec![format!("{part}{error} of all instructions: {executed}")];
    facts.extend(function.time.filter(|time| time.share > 0.0).map(|time| {
        let long = of.time_per_instruction(function);
        let long = long.map_or(String::new(), |long| format!(" ({} per instruction)", times(long)));
        format!("{} of the time{long}", share_cells(time.share, 1.0, time.interval())[0])
    }));
    facts.extend(function.calls.map(|calls| match calls {
        0.0 => "no call of it was seen".to_owned(),
        1.0 => "1 call".to_owned(),
        calls => format!("{} calls", count(calls)),
    }));
    if let Some(why) = of.why_unread(function) {
        facts.push(format!("its code is not known: the recording does not have it, and {why}"));
        return facts.join("; ");
    }
    let seen = function.blocks.iter().filter(|block| code::is_seen(block)).count();
    let blocks = function.blocks.iter().filter(|block| block.seen != Seen::Padding).count();
    facts.push(format!("{seen} of {blocks} blocks seen"));
    match &function.loops {
        Some(loops) if loops.len() == 1 => facts.push("1 loop".into()),
        Some(loops) if !loops.is_empty() => facts.push(format!("{} loops", loops.len())),
        Some(_) => {}
        None => facts.push("its code is too entangled to look for loops".into()),
    }
    facts.join("; ")
}
