//! What keys do.

/// The keys, and what each does.
pub fn keys() -> Vec<(String, String)> {
    let keys = [
        ("1 to 5, Tab", "functions, blocks, code, pivot, diff (of two recordings)"),
        ("arrows, j k", "one line; PgUp, PgDn, Space: one page; g, G: the first and the last"),
        ("Enter", "the code of a function; in code, where the branch leads; in the pivot, the functions of a row"),
        ("Esc, Backsp", "back"),
        ("/", "searches; n and N go on and back. Small letters stand for capitals, too"),
        (
            "f",
            "filters: a part of a function's name (* is any text), or comparisons as `hbbp mix --filter` takes them; ; between several",
        ),
        ("s, S", "sorts by the next column; turns the order round"),
        ("r, c", "keys of rows and columns of the pivot, with commas; Tab completes them"),
        ("x", "the same function in the other recording"),
        ("i", "all that is known of the recording; in a diff, of what it compares"),
        ("q, Ctrl-C", "ends it; Ctrl-Z stops it"),
        (
            "±",
            "half the width of an interval that holds the truth in 95 % of all recordings, in per cent of all instructions",
        ),
        ("?", "after a ±: seen in too little of the recording for it to be trusted"),
        ("=", "in diff: the change may be none"),
    ];
    keys.map(|(key, what)| (key.to_owned(), what.to_owned())).to_vec()
}
