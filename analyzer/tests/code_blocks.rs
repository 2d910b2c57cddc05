//! Block finding on code written for the purpose.

mod synthetic;

use analyzer::address::Svma;
use analyzer::code::{Evidence, FunctionTable, Observed, Terminator, instructions};
use synthetic::{TEXT, at, build, code, function, listing};

fn entry() -> Observed {
    Observed::new(vec![], at(&[0]), vec![])
}

#[track_caller]
fn check(bytes: &[u8], observed: &Observed, expected: &[&str]) {
    let image = code(bytes, vec![function("f", TEXT, bytes.len() as u64)]).image();
    let (_, blocks) = build(&image, observed);
    assert_eq!(listing(&blocks), expected.join("\n"));
    for block in blocks.blocks() {
        assert_eq!(instructions(&image, block).count(), block.instructions as usize, "{block:?}");
    }
}

#[test]
fn every_transfer_ends_a_block() {
    #[rustfmt::skip]
    let bytes = [
        0x85, 0xff,                         //  0 test %edi,%edi
        0x74, 0x05,                         //  2 je 9
        0xe8, 0x00, 0x00, 0x00, 0x00,       //  4 call 9
        0x0f, 0x05,                         //  9 syscall
        0xff, 0xd0,                         //  b call *%rax
        0xcd, 0x80,                         //  d int $0x80
        0xe2, 0xef,                         //  f loop 0
        0xff, 0xe0,                         // 11 jmp *%rax
        0x0f, 0x0b,                         // 13 ud2
        0xcc,                               // 15 int3
        0xf4,                               // 16 hlt
        0xeb, 0xe7,                         // 17 jmp 0
        0xc3,                               // 19 ret
    ];
    let expected = [
        "0-4 2 Conditional Reached",
        "4-9 1 Call Reached",
        "9-b 1 SystemCall Reached",
        "b-d 1 IndirectCall Reached",
        "d-f 1 SystemCall Reached",
        "f-11 1 Conditional Reached",
        "11-13 1 IndirectJump Reached",
        "13-15 1 Trap Swept",
        "15-16 1 Trap Swept",
        "16-17 1 Trap Swept",
        "17-19 1 Jump Swept",
        "19-1a 1 Return Swept",
    ];
    check(&bytes, &entry(), &expected);
}

#[test]
fn a_target_in_the_middle_of_a_run_splits_it() {
    let bytes = [0x90, 0x90, 0x90, 0x90, 0xc3];
    check(&bytes, &entry(), &["0-5 5 Return Reached"]);
    let observed = Observed::new(at(&[1]), at(&[0, 3]), vec![]);
    check(&bytes, &observed, &["0-3 3 FallThrough Reached", "3-5 2 Return Reached"]);
}

/// A recording of another version of the file, patched kernel code, a fault: the stream still has a block to end at.
#[test]
fn a_source_that_is_no_branch_ends_its_block() {
    let bytes = [0x90, 0x90, 0x90, 0xc3];
    let observed = Observed::new(vec![], at(&[0]), at(&[1, 3]));
    check(&bytes, &observed, &["0-2 2 Observed Reached", "2-4 2 Return Reached"]);
    let image = code(&bytes, vec![]).image();
    assert_eq!(build(&image, &observed).1.statistics().sources_without_branch, 1);
}

/// `lock; 1: cmpxchg` with a jump to 1, as the C library does when there is one thread.
#[test]
fn a_jump_over_a_lock_prefix_overlaps() {
    #[rustfmt::skip]
    let bytes = [
        0x85, 0xff,                         // 0 test %edi,%edi
        0x74, 0x01,                         // 2 je 5
        0xf0, 0x0f, 0xb1, 0x0f,             // 4 lock cmpxchg %ecx,(%rdi)
        0x90,                               // 8 nop
        0xc3,                               // 9 ret
    ];
    let expected =
        ["0-4 2 Conditional Reached", "4-5 1 Overlap Reached", "5-8 1 FallThrough Reached", "8-a 2 Return Reached"];
    check(&bytes, &entry(), &expected);
    let image = code(&bytes, vec![function("f", TEXT, 10)]).image();
    let (_, blocks) = build(&image, &entry());
    let locked: Vec<_> = instructions(&image, &blocks.blocks()[1]).collect();
    assert!(locked[0].has_lock_prefix() && locked[0].len() == 4);
    assert_eq!((0..4).map(|index| blocks.following(index)).collect::<Vec<_>>(), [Some(1), Some(3), Some(3), None]);
    assert_eq!(blocks.statistics().overlapping_instructions, 1);
    assert_eq!((blocks.block_at(Svma(TEXT + 4)), blocks.block_at(Svma(TEXT + 5))), (Some(1), Some(2)));
}

/// `eb ff c0`: a jump into its own second byte, `inc %eax`. The jump keeps its terminator.
#[test]
fn a_jump_into_itself() {
    let bytes = [0xeb, 0xff, 0xc0, 0xc3];
    check(&bytes, &entry(), &["0-1 1 Jump Reached", "1-4 2 Return Reached"]);
}

/// Three instructions that start inside each other; where one of them resumes is a block start even so.
#[test]
fn nested_overlaps_stay_disjoint() {
    // 0: mov $0x9090_9090_9090_b890,%rax; 3: mov $0x90909090,%eax.
    let bytes = [0x48, 0xb8, 0x90, 0xb8, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3];
    let expected = [
        "0-2 1 Overlap Reached",
        "2-3 1 FallThrough Reached",
        "3-5 1 Overlap Reached",
        "5-8 3 FallThrough Reached",
        "8-a 2 FallThrough Reached",
        "a-b 1 Return Reached",
    ];
    check(&bytes, &Observed::new(vec![], at(&[0, 3, 2, 5]), vec![]), &expected);
}

/// A jump table between a jump and the code it leads to: decoded in a line it would swallow the first case.
#[test]
fn observed_targets_set_decoding_right_behind_a_table() {
    #[rustfmt::skip]
    let bytes = [
        0xff, 0xe0,                         // 0 jmp *%rax
        0x48, 0xb8, 0x00,                   // 2 table: the beginning of a ten-byte mov
        0x90, 0x90, 0xc3,                   // 5 the case
        0x06,                               // 8 not an instruction in 64-bit code
        0x90, 0xc3,                         // 9
    ];
    check(&bytes, &entry(), &["0-2 1 IndirectJump Reached"]);
    let observed = Observed::new(vec![], at(&[0, 5]), vec![]);
    check(&bytes, &observed, &["0-2 1 IndirectJump Reached", "5-8 3 Return Reached"]);
    let image = code(&bytes, vec![function("f", TEXT, 11)]).image();
    assert_eq!(build(&image, &observed).1.undecodable_bytes(), 6);
    // A sample behind the bad byte is evidence too.
    let observed = Observed::new(at(&[9]), at(&[0, 5]), vec![]);
    check(&bytes, &observed, &["0-2 1 IndirectJump Reached", "5-8 3 Return Reached", "9-b 2 Return Reached"]);
}

#[test]
fn a_run_into_bytes_that_do_not_decode() {
    let bytes = [0x90, 0x90, 0x06, 0x06];
    check(&bytes, &entry(), &["0-2 2 Undecodable Reached"]);
    let observed = Observed::new(at(&[2]), at(&[0, 3]), vec![]);
    let image = code(&bytes, vec![function("f", TEXT, 4)]).image();
    let statistics = build(&image, &observed).1.statistics();
    assert_eq!((statistics.observed_undecodable, statistics.undecodable_bytes), (2, 2));
}

/// Jumps from one hit function into the middle of another make block starts there.
#[test]
fn jumps_between_functions() {
    #[rustfmt::skip]
    let bytes = [
        0x75, 0x0e,                         //  0 hot: jne 10
        0x90,                               //  2      nop
        0x90,                               //  3      nop
        0xc3,                               //  4      ret
        0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66,
        0x90,                               //  f cold: nop
        0x90,                               // 10       nop
        0xeb, 0xf0,                         // 11       jmp 3
    ];
    let symbols = || vec![function("hot", TEXT, 5), function("hot.cold", TEXT + 15, 4)];
    let image = code(&bytes, symbols()).image();
    let (_, blocks) = build(&image, &Observed::new(at(&[0x10]), at(&[0]), vec![]));
    let expected = [
        "0-2 1 Conditional Reached",
        "2-3 1 FallThrough Reached",
        "3-5 2 Return Reached",
        "f-10 1 FallThrough Reached",
        "10-13 2 Jump Reached",
    ];
    assert_eq!(listing(&blocks), expected.join("\n"));
    // Blocks of functions that were not hit are not found.
    let (_, blocks) = build(&image, &Observed::new(at(&[0]), vec![], vec![]));
    assert_eq!(listing(&blocks), "0-2 1 Conditional Reached\n2-5 3 Return Reached");
}

/// Assembly code runs from one symbol into the next, through padding that belongs to neither.
#[test]
fn a_function_that_ends_without_a_transfer_runs_into_the_next() {
    let bytes = [0x90, 0x66, 0x90, 0x90, 0xc3, 0xcc, 0x90, 0xc3];
    let symbols = vec![function("first", TEXT, 1), function("second", TEXT + 3, 2), function("third", TEXT + 6, 2)];
    let image = code(&bytes, symbols).image();
    let (functions, blocks) = build(&image, &Observed::new(at(&[0]), vec![], vec![]));
    let expected = ["0-1 1 FallThrough Reached", "1-3 1 FallThrough Reached", "3-5 2 Return Reached"];
    assert_eq!(listing(&blocks), expected.join("\n"));
    assert_eq!((blocks.following(0), blocks.following(1), blocks.following(2)), (Some(1), Some(2), None));
    let names: Vec<_> = blocks.blocks().iter().map(|block| functions.name(block.function).into_owned()).collect();
    assert_eq!(names, ["first", "[.text+0x1]", "second"]);
}

/// A call at the end of a function does not come back: what follows is not hit.
#[test]
fn a_call_at_the_end_does_not_run_on() {
    let bytes = [0xe8, 0, 0, 0, 0, 0x90, 0xc3];
    let image = code(&bytes, vec![function("f", TEXT, 5), function("g", TEXT + 5, 2)]).image();
    let (_, blocks) = build(&image, &Observed::new(at(&[0]), vec![], vec![]));
    assert_eq!(listing(&blocks), "0-5 1 Call Reached");
    assert_eq!(blocks.following(0), None);
}

/// Without symbols and unwind entries only what was seen, and what it leads to, is known.
#[test]
fn stripped_code_is_followed_from_what_was_observed() {
    #[rustfmt::skip]
    let bytes = [
        0x48, 0xb8, 0x00,                   // 0 garbage
        0x85, 0xff,                         // 3 test %edi,%edi
        0x74, 0x02,                         // 5 je 9
        0x90, 0xc3,                         // 7 nop; ret
        0x90, 0xc3,                         // 9 nop; ret
        0x48, 0xb8, 0x90,                   // b never seen
        0xe8, 0xf0, 0xff, 0xff, 0xff,       // e call 3
        0xc3,                               // 13 ret
    ];
    let image = code(&bytes, vec![]).image();
    let (functions, blocks) = build(&image, &Observed::new(at(&[0xe]), at(&[3]), vec![]));
    let expected = [
        "3-7 2 Conditional Reached",
        "7-9 2 Return Reached",
        "9-b 2 Return Reached",
        "e-13 1 Call Reached",
        "13-14 1 Return Reached",
    ];
    assert_eq!(listing(&blocks), expected.join("\n"));
    assert_eq!(functions.name(blocks.blocks()[0].function), "[.text+0x0]");
    assert_eq!(blocks.undecodable_bytes(), 0, "what was not looked at is not bad");
}

/// Sampled addresses are instruction starts but not block starts.
#[test]
fn samples_do_not_split_blocks() {
    let bytes = [0x90, 0x90, 0x90, 0xc3];
    check(&bytes, &Observed::new(at(&[0, 1, 2, 3]), vec![], vec![]), &["0-4 4 Return Reached"]);
}

#[test]
fn addresses_outside_of_code_are_counted() {
    let image = code(&[0x90, 0xc3], vec![]).image();
    let observed = Observed::new(vec![Svma(0), Svma(u64::MAX)], at(&[0, 2]), vec![]);
    let (_, blocks) = build(&image, &observed);
    assert_eq!(blocks.statistics().observed_outside, 3);
    assert_eq!(blocks.blocks().len(), 1);
    assert_eq!((blocks.block_at(Svma(TEXT + 2)), blocks.block_at(Svma(0))), (None, None));
}

#[test]
fn nothing_observed_nothing_found() {
    let image = code(&[0x90, 0xc3], vec![function("f", TEXT, 2)]).image();
    let (functions, blocks) = build(&image, &Observed::default());
    assert_eq!((functions.len(), blocks.blocks().len(), blocks.following(0)), (1, 0, None));
}

#[test]
fn swept_code_is_marked_as_a_guess() {
    // jmp 4; nop; nop; ret: nobody was seen at the nops.
    let bytes = [0xeb, 0x02, 0x90, 0x90, 0xc3];
    let image = code(&bytes, vec![function("f", TEXT, 5)]).image();
    let (_, blocks) = build(&image, &entry());
    let evidence: Vec<_> = blocks.blocks().iter().map(|block| (block.evidence, block.terminator)).collect();
    let expected = [
        (Evidence::Reached, Terminator::Jump),
        (Evidence::Swept, Terminator::FallThrough),
        (Evidence::Reached, Terminator::Return),
    ];
    assert_eq!(evidence, expected);
}

/// Blocks do not depend on the order in which addresses were observed.
#[test]
fn observed_addresses_are_sorted() {
    let observed = Observed::new(at(&[3, 1, 3]), at(&[2, 0]), at(&[1, 1]));
    assert_eq!(observed, Observed::new(at(&[1, 3]), at(&[0, 2]), at(&[1])));
    let table = FunctionTable::default();
    assert!(table.is_empty() && table.at(Svma(0)).is_none());
}
