//! What is said to a recorder, in 128 bytes:
//!
//! ```text
//!  0 u32  [`MAGIC`]            8 u64  time, ns of CLOCK_MONOTONIC        24 u32  messages that were lost before
//!  4 u8   order, u8 scope     16 u32  pid, as the sender sees it         28      name, at most 100 bytes, then zeros
//!  6 u8   length of the name  20 u32  tid
//!  7 u8   0
//! ```
//! All numbers are little-endian. 128 bytes are written to a pipe at once or not at all (pipe(7): `PIPE_BUF` is 4,096).

use std::{fmt, process};

use rustix::thread::gettid;
use rustix::time::{ClockId, clock_gettime};

/// One thing that is said to a recorder.
#[derive(Clone, PartialEq, Eq)]
pub struct Message {
    /// What is to be done.
    pub order: Order,
    /// For whom.
    pub scope: Scope,
    /// When it was said, ns of `CLOCK_MONOTONIC`, the time of all samples.
    pub time: u64,
    /// The process that says it.
    pub pid: u32,
    /// And its thread.
    pub tid: u32,
    /// Messages of this process that did not reach the recorder before.
    pub lost: u32,
    name: Vec<u8>,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Order {
    /// Record from now on.
    Start = 1,
    /// Record nothing from now on.
    Stop = 2,
    /// A phase begins.
    Mark = 3,
}

/// For whom it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Scope {
    /// The process that says it, and those that it forks from then on.
    Process = 0,
    /// Everything in the recording.
    All = 1,
}

/// `HBM1` in a dump.
const MAGIC: [u8; 4] = *b"HBM1";
const NAME: usize = 28;

impl Message {
    /// Bytes of a message.
    pub const SIZE: usize = 128;
    /// Bytes of the longest name.
    pub const MOST_NAME: usize = Self::SIZE - NAME;

    /// What this process says of itself, now.
    pub fn of_process(order: Order, name: &str) -> Self {
        let (pid, tid) = (process::id(), gettid().as_raw_nonzero().get() as u32);
        let lost = crate::take_lost();
        let cut = (0..=name.len().min(Self::MOST_NAME)).rev().find(|&at| name.is_char_boundary(at)).unwrap_or(0);
        Self { order, scope: Scope::Process, time: now(), pid, tid, lost, name: name.as_bytes()[..cut].to_vec() }
    }

    /// What is said of all processes, now.
    pub fn of_all(order: Order, name: &str) -> Self {
        Self { scope: Scope::All, ..Self::of_process(order, name) }
    }

    /// The name of the phase; bytes that are not UTF-8 are replaced.
    pub fn name(&self) -> String {
        String::from_utf8_lossy(&self.name).into_owned()
    }

    /// As it is written.
    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..7].copy_from_slice(&[self.order as u8, self.scope as u8, self.name.len() as u8]);
        bytes[8..16].copy_from_slice(&self.time.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.pid.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.tid.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.lost.to_le_bytes());
        bytes[NAME..NAME + self.name.len()].copy_from_slice(&self.name);
        bytes
    }

    /// Reads the next message of `bytes` and goes on after it. What is no message is passed over, up to where one may begin; `skipped`
    /// counts its bytes. `None`: there is no whole message left.
    pub fn read(bytes: &mut &[u8], skipped: &mut u64) -> Option<Self> {
        while let Some((first, rest)) = bytes.split_first_chunk::<{ Self::SIZE }>() {
            if let Some(message) = Self::of_bytes(first) {
                *bytes = rest;
                return Some(message);
            }
            let next = bytes[1..].windows(MAGIC.len()).position(|window| window == MAGIC);
            let skip = next.map_or(bytes.len() - MAGIC.len() + 1, |at| at + 1);
            *skipped += skip as u64;
            *bytes = &bytes[skip..];
        }
        None
    }

    fn of_bytes(bytes: &[u8; Self::SIZE]) -> Option<Self> {
        let word = |at: usize| bytes[at..].first_chunk().map(|four| u32::from_le_bytes(*four));
        let order = match bytes[4] {
            1 => Order::Start,
            2 => Order::Stop,
            3 => Order::Mark,
            _ => return None,
        };
        let scope = match bytes[5] {
            0 => Scope::Process,
            1 => Scope::All,
            _ => return None,
        };
        let name = bytes[NAME..].get(..usize::from(bytes[6]))?.to_vec();
        let time = u64::from_le_bytes(*bytes[8..].first_chunk()?);
        let (pid, tid, lost) = (word(16)?, word(20)?, word(24)?);
        bytes.starts_with(&MAGIC).then_some(Self { order, scope, time, pid, tid, lost, name })
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { order, scope, time, pid, tid, lost, .. } = self;
        write!(f, "{order:?} {:?} {scope:?} of {pid}/{tid} at {time}, {lost} lost", self.name())
    }
}

/// The time of samples and messages, ns of `CLOCK_MONOTONIC`.
pub(crate) fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(mut bytes: &[u8]) -> (Vec<Message>, u64, usize) {
        let (mut skipped, mut all) = (0, Vec::new());
        while let Some(message) = Message::read(&mut bytes, &mut skipped) {
            all.push(message);
        }
        (all, skipped, bytes.len())
    }

    #[test]
    fn messages_come_out_as_they_went_in() {
        let start = Message::of_process(Order::Start, "");
        let mark = Message::of_all(Order::Mark, &"phase é".repeat(30));
        assert!(mark.name.len() <= Message::MOST_NAME && mark.name.len() > Message::MOST_NAME - 4);
        assert!(mark.name().ends_with(|last| last != char::REPLACEMENT_CHARACTER));
        let bytes = [start.to_bytes(), mark.to_bytes()].concat();
        assert_eq!(read_all(&bytes), (vec![start, mark], 0, 0));
    }

    #[test]
    fn what_is_no_message_is_passed_over() {
        let mark = Message::of_process(Order::Mark, "solve");
        let mut wrong = mark.to_bytes();
        wrong[4] = 9;
        let bytes = [&b"noise"[..], &mark.to_bytes(), &wrong, &[7; 300], &mark.to_bytes(), b"HB"].concat();
        let (all, skipped, left) = read_all(&bytes);
        assert_eq!(all, [mark.clone(), mark.clone()]);
        assert_eq!((skipped, left), (5 + 128 + 300, 2));
        // A message of which the end is still to come stays.
        assert_eq!(read_all(&mark.to_bytes()[..100]), (vec![], 0, 100));
        let mut long_name = mark.to_bytes();
        long_name[6] = 101;
        assert_eq!(read_all(&long_name).0, []);
    }
}
