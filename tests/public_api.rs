//! What the packages for others offer, as listings that are kept: a change of them is seen in a review, and decides the next version by the rules of
//! semver. `INSTA_UPDATE=always cargo test --test public_api` takes a wanted change over.
//!
//! They are made of the sources as rustfmt writes them: of each item that `lib.rs` exports, the signatures and public fields, what it derives and
//! implements, and its public functions; no bodies, no comments.

use std::collections::BTreeSet;
use std::fs::{read_dir, read_to_string};
use std::path::{Path, PathBuf};

/// Sources of a folder and of those in it, in order.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    let all = entries.into_iter().flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] });
    all.filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// Names that a library exports, and those that it has itself.
fn exported(library: &str) -> BTreeSet<String> {
    let used = library.split("\npub use ").skip(1).flat_map(|rest| words(rest.split(';').next().unwrap()));
    let own = library.lines().filter_map(|line| name_of(line.strip_prefix("pub ")?));
    used.chain(own).map(str::to_owned).collect()
}

/// What an item is called, by its line without `pub`.
fn name_of(item: &str) -> Option<&str> {
    let kinds = ["fn", "struct", "enum", "trait", "union", "type", "const", "static"];
    let mut words = words(item).skip_while(|word| ["unsafe", "async", "extern", "C"].contains(word)).peekable();
    let kind = words.next().filter(|kind| kinds.contains(kind))?;
    // A constant function.
    if kind == "const" && words.peek() == Some(&"fn") {
        words.next();
    }
    words.next()
}

/// The type of a line `impl ..`.
fn implements(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("impl")?;
    let rest = match rest.strip_prefix('<') {
        // Parameters have no brackets within brackets here.
        Some(parameters) => parameters.split_once("> ")?.1,
        None => rest,
    };
    words(rest.split_once(" for ").map_or(rest, |(_, of)| of)).next()
}

/// Lines of the outermost items of a file, without comments, with the attributes before them.
fn items(text: &str) -> Vec<Vec<&str>> {
    let mut items: Vec<Vec<&str>> = Vec::new();
    let mut open: Vec<&str> = Vec::new();
    for line in text.lines().filter(|line| !line.trim_start().starts_with("//") && !line.is_empty()) {
        open.push(line);
        let is_outermost = !line.starts_with(' ');
        let is_attribute = line.starts_with("#[") || line.starts_with("#![");
        if is_outermost
            && !is_attribute
            && (line.ends_with(';') || line.starts_with(['}', ')', ']']) || line.ends_with('}'))
        {
            items.push(std::mem::take(&mut open));
        }
    }
    items
}

/// From this line to the end of its signature.
fn signature(lines: &[&str]) -> String {
    let end = lines.iter().position(|line| line.ends_with(['{', ';', '}'])).unwrap_or(lines.len() - 1);
    lines[..=end].join("\n").trim_end_matches(['\n', ' ', '{']).to_owned() + "\n"
}

/// What others see of an item with its attributes.
fn public(item: &[&str], names: &BTreeSet<String>) -> Option<String> {
    let begin = item.iter().position(|line| !line.starts_with("#["))?;
    let (attributes, item) = item.split_at(begin);
    let first = item[0];
    let kept = |line: &&&str| {
        line.starts_with("#[derive") || line.starts_with("#[non_exhaustive") || line.starts_with("#[must_use")
    };
    let mut seen: String = attributes.iter().filter(kept).map(|line| format!("{line}\n")).collect();
    if let Some(of) = implements(first) {
        let of_trait = first.contains(" for ");
        let own = (1..item.len()).filter(|&at| item[at].starts_with("    pub ") && !item[at].starts_with("    pub("));
        let own: String = own.map(|at| signature(&item[at..])).collect();
        let is_seen = names.contains(of) && (of_trait || !own.is_empty());
        return is_seen.then(|| seen + &signature(item) + if of_trait { "" } else { &own });
    }
    if ["flag_set! {", "record_types! {", "feature_bits! {"].contains(&first) {
        return Some(item.join("\n") + "\n");
    }
    let declared = first.strip_prefix("pub ")?;
    if !names.contains(name_of(declared)?) {
        return None;
    }
    match declared.split(' ').next()? {
        "struct" if first.ends_with('{') => {
            seen += &signature(item);
            let fields = item[1..].iter().filter(|line| !line.trim_start().starts_with("#[") && !line.starts_with('}'));
            let (public, private): (Vec<&str>, Vec<&str>) = fields.partition(|line| line.starts_with("    pub "));
            seen.extend(public.iter().map(|line| format!("{line}\n")));
            seen += if private.is_empty() { "" } else { "    // and private fields\n" };
        }
        "enum" | "trait" | "type" | "struct" => seen += &(item.join("\n") + "\n"),
        _ => seen += &signature(item),
    }
    Some(seen)
}

/// What a package offers.
fn listing(package: &str) -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(package).join("src");
    let names = exported(&read_to_string(source.join("lib.rs")).unwrap());
    let mut all = String::new();
    for file in sources(&source) {
        let text = read_to_string(&file).unwrap();
        let text = text.split("#[cfg(test)]\nmod tests").next().unwrap();
        all.extend(items(text).iter().filter_map(|item| public(item, &names)));
    }
    all
}

/// Every exported name is in the listing.
#[track_caller]
fn is_whole(listing: &str, package: &str) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(package).join("src/lib.rs");
    for name in exported(&read_to_string(source).unwrap()).iter().filter(|name| *name != "crate") {
        let is_module = name.chars().all(|c| c.is_lowercase() || c == '_' || c.is_ascii_digit());
        assert!(is_module || words(listing).any(|word| word == name), "{package}: {name} is not in the listing");
    }
}

#[test]
fn what_packages_offer_is_known() {
    for package in ["addresses", "perfdata", "collector/lookahead", "control"] {
        let listing = listing(package);
        is_whole(&listing, package);
        insta::assert_snapshot!(package.replace('/', "-"), listing);
    }
}
