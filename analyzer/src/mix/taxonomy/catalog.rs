//! All taxonomies that there are, and how they inherit.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use super::condition::Condition;
use super::error::{Problem, TaxonomyError};
use super::read::{Draft, DraftGroup, MOST_GROUPS};
use super::{Group, Taxonomy};

/// Comparisons of a group, with those that it inherits.
const MOST_CONDITIONS: usize = 64;

/// Those that come with the program, by file.
const BUILT_IN: [(&str, &str); 10] = [
    ("long-latency.toml", include_str!("built-in/long-latency.toml")),
    ("synchronization.toml", include_str!("built-in/synchronization.toml")),
    ("vectorization.toml", include_str!("built-in/vectorization.toml")),
    ("vector-work.toml", include_str!("built-in/vector-work.toml")),
    ("memory-traffic.toml", include_str!("built-in/memory-traffic.toml")),
    ("control-flow.toml", include_str!("built-in/control-flow.toml")),
    ("cryptography.toml", include_str!("built-in/cryptography.toml")),
    ("conversions.toml", include_str!("built-in/conversions.toml")),
    ("flops.toml", include_str!("built-in/flops.toml")),
    ("isa-packing.toml", include_str!("built-in/isa-packing.toml")),
];

type ByName = BTreeMap<String, Arc<Taxonomy>>;

/// Taxonomies by name.
#[derive(Clone, Debug, Default)]
pub struct Taxonomies {
    /// Those that come with the program, and those of files. `None` are the former alone: they are not read before one is asked for.
    all: Option<ByName>,
}

impl Taxonomies {
    /// The names of those that come with the program, separated by commas. Their files are not read.
    pub fn built_in_names() -> String {
        let mut names = BUILT_IN.map(|(file, _)| file.trim_end_matches(".toml"));
        names.sort_unstable();
        names.join(", ")
    }

    #[cfg(test)]
    pub(super) fn built_in_error() -> Option<TaxonomyError> {
        read_all(ByName::new(), &BUILT_IN).err()
    }

    /// Adds those of files, given by their names and texts. They can inherit those that there are already, and one another.
    ///
    /// # Errors
    /// A text is no taxonomy, has the name of another, or inherits what is not there, or itself.
    pub fn with(&self, files: &[(&str, &str)]) -> Result<Self, TaxonomyError> {
        if files.is_empty() {
            return Ok(self.clone());
        }
        Ok(Self { all: Some(read_all(self.by_name().clone(), files)?) })
    }

    /// The taxonomy of a name.
    pub fn get(&self, name: &str) -> Option<&Arc<Taxonomy>> {
        self.by_name().get(name)
    }

    /// All, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Taxonomy>> {
        self.by_name().values()
    }

    /// Their names, separated by commas.
    pub fn names(&self) -> String {
        names(self.by_name())
    }

    fn by_name(&self) -> &ByName {
        // A test reads them all.
        static BUILT_IN_BY_NAME: LazyLock<ByName> =
            LazyLock::new(|| read_all(ByName::new(), &BUILT_IN).unwrap_or_default());
        self.all.as_ref().unwrap_or_else(|| &BUILT_IN_BY_NAME)
    }
}

fn names(all: &ByName) -> String {
    all.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// Adds those of files to those that are known.
fn read_all(mut known: ByName, files: &[(&str, &str)]) -> Result<ByName, TaxonomyError> {
    let mut drafts: BTreeMap<String, Draft> = BTreeMap::new();
    for (file, text) in files {
        let draft = Draft::read(file, text)?;
        let name = draft.name.text.clone();
        if known.contains_key(&name) || drafts.contains_key(&name) {
            return Err(draft.error(draft.name.at, Problem::Duplicate { what: "taxonomy", name }));
        }
        drafts.insert(name, draft);
    }
    for name in drafts.keys() {
        add(&mut known, &drafts, name)?;
    }
    Ok(known)
}

/// Adds a taxonomy after all that it inherits.
fn add(all: &mut ByName, drafts: &BTreeMap<String, Draft>, name: &str) -> Result<(), TaxonomyError> {
    let mut chain: Vec<&Draft> = Vec::new();
    let mut next = drafts.get(name);
    while let Some(draft) = next.filter(|draft| !all.contains_key(&draft.name.text)) {
        if chain.iter().any(|other| other.name.text == draft.name.text) {
            let names = chain.iter().chain([&draft]).map(|draft| draft.name.text.as_str());
            let problem = Problem::Cycle("a taxonomy", names.collect::<Vec<_>>().join(" -> "));
            return Err(draft.error(draft.inherits.as_ref().map_or(0, |stated| stated.at), problem));
        }
        chain.push(draft);
        next = draft.inherits.as_ref().and_then(|stated| drafts.get(&stated.text));
    }
    for draft in chain.into_iter().rev() {
        let parent = match &draft.inherits {
            None => None,
            Some(stated) => Some(all.get(&stated.text).ok_or_else(|| {
                let known = names(all);
                draft.error(stated.at, Problem::Unknown { what: "taxonomy", name: stated.text.clone(), known })
            })?),
        };
        let taxonomy = linked(draft, parent.map(Arc::as_ref))?;
        all.insert(taxonomy.name.clone(), Arc::new(taxonomy));
    }
    Ok(())
}

/// A taxonomy with what it and its groups inherit.
fn linked(draft: &Draft, parent: Option<&Taxonomy>) -> Result<Taxonomy, TaxonomyError> {
    let inherited = parent.map_or(&[][..], |parent| &parent.groups);
    let mut groups: Vec<Group> = Vec::new();
    for group in &draft.groups {
        let condition = with_inherited(draft, group, inherited)?;
        if condition.size() > MOST_CONDITIONS {
            let problem = Problem::TooMuch { what: "conditions of a group", most: MOST_CONDITIONS };
            return Err(draft.error(group.name.at, problem));
        }
        if let Some(earlier) = groups.iter().find(|earlier| earlier.condition.covers(&condition)) {
            let problem = Problem::Unreachable { name: group.name.text.clone(), earlier: earlier.name.clone() };
            return Err(draft.error(group.name.at, problem));
        }
        groups.push(Group {
            name: group.name.text.clone(),
            description: group.description.clone(),
            inherits: group.inherits.as_ref().map(|stated| stated.text.clone()),
            condition,
        });
    }
    groups.extend(inherited.iter().cloned());
    if groups.len() > MOST_GROUPS {
        return Err(draft.error(0, Problem::TooMuch { what: "groups of a taxonomy", most: MOST_GROUPS }));
    }
    let other = draft.other.as_ref().map(|stated| stated.text.clone());
    Ok(Taxonomy {
        name: draft.name.text.clone(),
        description: draft.description.clone(),
        inherits: draft.inherits.as_ref().map(|stated| stated.text.clone()),
        groups,
        other: other.or(parent.map(|parent| parent.other.clone())).unwrap_or_else(|| "other".to_owned()),
    })
}

/// The conditions of a group, after those of the groups that it inherits.
fn with_inherited(draft: &Draft, group: &DraftGroup, inherited: &[Group]) -> Result<Condition, TaxonomyError> {
    let mut chain: Vec<&DraftGroup> = vec![group];
    let mut conditions: Vec<Condition> = Vec::new();
    let mut last = group;
    while let Some(stated) = &last.inherits {
        let Some(parent) = draft.groups.iter().find(|group| group.name.text == stated.text) else {
            let Some(parent) = inherited.iter().find(|group| group.name == stated.text) else {
                let own = draft.groups.iter().map(|group| &group.name.text);
                let known: Vec<&str> =
                    own.chain(inherited.iter().map(|group| &group.name)).map(String::as_str).collect();
                let name = stated.text.clone();
                let problem = Problem::Unknown { what: "group", name, known: known.join(", ") };
                return Err(draft.error(stated.at, problem));
            };
            conditions.push(parent.condition.clone());
            break;
        };
        if chain.iter().any(|other| other.name.text == parent.name.text) {
            let names = chain.iter().map(|group| group.name.text.as_str()).chain([parent.name.text.as_str()]);
            let problem = Problem::Cycle("a group", names.collect::<Vec<_>>().join(" -> "));
            return Err(draft.error(stated.at, problem));
        }
        chain.push(parent);
        last = parent;
    }
    conditions.extend(chain.into_iter().rev().flat_map(|group| group.conditions.iter().cloned()));
    Ok(Condition::All(conditions))
}
