//! What files are called.

use std::collections::{BTreeMap, BTreeSet};

/// As much of the end of each path as no other has: `loop.c`, or `a/loop.c` and `b/loop.c`. The whole path where another one ends with it.
pub(crate) fn short_names(paths: &BTreeSet<String>) -> BTreeMap<String, String> {
    // Those that have most in common are next to each other.
    let mut sorted: Vec<&String> = paths.iter().collect();
    sorted.sort_by(|one, other| parts(one).cmp(parts(other)));
    let in_common = |(one, other): (&&String, &&String)| {
        parts(one).zip(parts(other)).take_while(|(one, other)| one == other).count()
    };
    let with_next: Vec<usize> = sorted.iter().zip(sorted.iter().skip(1)).map(in_common).collect();
    let before = [0].into_iter().chain(with_next.iter().copied());
    let after = with_next.iter().copied().chain([0]);
    let most = before.zip(after).map(|(before, after)| before.max(after));
    sorted.iter().zip(most).map(|(path, common)| ((*path).clone(), end(path, common + 1).to_owned())).collect()
}

/// The parts of a path, the last one first.
fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.rsplit('/')
}

/// The last so many parts of a path; all of it where it has no more.
fn end(path: &str, parts: usize) -> &str {
    path.rmatch_indices('/').nth(parts - 1).map_or(path, |(at, _)| path.get(at + 1..).unwrap_or(path))
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
        assert_eq!(names(&["x/a/l", "y/a/l", "y/b/l"]), ["x/a/l", "y/a/l", "b/l"]);
        assert_eq!(names(&[]), Vec::<String>::new());
    }
}
