//! What to say of values of filters that nothing has.

use analyzer::mix::{Dimension, Taxonomies, Unmatched, bare_names};

/// How many names are proposed.
const MOST: usize = 3;
/// How alike they must be, 0 to 1.
const ALIKE: f64 = 0.7;

/// A sentence on a value that nothing has, with the names that are nearest to it.
pub fn sentence(unmatched: &Unmatched) -> String {
    let Unmatched { key, value, is_comparison, existing } = unmatched;
    if *is_comparison {
        return format!("nothing has {key}{value} (`hbbp mix --rows {key}` shows what there is)");
    }
    let nearest = nearest(value, existing);
    let mean = match nearest.as_slice() {
        [] if existing.is_empty() => String::new(),
        [] => format!(" (`hbbp mix --rows {key}` shows what there is)"),
        names => {
            let names: Vec<String> = names.iter().map(|name| format!("'{key}={name}'")).collect();
            format!(": did you mean --filter {}?", names.join(" or "))
        }
    };
    format!("nothing has the {key} {value:?}{mean}")
}

/// The key that is nearest to what somebody wrote, if one is near.
pub fn near_key(written: &str, taxonomies: &Taxonomies) -> Option<String> {
    let keys = Dimension::ALL.iter().map(|key| key.as_str());
    let names: Vec<String> =
        keys.chain(taxonomies.iter().map(|taxonomy| taxonomy.name.as_str())).map(str::to_owned).collect();
    nearest(written, &names).first().map(|name| (*name).to_owned())
}

/// The existing names that are most like a value, the nearest first.
fn nearest<'a>(value: &str, existing: &'a [String]) -> Vec<&'a str> {
    let mut names: Vec<(f64, &str)> = existing.iter().map(|name| (likeness(value, name), name.as_str())).collect();
    names.retain(|(likeness, _)| *likeness >= ALIKE);
    names
        .sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.len().cmp(&other.1.len())).then(one.1.cmp(other.1)));
    names.into_iter().take(MOST).map(|(_, name)| name).collect()
}

/// How like a name is to what somebody wrote, 0 to 1: the whole, what it is called, or the last part of that or of a path.
fn likeness(written: &str, name: &str) -> f64 {
    let written = written.trim_matches('*').to_lowercase();
    let bare = bare_names(name);
    let called = [name].into_iter().chain(bare.iter().map(String::as_str));
    let last = |name: &str| name.rsplit("::").next().and_then(|name| name.rsplit('/').next()).map(str::to_owned);
    let parts = called.flat_map(|name| [Some(name.to_owned()), last(name)]).flatten();
    // What is much longer or shorter is not alike, and there may be many long names.
    let is_near = |part: &String| part.len().abs_diff(written.len()) <= part.len().max(written.len()) / 2;
    parts
        .filter(is_near)
        .map(|part| strsim::normalized_damerau_levenshtein(&written, &part.to_lowercase()))
        .fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_proposed_and_others_are_not() {
        let names = ["matmul(int)", "la::matmul(long)", "main", "memcpy", "/usr/lib/libc.so.6"].map(str::to_owned);
        assert_eq!(nearest("matmull", &names), ["matmul(int)", "la::matmul(long)"]);
        assert_eq!(nearest("Main", &names), ["main"]);
        assert_eq!(nearest("libc.so.6", &names), ["/usr/lib/libc.so.6"]);
        assert_eq!(nearest("quicksort", &names), [""; 0]);
    }

    #[test]
    fn near_keys_are_proposed() {
        let near = |written| near_key(written, &Taxonomies::default());
        assert_eq!(near("vectorisation").as_deref(), Some("vectorization"));
        assert_eq!(near("operand_size").as_deref(), Some("operand-size"));
        assert_eq!(near("colour"), None);
    }
}
