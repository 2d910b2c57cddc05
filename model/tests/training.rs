//! Trees learnt from made-up blocks.

#[path = "../../tests/support/labelled.rs"]
mod labelled;

use labelled::{Random, blocks, by_length};
use model::training::{LabelledBlock, Search, Training, TrainingError, train};
use model::{Decision, Features, Model, Source, SourcePair, Tree, Weighting};

/// Fewer combinations than the command tries.
fn search() -> Search {
    Search { weightings: vec![Weighting::Instructions], leaves: vec![1, 2, 4], depths: vec![2], min_weight: 0.02 }
}

fn trained(blocks: &[LabelledBlock]) -> Training {
    train(blocks, SourcePair::Software, &search(), &|_, _| ()).unwrap()
}

#[test]
fn the_threshold_of_a_rule_is_found() {
    let Training { model, .. } = trained(&blocks(4, by_length));
    let root = model.tree.nodes()[0];
    let Decision::Split { feature: 0, threshold: 18.0, .. } = root.decision else { panic!("{root:?}") };
    assert_eq!(model.tree.leaves(), 2);
    assert_eq!(model.tree.importances(), [(0, 1.0)]);
    assert_eq!((root.samples, root.weight), (320, 1.0));
    assert!(root.gini > 0.3, "{root:?}");
    assert!(model.tree.nodes()[1..].iter().all(|leaf| leaf.gini == 0.0));
    let mean = model.evidence.mean();
    assert_eq!(mean.tree, mean.perfect);
    assert_eq!(mean.published, mean.perfect);
    assert!(mean.perfect.blocks < 0.1 && mean.ebs.blocks > 0.1 && mean.lbr.blocks > 0.1, "{mean:?}");
    assert!(model.beats_best_single());
    assert!(model.verdict().starts_with("the tree beats "), "{}", model.verdict());
}

#[test]
fn features_that_say_nothing_do_not_beat_one_source() {
    let Training { model, .. } = trained(&blocks(6, |_, random| random.below(10) < 7));
    assert!(!model.beats_best_single(), "{}", model.verdict());
    assert_eq!(model.evidence.best_single(), Source::Lbr);
}

#[test]
fn where_one_source_is_always_better_the_tree_is_a_leaf() {
    let Training { model, .. } = trained(&blocks(3, |_, _| true));
    assert_eq!(model.tree.only(), Some(Source::Lbr));
    assert!(!model.beats_best_single());
    assert_eq!(
        model.verdict(),
        "the tree trained on 3 programs is a leaf: lbr for every block, no better than lbr alone"
    );
}

/// The truth of a program changes nothing in the tree that is tested on it, and something in the others.
#[test]
fn the_tree_tested_on_a_program_never_saw_it() {
    let original = blocks(4, by_length);
    let mut changed = original.clone();
    for block in changed.iter_mut().filter(|block| block.program == "program 2") {
        std::mem::swap(&mut block.features.ebs_count, &mut block.features.lbr_count);
        block.features.instructions = 41 - block.features.instructions;
        block.executions *= 1000.0;
    }
    let (one, other) = (trained(&original), trained(&changed));
    let differs: Vec<bool> = one.tested.iter().zip(&other.tested).map(|(a, b)| a != b).collect();
    assert_eq!(differs, [true, true, false, true]);
    assert_ne!(one.model.evidence.leave_one_out[2], other.model.evidence.leave_one_out[2]);
}

#[test]
fn the_same_blocks_give_the_same_bytes() {
    let noisy = |block: &Features, random: &mut Random| (block.instructions <= 18) != (random.below(5) == 0);
    let blocks = blocks(4, noisy);
    let search = Search { leaves: vec![1, 2, 4, 8], depths: vec![2, 4], ..Search::default() };
    let train =
        |blocks: &[LabelledBlock]| train(blocks, SourcePair::Hardware, &search, &|_, _| ()).unwrap().model.to_json();
    let first = train(&blocks);
    // Hash maps of the library start from another number every time.
    (0..3).for_each(|_| assert_eq!(train(&blocks), first));
}

#[test]
fn models_are_read_as_they_were_written() {
    let Training { model, .. } = trained(&blocks(4, by_length));
    let json = model.to_json();
    let read = Model::read(json.as_bytes()).unwrap();
    assert_eq!(read, model);
    assert_eq!(read.to_json(), json);
}

#[test]
fn ties_go_to_branch_stacks() {
    let mut tied = blocks(3, |_, _| true);
    for block in &mut tied {
        block.features = Features { instructions: 5, ebs_count: 1.0, lbr_count: 1.0, ..Features::default() };
        block.executions = 1.0;
    }
    assert_eq!(trained(&tied).model.tree.only(), Some(Source::Lbr));
    // Half and half, and no feature but their counts tells them apart.
    for (index, block) in tied.iter_mut().enumerate() {
        let off = if index % 2 == 0 { &mut block.features.ebs_count } else { &mut block.features.lbr_count };
        *off = 0.5;
    }
    let search = Search { leaves: vec![1], ..search() };
    let training = train(&tied, SourcePair::Software, &search, &|_, _| ()).unwrap();
    assert_eq!(training.model.tree.only(), Some(Source::Lbr));
}

#[test]
fn what_cannot_be_trained_is_said() {
    let check = |blocks: &[LabelledBlock], search: &Search, expected: &str| {
        let said = train(blocks, SourcePair::Software, search, &|_, _| ()).unwrap_err();
        assert_eq!(said.to_string(), expected);
    };
    check(&blocks(2, by_length), &search(), "the blocks are of 2 programs; leaving one out needs at least 3");
    let mut idle = blocks(3, by_length);
    idle.iter_mut().filter(|block| block.program == "program 1").for_each(|block| block.executions = 0.0);
    check(&idle, &search(), "no block of program 1 was executed");
    let narrow = Search { min_weight: 0.7, ..search() };
    check(&blocks(3, by_length), &narrow, "the least weight of a leaf must be between 0.001 and 0.5");
    let deep = Search { depths: vec![99], ..search() };
    check(&blocks(3, by_length), &deep, "a tree has a depth of 1 to 32");
    assert_eq!(train(&[], SourcePair::Software, &search(), &|_, _| ()), Err(TrainingError::Programs(0)));
}

#[test]
fn a_deep_tree_keeps_its_limits() {
    let noisy = |block: &Features, random: &mut Random| (block.simd == 1) != (random.below(3) == 0);
    let search = Search { leaves: vec![3], depths: vec![5], min_weight: 0.001, ..search() };
    let training = train(&blocks(4, noisy), SourcePair::Software, &search, &|_, _| ()).unwrap();
    let leaves = |tree: &Tree| tree.leaves();
    assert!(training.tested.iter().all(|tested| leaves(&tested.tree) <= 3));
}
