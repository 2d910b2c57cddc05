//! Files that are, and that are no, models.

use model::{
    Chooser, Decision, Error, Errors, Evidence, FEATURES, Features, LeftOut, Model, Node, Parameters, Source,
    SourcePair, Tree, Weighting,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn model() -> Value {
    let error = |blocks: f64| json!({"blocks": blocks, "kinds": 0.01});
    let errors = json!({"ebs": error(0.3), "lbr": error(0.2), "published": error(0.25), "tree": error(0.1),
        "perfect": error(0.05)});
    json!({
        "schema": "hbbp-model/1",
        "for": "software",
        "verdict": {"best_single": "lbr", "beats_best_single": true},
        "features": ["bias", "instructions"],
        "nodes": [
            {"feature": 1, "threshold": 18.0, "left": 1, "right": 2, "samples": 10, "weight": 1.0, "gini": 0.42},
            {"source": "lbr", "samples": 7, "weight": 0.75, "gini": 0.0},
            {"source": "ebs", "samples": 3, "weight": 0.25, "gini": 0.1},
        ],
        "training": {
            "blocks": 10,
            "parameters": {"weighting": "cost", "leaves": 2, "depth": 1, "min_weight": 0.01},
            "leave_one_out": [{"program": "gzip", "blocks": 10, "errors": errors}],
        },
    })
}

#[test]
fn a_model_chooses_by_its_tree() {
    let model = Model::read(model().to_string().as_bytes()).unwrap();
    let choose = |instructions| model.choose(&Features { instructions, ..Features::default() });
    assert_eq!([choose(18), choose(19)], [Source::Lbr, Source::Ebs]);
    assert!(!model.needs_code());
    assert_eq!(
        model.describe(),
        "trained model for software sources (2 leaves; block error 10.0 % against 20.0 % of lbr alone)"
    );
}

fn node(decision: Decision) -> impl Strategy<Value = Node> {
    (any::<u64>(), 0.0..=1.0, 0.0..=0.5).prop_map(move |(samples, weight, gini)| Node {
        decision,
        samples,
        weight,
        gini,
    })
}

fn source() -> impl Strategy<Value = Source> {
    prop_oneof![Just(Source::Ebs), Just(Source::Lbr)]
}

/// Trees in which the right child of each split is the next split, and the last split has two leaves.
fn tree() -> impl Strategy<Value = Tree> {
    let split = (0..FEATURES.len(), -1e9..1e9, source());
    (prop::collection::vec(split, 0..9), source()).prop_flat_map(|(splits, last)| {
        let mut nodes = Vec::new();
        for (index, (feature, threshold, leaf)) in splits.into_iter().enumerate() {
            let (left, right) = (2 * index + 1, 2 * index + 2);
            nodes.push(node(Decision::Split { feature, threshold, left, right }).boxed());
            nodes.push(node(Decision::Leaf(leaf)).boxed());
        }
        nodes.push(node(Decision::Leaf(last)).boxed());
        nodes.prop_map(|nodes| Tree::new(nodes).expect("a tree"))
    })
}

fn evidence() -> impl Strategy<Value = Evidence> {
    let error = || (0.0..9.0, 0.0..9.0).prop_map(|(blocks, kinds)| Error { blocks, kinds });
    let errors = (error(), error(), error(), error(), error())
        .prop_map(|(ebs, lbr, published, tree, perfect)| Errors { ebs, lbr, published, tree, perfect });
    let left_out =
        (".*", any::<u64>(), errors).prop_map(|(program, blocks, errors)| LeftOut { program, blocks, errors });
    let parameters = (prop::sample::select(&Weighting::ALL[..]), 0..99_usize, 0..99_usize, 0.0..1.0)
        .prop_map(|(weighting, leaves, depth, min_weight)| Parameters { weighting, leaves, depth, min_weight });
    (any::<u64>(), parameters, prop::collection::vec(left_out, 0..5))
        .prop_map(|(blocks, parameters, leave_one_out)| Evidence { blocks, parameters, leave_one_out })
}

proptest! {
    #[test]
    fn what_is_written_reads_back(pair in prop::sample::select(&SourcePair::ALL[..]), tree in tree(), evidence in evidence()) {
        let model = Model { pair, tree, evidence };
        let text = model.to_json();
        let read = Model::read(text.as_bytes()).unwrap();
        prop_assert_eq!(&read, &model);
        prop_assert_eq!(read.to_json(), text);
    }
}

#[test]
fn hostile_files_give_clear_errors() {
    let check = |pointer: &str, value: Value, expected: &str| {
        let mut changed = model();
        *changed.pointer_mut(pointer).unwrap() = value;
        let said = Model::read(changed.to_string().as_bytes()).unwrap_err().to_string();
        assert!(said.contains(expected), "{pointer}: {said}");
    };
    check("/schema", json!("hbbp-model/2"), "its schema is \"hbbp-model/2\"; this version reads \"hbbp-model/1\"");
    check("/for", json!("magic"), "unknown variant `magic`");
    check("/features/1", json!("colour"), "no feature is called \"colour\"; there are instructions, bytes, ");
    check("/nodes/0/left", json!(0), "node 0: child 0 is not one of the nodes after it, 1 to 2");
    check("/nodes/0/right", json!(1), "node 1 has 2 parents instead of one");
    check("/nodes/0/right", json!(3), "node 0: child 3 is not one of the nodes after it");
    check("/nodes/0/right", json!(-1), "invalid value: integer `-1`");
    check("/nodes/0/feature", json!(2), "node 0: feature 2 is not in the list of 2");
    check("/nodes/0/threshold", json!(null), "node 0 is neither a leaf");
    check("/nodes/1/source", json!("guess"), "unknown variant `guess`");
    check("/nodes/1/gini", json!(7), "node 1: gini is 7, which is not between 0 and 0.5");
    check("/nodes", json!([]), "the tree has no nodes");
    check("/nodes", json!(vec![json!({"source": "lbr", "samples": 1, "weight": 1, "gini": 0}); 5000]), "5000 nodes");
    check("/training/leave_one_out/0/errors/tree/blocks", json!(-1), "a number that is negative or infinite");
    check("/training/leave_one_out/0/errors/tree/blocks", json!(0.9), "is not what its leave-one-out errors say");
    check("/verdict/best_single", json!("ebs"), "its verdict (ebs is the best single source, beaten: true)");
}

#[test]
fn any_bytes_give_a_model_or_an_error() {
    let whole = model().to_string();
    for cut in 0..whole.len() {
        assert!(Model::read(&whole.as_bytes()[..cut]).is_err());
    }
    let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(Model::read(nested.as_bytes()).is_err());
    assert!(Model::read(&vec![b' '; 5 << 20]).unwrap_err().to_string().contains("a model has at most"));
}
