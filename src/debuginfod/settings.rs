//! What the environment says of servers.

use std::env::var;
use std::time::Duration;

use analyzer::code::Image;

/// How servers are asked.
#[derive(Debug, PartialEq, Eq)]
pub struct Settings {
    /// The addresses of the servers, in the order in which they are asked.
    pub servers: Vec<String>,
    /// Within this time a server has to answer, and as long as it sends, to send so many bytes: [`LEAST_BYTES`].
    pub timeout: Duration,
    /// Within this time a file has to be there.
    pub longest: Option<Duration>,
    /// The largest file, in bytes.
    pub most: u64,
}

/// Bytes that a server has to send in each time-out.
pub const LEAST_BYTES: u64 = 100 << 10;

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(90);

impl Settings {
    /// `None` if no server is named. The words that are no address of a server are given to `refuse`.
    pub fn of_environment(refuse: impl FnMut(&str)) -> Option<Self> {
        let number = |name: &str| var(name).ok()?.trim().parse::<u64>().ok().filter(|&number| number > 0);
        let servers = servers(&var("DEBUGINFOD_URLS").ok()?, refuse);
        (!servers.is_empty()).then(|| Settings {
            servers,
            timeout: number("DEBUGINFOD_TIMEOUT").map_or(DEFAULT_TIMEOUT, Duration::from_secs),
            longest: number("DEBUGINFOD_MAXTIME").map(Duration::from_secs),
            most: number("DEBUGINFOD_MAXSIZE").map_or(Image::MAX_BYTES, |most| most.min(Image::MAX_BYTES)),
        })
    }
}

fn servers(words: &str, mut refuse: impl FnMut(&str)) -> Vec<String> {
    let mut servers = Vec::new();
    for word in words.split_whitespace() {
        if word.starts_with("http://") || word.starts_with("https://") {
            servers.push(word.trim_end_matches('/').to_owned());
        } else if !word.starts_with("ima:") {
            // Policies for signatures are elfutils' own.
            refuse(word);
        }
    }
    servers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_separated_by_spaces() {
        let mut refused = Vec::new();
        let found =
            servers(" http://a/  ima:ignore https://b:8002/c\tfile:///srv d ", |word| refused.push(word.to_owned()));
        assert_eq!(found, ["http://a", "https://b:8002/c"]);
        assert_eq!(refused, ["file:///srv", "d"]);
        assert_eq!(servers("", |_| unreachable!()), [""; 0]);
    }
}
