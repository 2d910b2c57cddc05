//! Names like one that nothing has.

use analyzer::mix::bare_names;

/// How many names are proposed.
const MOST: usize = 3;
/// How alike they must be, 0 to 1.
const ALIKE: f64 = 0.7;

/// What to give an argument instead of a value that nothing has, or what shows those that there are.
pub fn did_you_mean(
    value: &str,
    existing: &[String],
    argument: &str,
    values: &str,
    written: impl Fn(&str) -> String,
) -> String {
    match nearest(value, existing).as_slice() {
        [] if existing.is_empty() => String::new(),
        [] => format!(" (`{values}` shows what there is)"),
        names => {
            let names: Vec<String> = names.iter().map(|name| format!("'{}'", written(name))).collect();
            format!(": did you mean {argument} {}?", names.join(" or "))
        }
    }
}

/// The existing names that are most like a value, the nearest first.
pub fn nearest<'a>(value: &str, existing: &'a [String]) -> Vec<&'a str> {
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
}
