//! What a recorder says of its recording: a line of text in a file, always [`State::SIZE`] bytes.
//!
//! ```text
//! hbbp-control/1 on  0000000003 0000000005
//! ```

/// What a recorder says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// Whether processes are recorded that have said nothing themselves since the last turn for all.
    pub on: bool,
    /// How often all processes were switched on or off.
    pub turns: u64,
    /// Messages for all processes that were read.
    pub read: u64,
}

impl State {
    /// Bytes of the line.
    pub const SIZE: usize = 41;

    /// As it is written.
    pub fn to_line(self) -> String {
        let Self { on, turns, read } = self;
        const MOST: u64 = 9_999_999_999;
        format!("hbbp-control/1 {:<3} {:010} {:010}\n", if on { "on" } else { "off" }, turns.min(MOST), read.min(MOST))
    }

    /// Reads it; `None` if this is no such line.
    pub fn of_line(line: &[u8]) -> Option<Self> {
        let mut words = str::from_utf8(line).ok()?.strip_prefix("hbbp-control/1 ")?.split_ascii_whitespace();
        let on = match words.next()? {
            "on" => true,
            "off" => false,
            _ => return None,
        };
        Some(Self { on, turns: words.next()?.parse().ok()?, read: words.next()?.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_one_size() {
        for state in [State { on: true, turns: 3, read: 5 }, State { on: false, turns: 0, read: 9_999_999_999 }] {
            let line = state.to_line();
            assert_eq!((line.len(), State::of_line(line.as_bytes())), (State::SIZE, Some(state)));
        }
        assert_eq!(State { on: true, turns: 3, read: 5 }.to_line(), "hbbp-control/1 on  0000000003 0000000005\n");
        for other in ["", "on", "hbbp-control/2 on 1 2", "hbbp-control/1 maybe 1 2", "hbbp-control/1 on x 2"] {
            assert_eq!(State::of_line(other.as_bytes()), None, "{other}");
        }
    }
}
