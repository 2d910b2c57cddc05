//! Whether a profile that was kept still fits: how much of it is the same as of what runs now.
//!
//! Profiles are by function and line, so that they outlive the addresses of a build. Both are LLVM's text, whichever compiler they are for.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, bail};

/// The profile that is kept, in the folder.
pub const KEPT: &str = "profile.txt";
/// The one that was just made.
pub const NEW: &str = "profile.new.txt";

/// Executions by function (with where it was inlined, and what) and line.
pub type Lines = BTreeMap<String, f64>;

/// Reads what `hbbp export --format llvm-text` wrote.
///
/// # Errors
/// It cannot be read, or is something else.
pub fn read(file: &Path) -> anyhow::Result<Lines> {
    let text = fs::read_to_string(file).with_context(|| {
        format!("there is no profile to compare with: {}; make it with `hbbp pgo`, without --check", file.display())
    })?;
    parse(&text).with_context(|| format!("{} is no profile as `hbbp pgo` keeps it", file.display()))
}

fn parse(text: &str) -> anyhow::Result<Lines> {
    let mut lines = Lines::new();
    // The function, and what is inlined in it, down to where the line is.
    let mut within: Vec<String> = Vec::new();
    for line in text.lines() {
        let depth = line.len() - line.trim_start_matches(' ').len();
        let body = &line[depth..];
        let unexpected = || format!("unexpected line {body:?}");
        if depth > within.len() || body.is_empty() {
            bail!(unexpected());
        }
        within.truncate(depth);
        if depth == 0 {
            let mut parts = body.rsplitn(3, ':');
            let numbers = [parts.next(), parts.next()].map(|part| part?.parse::<f64>().ok());
            let (true, Some(name)) = (numbers.iter().all(Option::is_some), parts.next()) else { bail!(unexpected()) };
            within.push(name.to_owned());
            continue;
        }
        let (place, rest) = body.split_once(": ").with_context(unexpected)?;
        let count = rest.split(' ').next().unwrap_or_default();
        let key = || format!("{}:{place}", within.join("@"));
        match count.parse::<f64>() {
            Ok(count) if count >= 0.0 => *lines.entry(key()).or_default() += count,
            _ => {
                let (name, total) = rest.rsplit_once(':').with_context(unexpected)?;
                total.parse::<f64>().ok().with_context(unexpected)?;
                within.push(format!("{place}:{name}"));
            }
        }
    }
    if lines.is_empty() {
        bail!("no line in it has executions");
    }
    Ok(lines)
}

/// The sum of what both have, each as a share of its own: 0 to 1.
pub fn overlap(one: &Lines, other: &Lines) -> f64 {
    let totals = [one, other].map(|lines| lines.values().sum::<f64>());
    if totals.iter().any(|total| *total <= 0.0) {
        return 0.0;
    }
    one.iter().filter_map(|(key, count)| Some((count / totals[0]).min(other.get(key)? / totals[1]))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "main:12:1\n 1: 2\n 3.2: 4 f:3 g:1\n 4: f:6\n  1: 6\nf:4:0\n 1: 4\n";

    #[test]
    fn the_same_is_all_the_same_and_half_is_half() {
        let lines = parse(TEXT).unwrap();
        assert_eq!(lines.keys().collect::<Vec<_>>(), ["f:1", "main:1", "main:3.2", "main@4:f:1"]);
        assert_eq!(overlap(&lines, &lines), 1.0);
        let other = parse(&TEXT.replace("f:4:0\n 1: 4", "g:4:0\n 1: 4")).unwrap();
        assert_eq!(overlap(&lines, &other), 0.75);
        let twice = parse(&TEXT.replace(": 2", ": 4")).unwrap();
        assert!((0.85..0.95).contains(&overlap(&lines, &twice)));
    }

    #[test]
    fn what_is_no_profile_is_refused() {
        for wrong in
            ["", "main\n", "main:1:1\n", "main:1:1\n   1: 2\n", " 1: 2\n", "main:1:1\n x\n", "main:1:1\n 1: f\n"]
        {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
