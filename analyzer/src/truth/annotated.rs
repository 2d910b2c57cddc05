//! The functions of `hbbp annotate --format json` as a list of blocks.

use std::collections::HashMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::document::{ListedBlock, ListedDocument, ListedHead, Module};

/// The document's shape and its version.
pub const SCHEMA: &str = "hbbp-annotate/1";

/// The document, as far as it is of use.
#[derive(Deserialize)]
pub(super) struct AnnotatedDocument {
    source: String,
    instructions: f64,
    head: ListedHead,
    functions: Vec<Function>,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    module: String,
    #[serde(default)]
    build_id: Option<String>,
    blocks: Vec<Block>,
}

#[derive(Deserialize)]
struct Block {
    start: u64,
    end: u64,
    count: Option<f64>,
    instructions: Vec<IgnoredAny>,
}

impl From<AnnotatedDocument> for ListedDocument {
    fn from(document: AnnotatedDocument) -> Self {
        let AnnotatedDocument { source, instructions, head, functions } = document;
        let (mut modules, mut blocks) = (Vec::new(), Vec::new());
        let mut known: HashMap<(String, Option<String>), usize> = HashMap::new();
        for Function { name, module: path, build_id, blocks: of_function } in functions {
            let module = *known.entry((path, build_id)).or_insert_with_key(|(path, build_id)| {
                modules.push(Module { path: path.clone(), build_id: build_id.clone(), read: true });
                modules.len() - 1
            });
            blocks.extend(of_function.into_iter().filter_map(|Block { start, end, count, instructions }| {
                let (function, instructions) = (Some(name.clone()), instructions.len() as u64);
                Some(ListedBlock { module, start, end, instructions, decoded: true, function, count: count? })
            }));
        }
        // Names of one address are functions, each with the same blocks.
        blocks.sort_by_key(|block| (block.module, block.start, block.end));
        blocks.dedup_by_key(|block| (block.module, block.start, block.end));
        ListedDocument { source, instructions, head, modules, blocks }
    }
}

#[cfg(test)]
mod tests {
    use crate::truth::{BlockList, DocumentError};

    #[test]
    fn annotated_functions_are_blocks() {
        let text = r#"{"schema":"hbbp-annotate/1","source":"lbr","instructions":100.5,
            "head":{"unit":"relative","degraded":["no PMU"]},"lacks":[],"functions":[
            {"name":"f","module":"/a","build_id":"abcd","blocks":[
              {"start":16,"end":20,"count":10.4,"instructions":[{"address":16,"text":"nop"},{"address":17,"text":"ret"}]},
              {"start":20,"end":24,"count":null,"instructions":[{"address":20,"text":"nop"}]}]},
            {"name":"alias","module":"/a","build_id":"abcd","blocks":[{"start":16,"end":20,"count":10.4,"instructions":[{},{}]}]},
            {"name":"g","module":"/b","blocks":[{"start":0,"end":9,"count":1.0,"instructions":[{}]}]}]}"#;
        let BlockList::Listed(listed) = BlockList::read_json(text.as_bytes()).unwrap() else { panic!("no list") };
        let blocks = |module: usize| {
            let of = &listed.modules[module];
            let blocks = of.blocks.iter().map(|block| (block.start.0, block.instructions, block.executions));
            (of.path.as_str(), blocks.collect::<Vec<_>>())
        };
        assert_eq!([blocks(0), blocks(1)], [("/a", vec![(16, 2, 10)]), ("/b", vec![(0, 1, 1)])]);
        assert_eq!(
            (listed.instructions, listed.executions, listed.weaker.as_slice()),
            (100.5, false, ["no PMU".to_owned()].as_slice())
        );
        let cut = BlockList::read_json(&text.as_bytes()[..text.len() - 2]).unwrap_err();
        assert!(matches!(cut, DocumentError::Json(_)), "{cut}");
    }
}
