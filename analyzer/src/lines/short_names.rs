//! What files are called.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// As much of the end of each path as no other has: `loop.c`, or `a/loop.c` and `b/loop.c`.
pub(crate) fn short_names(paths: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    let mut left: Vec<&String> = paths.iter().collect();
    let mut parts = 1;
    while !left.is_empty() {
        let mut ends: HashMap<&str, u32> = HashMap::new();
        left.iter().for_each(|path| *ends.entry(end(path, parts)).or_default() += 1);
        left.retain(|path| {
            let own = end(path, parts);
            // The whole path is its own, even where another one ends with it.
            let is_decided = ends.get(own) == Some(&1) || own.len() == path.len();
            if is_decided {
                names.insert((*path).clone(), own.to_owned());
            }
            !is_decided
        });
        parts += 1;
    }
    names
}

/// The last so many parts of a path; all of it where it has no more.
fn end(path: &str, parts: usize) -> &str {
    let slashes = path.rmatch_indices('/').map(|(at, _)| at);
    slashes.take(parts).nth(parts - 1).map_or(path, |at| path.get(at + 1..).unwrap_or(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(paths: &[&str]) -> Vec<String> {
        let short = short_names(&paths.iter().map(|path| (*path).to_owned()).collect());
        paths.iter().map(|path| short[*path].clone()).collect()
    }

    #[test]
    fn files_have_as_short_names_as_tell_them_apart() {
        assert_eq!(names(&["/src/loop.c", "/src/main.c"]), ["loop.c", "main.c"]);
        assert_eq!(names(&["/src/a/loop.c", "/src/b/loop.c", "/x.c"]), ["a/loop.c", "b/loop.c", "x.c"]);
        // One that is the end of another.
        assert_eq!(names(&["a/loop.c", "/src/a/loop.c"]), ["a/loop.c", "src/a/loop.c"]);
        assert_eq!(names(&["loop.c", "/loop.c"]), ["loop.c", "/loop.c"]);
        assert_eq!(names(&["", "/"]), ["", "/"]);
        assert_eq!(names(&[]), Vec::<String>::new());
    }
}
