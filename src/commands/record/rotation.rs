//! `--rotate` and `--keep`: a recording in several files.

use std::str::FromStr;
use std::time::Duration;

use anyhow::bail;
use collector::plan::rotation::{Keep, Rotation};

/// When a file ends, and which are kept.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct RotationArgs {
    /// Go on in a new file after this time (60s, 5m, 1h, 1d), or when a file is so large (100MB, 1GB), or at what comes first of both: each
    /// file is a recording of its own, named as -o with the time at which it begins
    #[arg(long, value_name = "TIME|SIZE", value_delimiter = ',')]
    rotate: Vec<Limit>,
    /// Keep this many files of --rotate (24), as many as have this size together (2GB), or those of this age (7d), or what is left by
    /// several of these; older ones are removed [default: keep all]
    #[arg(long, value_name = "N|SIZE|AGE", value_delimiter = ',')]
    keep: Vec<Kept>,
}

/// Where a file ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    Time(Duration),
    Bytes(u64),
}

/// What is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    Files(usize),
    Bytes(u64),
    Age(Duration),
}

impl RotationArgs {
    /// What they ask for, if anything.
    pub fn rotation(&self) -> Option<Rotation> {
        if self.rotate.is_empty() && self.keep.is_empty() {
            return None;
        }
        let mut rotation = Rotation::default();
        for limit in &self.rotate {
            match *limit {
                Limit::Time(time) => rotation.every = least(rotation.every, time),
                Limit::Bytes(bytes) => rotation.bytes = least(rotation.bytes, bytes),
            }
        }
        let Keep { files, bytes, age } = &mut rotation.keep;
        for kept in &self.keep {
            match *kept {
                Kept::Files(most) => *files = least(*files, most),
                Kept::Bytes(most) => *bytes = least(*bytes, most),
                Kept::Age(most) => *age = least(*age, most),
            }
        }
        Some(rotation)
    }
}

fn least<T: Ord>(before: Option<T>, new: T) -> Option<T> {
    before.into_iter().chain([new]).min()
}

impl FromStr for Limit {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        match (time(text), bytes(text)) {
            (Some(time), _) if time >= Rotation::SHORTEST => Ok(Self::Time(time)),
            (_, Some(bytes)) if bytes >= Rotation::SMALLEST => Ok(Self::Bytes(bytes)),
            (None, None) => bail!("expected a time (60s, 5m, 1h, 1d) or a size (100MB, 1GB)"),
            _ => bail!("a file has one second at least, or 64 KB"),
        }
    }
}

impl FromStr for Kept {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        match (text.parse(), time(text), bytes(text)) {
            (Ok(0), ..) | (_, Some(Duration::ZERO), _) => bail!("it would keep no file"),
            (Ok(files), ..) => Ok(Self::Files(files)),
            (_, Some(time), _) => Ok(Self::Age(time)),
            (_, _, Some(bytes)) => Ok(Self::Bytes(bytes)),
            _ => bail!("expected a number of files (24), a size (2GB) or an age (7d, 12h)"),
        }
    }
}

/// A number and its unit.
fn parts(text: &str) -> Option<(u64, &str)> {
    let (number, unit) = text.split_at(text.find(|character: char| !character.is_ascii_digit())?);
    Some((number.parse().ok()?, unit))
}

/// A time, as `perf record --switch-output` takes it, and weeks.
fn time(text: &str) -> Option<Duration> {
    let (number, unit) = parts(text)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        _ => return None,
    };
    // More would be no time that can be waited for.
    number.checked_mul(seconds).filter(|&seconds| seconds <= u64::from(u32::MAX)).map(Duration::from_secs)
}

/// A size in powers of 1024, as `perf`, logrotate and journald take it.
fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = parts(text)?;
    let power = match unit {
        "B" => 0,
        "K" | "k" | "KB" | "kB" | "KiB" => 1,
        "M" | "MB" | "MiB" => 2,
        "G" | "GB" | "GiB" => 3,
        "T" | "TB" | "TiB" => 4,
        _ => return None,
    };
    number.checked_mul(1 << (10 * power)).filter(|&bytes| bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_times_and_sizes() {
        let seconds = |seconds| Limit::Time(Duration::from_secs(seconds));
        for (text, limit) in [
            ("60s", seconds(60)),
            ("5m", seconds(300)),
            ("1h", seconds(3600)),
            ("1d", seconds(86_400)),
            ("2w", seconds(14 * 86_400)),
            ("65536B", Limit::Bytes(65_536)),
            ("64K", Limit::Bytes(65_536)),
            ("100MB", Limit::Bytes(100 << 20)),
            ("100MiB", Limit::Bytes(100 << 20)),
            ("5M", Limit::Bytes(5 << 20)),
            ("1G", Limit::Bytes(1 << 30)),
        ] {
            assert_eq!(text.parse::<Limit>().unwrap(), limit, "{text}");
        }
        for text in [
            "",
            "60",
            "s",
            "0s",
            "63K",
            "-1s",
            "1.5h",
            "1y",
            "1MBB",
            "99999999999999999999s",
            "99999999999T",
            "4294967296s",
        ] {
            assert!(text.parse::<Limit>().is_err(), "{text}");
        }
    }

    #[test]
    fn files_are_kept_by_number_size_and_age() {
        assert_eq!("24".parse::<Kept>().unwrap(), Kept::Files(24));
        assert_eq!("2GB".parse::<Kept>().unwrap(), Kept::Bytes(2 << 30));
        assert_eq!("7d".parse::<Kept>().unwrap(), Kept::Age(Duration::from_secs(7 * 86_400)));
        assert!(["0", "", "x", "-1", "7y", "0GB", "0s"].iter().all(|text| text.parse::<Kept>().is_err()));
        let keep = ["24", "12", "2GB"].map(|text| text.parse().unwrap()).to_vec();
        let args = RotationArgs { rotate: vec!["60s".parse().unwrap(), "1MB".parse().unwrap()], keep };
        let expected = Rotation {
            every: Some(Duration::from_secs(60)),
            bytes: Some(1 << 20),
            keep: Keep { files: Some(12), bytes: Some(2 << 30), age: None },
        };
        assert_eq!(args.rotation(), Some(expected));
        assert_eq!(RotationArgs::default().rotation(), None);
    }
}
