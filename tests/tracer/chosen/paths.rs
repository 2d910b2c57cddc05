//! Branches are ones that the code takes, in the order it takes them, and instructions are all that were executed.

use std::process::Command;

use iced_x86::FlowControl;

use crate::bursts::Traced;
use crate::code::Code;
use crate::{Place, programs, text};

/// Follows every burst through the code. Returns how many were followed to the end.
fn follow(traced: &Traced) -> usize {
    let mut code = Code::default();
    let mut whole = 0;
    for burst in &traced.bursts {
        let mut start = burst.pieces[0].ip;
        let mut executed = Some(0);
        for piece in &burst.pieces {
            assert_eq!(piece.ip, start, "a piece begins where the one before ends");
            for &(from, to) in &piece.branches {
                executed = executed.and_then(|sum| Some(sum + code.straight(traced, burst, start, from)?));
                if let Some(instruction) = code.instruction(traced, burst, from) {
                    match instruction.flow_control() {
                        FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch | FlowControl::Call => {
                            assert_eq!(instruction.near_branch_target(), to, "{from:#x}: {instruction}");
                        }
                        FlowControl::IndirectBranch | FlowControl::IndirectCall | FlowControl::Return => {}
                        // A repeated string instruction goes to itself; nothing else branches.
                        other => panic!("{from:#x}: {instruction} ({other:?}) goes to {to:#x}"),
                    }
                }
                start = to;
            }
        }
        if let Some(executed) = executed {
            let all = burst.instructions();
            assert!(executed <= all, "{executed} of {all} instructions");
            assert!(
                code.lie_straight(traced, burst, start, all - executed),
                "{executed} of {all}, then from {start:#x}"
            );
            whole += 1;
        }
    }
    whole
}

#[test]
fn every_branch_is_in_the_code_and_every_instruction_is_counted() {
    let Some(place) = Place::to_trace() else { return };
    let Some(hot) = place.program("hot", programs::HOT) else { return };
    let Some(varied) = place.program("varied", programs::VARIED) else { return };
    for (program, options) in [
        (&hot, &["--overhead", "10"][..]),
        (&varied, &["--overhead", "10"]),
        (&hot, &["--overhead", "10", "--depth", "64"]),
        (&hot, &["--overhead", "50", "--depth", "10000"]),
    ] {
        let traced = place.trace(options, &[text(program), "400"]);
        let whole = follow(&traced);
        assert!(whole >= 5, "{whole} of {} bursts: {:#}", traced.bursts.len(), traced.tracer());
        let blocks = place.json(&["blocks", "--format", "json"]);
        let broken = blocks["head"]["lbr_source"]["broken"].as_object().unwrap();
        assert!(broken.values().all(|count| count == 0), "{options:?}: {broken:?}");
        // The metadata has sums over the bursts.
        let instructions: u64 = traced.bursts.iter().map(|burst| burst.instructions()).sum();
        let branches: usize = traced.bursts.iter().map(|burst| burst.depth()).sum();
        assert_eq!((traced.number("/instructions"), traced.number("/taken_branches")), (instructions, branches as u64));
        assert_eq!(traced.number("/bursts"), traced.bursts.len() as u64);
    }
    let traced = Traced::read(&place.recording());
    let in_pieces = traced.bursts.iter().filter(|burst| burst.pieces.len() > 1).count();
    assert!(in_pieces > 0, "10,000 branches do not fit into a record");
    for burst in &traced.bursts {
        let period: u64 = burst.pieces.iter().map(|piece| piece.period).sum();
        for piece in &burst.pieces {
            let (share, expected) =
                (piece.period as f64 / period as f64, piece.instructions as f64 / burst.instructions() as f64);
            assert!((share - expected).abs() < 1e-3, "a piece stands for its share: {share} {expected}");
        }
    }
}

/// Addresses of symbols, by `nm`.
fn symbols<const N: usize>(program: &str, names: [&str; N]) -> Option<[u64; N]> {
    let output = match Command::new("nm").arg(program).output() {
        Ok(output) => String::from_utf8(output.stdout).unwrap(),
        Err(error) => {
            testing::skip!(Tool, "nm: {error}");
            return None;
        }
    };
    Some(names.map(|name| {
        let line = output.lines().find(|line| line.split_whitespace().nth(2) == Some(name)).unwrap();
        u64::from_str_radix(line.split_whitespace().next().unwrap(), 16).unwrap()
    }))
}

#[test]
fn a_loop_is_counted_exactly() {
    let Some(place) = Place::to_trace() else { return };
    let Some(known) = place.program("known", programs::KNOWN) else { return };
    let names = ["known_outer", "known_inner", "known_inner_end", "known_outer_end"];
    let Some([outer, inner, inner_end, outer_end]) = symbols(text(&known), names) else { return };
    let traced = place.trace(&["--overhead", "10"], &[text(&known), "300"]);
    let mut within = 0;
    for burst in &traced.bursts {
        let in_loop = |address: u64| (outer..=outer_end).contains(&address);
        if !in_loop(burst.pieces[0].ip) || !burst.branches().all(|(from, to)| in_loop(from) && in_loop(to)) {
            continue;
        }
        within += 1;
        let branches: Vec<(u64, u64)> = burst.branches().collect();
        let around = |branch: &(u64, u64)| *branch == (outer_end, outer);
        assert!(branches.iter().all(|branch| around(branch) || *branch == (inner_end, inner)), "{branches:x?}");
        // Nine inner ones between two outer ones, each time.
        let outers: Vec<usize> = (0..branches.len()).filter(|&index| around(&branches[index])).collect();
        assert!(outers.windows(2).all(|pair| pair[1] - pair[0] == 10), "{outers:?}");
        // An outer branch every 43 instructions: with what is before the first and behind the last less than two rounds.
        let rest = burst.instructions() - 43 * (outers.len() as u64 - 1);
        assert!(rest < 86, "{} instructions, {} rounds", burst.instructions(), outers.len());
    }
    assert!(within >= 5 && within * 10 >= traced.bursts.len() * 9, "{within} of {}", traced.bursts.len());
}
