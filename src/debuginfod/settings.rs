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
    /// Within this time from the request a file has to be there.
    pub longest: Option<Duration>,
    /// The largest file, in bytes.
    pub most: u64,
}

/// Bytes that a server has to send in each time-out.
pub const LEAST_BYTES: u64 = 100 << 10;

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(90);

/// The longest time that anything is waited for.
pub const A_DAY: Duration = Duration::from_secs(86_400);

impl Settings {
    /// `None` if no server is named. The words that are no address of a server are given to `refuse`.
    pub fn of_environment(refuse: impl FnMut(&str)) -> Option<Self> {
        let number = |name: &str| number(&var(name).ok()?);
        let servers = servers(&var("DEBUGINFOD_URLS").ok()?, refuse);
        (!servers.is_empty()).then(|| Settings {
            servers,
            timeout: number("DEBUGINFOD_TIMEOUT").map_or(DEFAULT_TIMEOUT, time),
            longest: number("DEBUGINFOD_MAXTIME").map(time),
            most: number("DEBUGINFOD_MAXSIZE").map_or(Image::MAX_BYTES, |most| most.min(Image::MAX_BYTES)),
        })
    }
}

/// A positive number; one that is too large for a word is the largest.
fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    let is_number = !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX)).filter(|&number| number > 0)
}

fn time(seconds: u64) -> Duration {
    Duration::from_secs(seconds).min(A_DAY)
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
    fn no_time_is_longer_than_a_day() {
        let seconds = |text| number(text).map(time).map(|time| time.as_secs());
        assert_eq!(seconds(" 90 "), Some(90));
        for long in ["86401", "18446744073709551615", "18446744073709551616"] {
            assert_eq!(seconds(long), Some(86_400), "{long}");
        }
        assert_eq!(["", "0", "-1", "+", "1.5", "soon"].map(seconds), [None; 6]);
    }

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
