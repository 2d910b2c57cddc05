//! Functions that compilers have cut, cloned or renamed: `f.constprop.0`, `f.cold`, `f.lto_priv.1`.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::address::Svma;
use crate::code::{FunctionTable, demangle};
use crate::flow::comparison::FunctionName;

/// What a suffix says of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Suffix {
    /// It is a part or a copy of the one without the suffix.
    Part,
    /// Several functions of other files have the same name: the number tells them apart, and is another one in the next build.
    Unique,
}

/// What a name is without suffixes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stripped<'a> {
    base: &'a str,
    /// With the suffixes that tell functions of one name apart.
    identity: String,
}

fn strip_one(name: &str) -> Option<(&str, Suffix)> {
    let (before, last) = name.rsplit_once('.')?;
    let is_number = !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit());
    let (rest, kind) = if is_number { before.rsplit_once('.')? } else { (before, last) };
    let suffix = match kind {
        "cold" => Suffix::Part,
        "constprop" | "isra" | "part" if is_number => Suffix::Part,
        "lto_priv" | "llvm" if is_number => Suffix::Unique,
        _ => return None,
    };
    (!rest.is_empty()).then_some((rest, suffix))
}

fn stripped(name: &str) -> Stripped<'_> {
    let (mut base, mut kept) = (name, String::new());
    while let Some((rest, suffix)) = strip_one(base) {
        if suffix == Suffix::Unique {
            kept = base[rest.len()..].to_owned() + &kept;
        }
        base = rest;
    }
    Stripped { base, identity: format!("{base}{kept}") }
}

/// The name of a function without what compilers add to those that they cut or clone.
pub(crate) fn without_suffixes(name: &str) -> &str {
    stripped(name).base
}

/// A function of one side.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Variant {
    /// Its name without suffixes, demangled.
    base: String,
    identity: String,
    /// No other function of its file, whether it ran or not, has the name without suffixes.
    is_alone: bool,
}

/// All symbols of a file that have one name without suffixes.
#[derive(Default)]
struct Family {
    identities: BTreeSet<String>,
    /// By name.
    symbols: BTreeMap<String, BTreeSet<Svma>>,
}

impl Family {
    /// They are one function and its parts.
    fn is_one(&self) -> bool {
        self.identities.len() == 1 && self.symbols.values().all(|symbols| symbols.len() == 1)
    }
}

/// The functions that ran in files that are not the same on both sides.
#[derive(Clone, Debug, Default)]
pub(super) struct Variants {
    sides: [BTreeMap<FunctionName, Variant>; 2],
}

/// Functions that are one, under the name without suffixes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Joined {
    /// By the name without suffixes: the names of each side.
    pub names: BTreeMap<FunctionName, [Vec<String>; 2]>,
    /// Names without suffixes that may be those of several functions.
    pub ambiguous: Vec<FunctionName>,
}

impl Variants {
    /// Adds what ran of a file on one side, by symbol.
    pub fn add(&mut self, side: usize, module: &str, functions: &FunctionTable, ran: &BTreeSet<Svma>) {
        let of_ran = functions.iter().filter(|(_, function)| ran.contains(&function.symbol));
        let names: BTreeMap<Svma, String> =
            of_ran.map(|(id, function)| (function.symbol, functions.name(id).into_owned())).collect();
        let mut families: HashMap<&str, Family> =
            names.values().map(|name| (stripped(name).base, Family::default())).collect();
        for (id, function) in functions.iter() {
            let name = functions.name(id);
            let Stripped { base, identity } = stripped(&name);
            if let Some(family) = families.get_mut(base) {
                family.identities.insert(identity);
                family.symbols.entry(name.into_owned()).or_default().insert(function.symbol);
            }
        }
        for name in names.values() {
            let Stripped { base, identity } = stripped(name);
            let is_alone = families.get(base).is_none_or(Family::is_one);
            let of = FunctionName { module: module.to_owned(), function: Some(demangle(name)) };
            self.sides[side].insert(of, Variant { base: demangle(base), identity, is_alone });
        }
    }

    /// Which functions are one. Those whose names are the same on both sides are compared by them. Where a name is on one side only, all functions of
    /// the file that have it without suffixes are one, if that is sure: each side has some, and neither file has several that only a number tells
    /// apart, or several symbols of one name, even if they did not run.
    pub fn joined(&self) -> Joined {
        type Sides<'a> = [Vec<(&'a FunctionName, &'a Variant)>; 2];
        let mut families: BTreeMap<FunctionName, Sides<'_>> = BTreeMap::new();
        for (side, variants) in self.sides.iter().enumerate() {
            for (name, variant) in variants {
                let base = FunctionName { module: name.module.clone(), function: Some(variant.base.clone()) };
                families.entry(base).or_default()[side].push((name, variant));
            }
        }
        let mut joined = Joined::default();
        for (base, family) in families {
            let names = |side: usize| family[side].iter().map(|(name, _)| *name);
            if family.iter().any(Vec::is_empty) || names(0).eq(names(1)) {
                continue;
            }
            let is_one = |of: &Vec<(&FunctionName, &Variant)>| {
                let identities: BTreeSet<&str> = of.iter().map(|(_, variant)| variant.identity.as_str()).collect();
                identities.len() == 1 && of.iter().all(|(_, variant)| variant.is_alone)
            };
            if family.iter().all(is_one) {
                let names = [0, 1].map(|side| names(side).filter_map(|name| name.function.clone()).collect());
                joined.names.insert(base, names);
            } else {
                joined.ambiguous.push(base);
            }
        }
        joined
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::{TEXT, code, function};

    #[test]
    fn suffixes_of_compilers_are_taken_off() {
        for (name, base, identity) in [
            ("f", "f", "f"),
            ("f.constprop.0", "f", "f"),
            ("f.constprop.0.isra.12", "f", "f"),
            ("f.part.3.cold", "f", "f"),
            ("f.cold.1", "f", "f"),
            ("f.lto_priv.1", "f", "f.lto_priv.1"),
            ("f.lto_priv.1.constprop.0", "f", "f.lto_priv.1"),
            ("f.llvm.123", "f", "f.llvm.123"),
            ("_ZN1aE.isra.0", "_ZN1aE", "_ZN1aE"),
            // Of the program, or of something else.
            ("f.part", "f.part", "f.part"),
            ("f.12", "f.12", "f.12"),
            ("f.__uniq.5", "f.__uniq.5", "f.__uniq.5"),
            (".cold", ".cold", ".cold"),
            ("", "", ""),
        ] {
            assert_eq!(stripped(name), Stripped { base, identity: identity.into() }, "{name}");
        }
    }

    fn variants(sides: [&[(&str, bool)]; 2]) -> Joined {
        let sides = sides.map(|names| {
            let of = |(name, is_alone): &(&str, bool)| {
                let Stripped { base, identity } = stripped(name);
                let variant = Variant { base: base.into(), identity, is_alone: *is_alone };
                (FunctionName { module: "m".into(), function: Some((*name).into()) }, variant)
            };
            names.iter().map(of).collect()
        });
        Variants { sides }.joined()
    }

    #[test]
    fn only_what_is_surely_one_function_is_joined() {
        let none = |sides: [&[(&str, bool)]; 2]| assert!(variants(sides).names.is_empty(), "{sides:?}");
        let one = |sides: [&[(&str, bool)]; 2]| assert_eq!(variants(sides).names.len(), 1, "{sides:?}");
        one([&[("f.constprop.0", true)], &[("f", true)]]);
        one([&[("f.constprop.0", true), ("f", true)], &[("f", true)]]);
        one([&[("f.llvm.1", true)], &[("f.llvm.2", true)]]);
        // By their exact names; on one side only.
        none([&[("f", true), ("f.cold", true)], &[("f", true), ("f.cold", true)]]);
        none([&[("f.cold", true), ("f", true)], &[("g", true)]]);
        // Two functions that a number tells apart; two symbols of one name.
        none([&[("f.lto_priv.0", true), ("f.lto_priv.1", true)], &[("f", true)]]);
        none([&[("f.constprop.0", true)], &[("f", false)]]);
        assert_eq!(variants([&[("f.constprop.0", true)], &[("f", false)]]).ambiguous.len(), 1);
    }

    /// What is joined where both files have these functions, and on each side one of them runs.
    fn joined(functions: &[&'static str], ran: [&str; 2]) -> Joined {
        let symbols = functions.iter().enumerate().map(|(at, name)| function(name, TEXT + 16 * at as u64, 16));
        let table = FunctionTable::of(&code(&vec![0x90; 16 * functions.len()], symbols.collect()).image());
        let mut variants = Variants::default();
        for (side, name) in ran.into_iter().enumerate() {
            let (_, found) = table.iter().find(|(id, _)| table.name(*id) == name).unwrap();
            variants.add(side, "m", &table, &BTreeSet::from([found.symbol]));
        }
        variants.joined()
    }

    #[test]
    fn functions_that_did_not_run_tell_that_there_are_several() {
        let several = |functions: &[&'static str], ran: [&str; 2]| {
            let joined = joined(functions, ran);
            assert_eq!((joined.names.len(), joined.ambiguous.len()), (0, 1), "{functions:?} {ran:?}");
        };
        several(&["f.lto_priv.0", "f.lto_priv.1"], ["f.lto_priv.0", "f.lto_priv.1"]);
        several(&["f", "f.lto_priv.0"], ["f.lto_priv.0", "f"]);
        several(&["f.constprop.0", "f.cold", "f.lto_priv.0.cold"], ["f.cold", "f.constprop.0"]);
        several(&["f", "f.isra.0", "f.part.0", "f.part.0"], ["f", "f.isra.0"]);
        // Parts of one, and functions of other names.
        let one = joined(&["f", "f.cold", "f.constprop.0", "g", "g.lto_priv.0", "f.part"], ["f", "f.constprop.0"]);
        assert_eq!((one.names.len(), one.ambiguous.len()), (1, 0));
        assert_eq!(joined(&["f.llvm.1", "f.llvm.1.cold"], ["f.llvm.1", "f.llvm.1.cold"]).names.len(), 1);
    }
}
