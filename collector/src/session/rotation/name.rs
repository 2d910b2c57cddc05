//! Names of the files of a series: `web.data` -> `web.2026-11-26T23-10-00Z.data`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

const DAY: u64 = 86_400;
const PARTIAL: &[u8] = b".partial";
const CUT: &[u8] = b".cut";

/// What is common to the names of a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    stem: Vec<u8>,
    /// With its dot; empty if there is none.
    extension: Vec<u8>,
}

/// What tells a file of a series from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Began {
    /// When it began, s since 1970.
    pub(crate) second: u64,
    /// Which of that second, from 1 on.
    pub(crate) number: u64,
}

/// What a file of a series is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It is being written, or its recorder was killed: `.web.TIME.data.partial`.
    Partial,
    /// It is whole: `web.TIME.data`.
    Whole,
    /// It ends early: `web.TIME.cut.data`.
    Cut,
}

impl Pattern {
    /// Of a path as the user gave it; `None` if it names no file.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let extension = path.extension().map(|extension| [b".", extension.as_bytes()].concat()).unwrap_or_default();
        Some(Self { stem: path.file_stem()?.as_bytes().to_vec(), extension })
    }

    /// The name of a file.
    pub(crate) fn name(&self, began: Began, state: State) -> OsString {
        let time = format!(".{began}");
        let parts: [&[u8]; 6] = match state {
            State::Partial => [b".", &self.stem, time.as_bytes(), b"", &self.extension, PARTIAL],
            State::Whole => [b"", &self.stem, time.as_bytes(), b"", &self.extension, b""],
            State::Cut => [b"", &self.stem, time.as_bytes(), CUT, &self.extension, b""],
        };
        OsString::from_vec(parts.concat())
    }

    /// What a file of that name is, if it is one of the series.
    pub(crate) fn read(&self, name: &OsStr) -> Option<(Began, State)> {
        let name = name.as_bytes();
        let (name, partial) = match name.strip_suffix(PARTIAL).and_then(|name| name.strip_prefix(b".")) {
            Some(name) => (name, true),
            None => (name, false),
        };
        let time = name.strip_prefix(self.stem.as_slice())?.strip_prefix(b".")?;
        let time = time.strip_suffix(self.extension.as_slice())?;
        let (time, cut) = time.strip_suffix(CUT).map_or((time, false), |time| (time, true));
        let began = Began::read(std::str::from_utf8(time).ok()?)?;
        let state = match (partial, cut) {
            (true, _) => State::Partial,
            (false, true) => State::Cut,
            (false, false) => State::Whole,
        };
        (self.name(began, state).as_bytes() == if partial { [b".", name, PARTIAL].concat() } else { name.to_vec() })
            .then_some((began, state))
    }
}

impl Began {
    /// The first of the second of that time; a clock from before 1970 was never set.
    pub(crate) fn at(time: SystemTime) -> Self {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self { second: since.as_secs(), number: 1 }
    }

    /// How long ago that was, at `now`.
    pub(crate) fn age(self, now: SystemTime) -> Duration {
        Duration::from_secs(Self::at(now).second.saturating_sub(self.second))
    }

    /// `2026-11-26T23-10-00Z`, or `2026-11-26T23-10-00Z-2`.
    fn read(text: &str) -> Option<Self> {
        let (time, number) = match text.split_once("Z-") {
            Some((time, number)) => (time, number.parse().ok()?),
            None => (text.strip_suffix('Z')?, 1),
        };
        let mut fields = time.split(['-', 'T']).map(|field| field.parse::<u64>().ok());
        let mut next = || fields.next().flatten();
        let (year, month, day) = (next()?, next()?, next()?);
        let (hour, minute, second) = (next()?, next()?, next()?);
        let is_time = year < 10_000 && (1..=12).contains(&month) && hour < 24 && minute < 60 && second < 60;
        let second = (is_time && (1970..).contains(&year)).then(|| {
            days_before(year, month)
                .checked_add(day.checked_sub(1)?)
                .map(|day| day * DAY + hour * 3600 + minute * 60 + second)
        })??;
        Some(Self { second, number })
    }
}

impl std::fmt::Display for Began {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (days, second) = (self.second / DAY, self.second % DAY);
        // An estimate from above, and down to the year and month that have begun.
        let mut year = 1970 + days / 365;
        while days_before(year, 1) > days {
            year -= 1;
        }
        let month = (1..=12).rev().find(|&month| days_before(year, month) <= days).unwrap_or(1);
        let day = days - days_before(year, month) + 1;
        let [hour, minute, second] = [second / 3600, second / 60 % 60, second % 60];
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}-{minute:02}-{second:02}Z")?;
        if self.number > 1 { write!(f, "-{}", self.number) } else { Ok(()) }
    }
}

/// Days from 1970 to the first of a month.
fn days_before(year: u64, month: u64) -> u64 {
    const BEFORE: [u64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let leap_days_before = |year: u64| year / 4 - year / 100 + year / 400;
    let is_leap = year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let of_years = (year - 1970) * 365 + leap_days_before(year - 1) - leap_days_before(1969);
    of_years + BEFORE[(month - 1) as usize] + u64::from(is_leap && month > 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (second, text) in [
            (0, "1970-01-01T00-00-00Z"),
            (951_782_399, "2000-02-28T23-59-59Z"),
            (951_782_400, "2000-02-29T00-00-00Z"),
            (1_709_251_200, "2024-03-01T00-00-00Z"),
            (1_795_734_600, "2026-11-26T23-10-00Z"),
            (4_107_542_399, "2100-02-28T23-59-59Z"),
            (4_107_542_400, "2100-03-01T00-00-00Z"),
        ] {
            let began = Began { second, number: 1 };
            assert_eq!(began.to_string(), text);
            assert_eq!(Began::read(text), Some(began));
        }
        for second in (0..5_000_000_000).step_by(12_345_678) {
            let began = Began { second, number: second % 3 + 1 };
            assert_eq!(Began::read(&began.to_string()), Some(began), "{began}");
        }
    }

    #[test]
    fn only_files_of_the_series_are_recognized() {
        let pattern = Pattern::of(Path::new("/var/web.data")).unwrap();
        let began = Began { second: 1_795_734_600, number: 2 };
        for (state, name) in [
            (State::Whole, "web.2026-11-26T23-10-00Z-2.data"),
            (State::Cut, "web.2026-11-26T23-10-00Z-2.cut.data"),
            (State::Partial, ".web.2026-11-26T23-10-00Z-2.data.partial"),
        ] {
            assert_eq!(pattern.name(began, state), name);
            assert_eq!(pattern.read(OsStr::new(name)), Some((began, state)));
        }
        for other in [
            "web.data",
            "web.data.old",
            "web.2026-11-26T23-10-00Z.data.old",
            "web.2026-11-26T23-10-00Z",
            "web.2026-11-26T23-10-00.data",
            "web.2026-13-26T23-10-00Z.data",
            "web.2026-11-31T23-10-00Z.data",
            "web.2026-11-99T23-10-00Z.data",
            "web.2026-11-00T23-10-00Z.data",
            "web.2026-1-26T23-10-00Z.data",
            "web.99999999999999999999-11-26T23-10-00Z.data",
            "web.2026-11-26T23-10-00Z-1.data",
            "web.2026-11-26T23-10-00Z-02.data",
            "web2.2026-11-26T23-10-00Z.data",
            "web.x.2026-11-26T23-10-00Z.data",
            ".web.2026-11-26T23-10-00Z.data",
            "web.2026-11-26T23-10-00Z.data.partial",
            ".web.2026-11-26T23-10-00Z.cut.data.partial",
        ] {
            assert_eq!(pattern.read(OsStr::new(other)), None, "{other}");
        }
        let plain = Pattern::of(Path::new("web")).unwrap();
        assert_eq!(plain.name(began, State::Whole), "web.2026-11-26T23-10-00Z-2");
        assert_eq!(plain.read(OsStr::new("web.2026-11-26T23-10-00Z-2.data")), None);
    }
}
