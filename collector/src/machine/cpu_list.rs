//! Lists of CPU numbers as the kernel and `perf -C` write them: `0-3,8`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The highest CPU number taken; the kernel's `NR_CPUS` is at most 8,192 on x86.
const MAX_CPU: u32 = 65_535;

/// CPU numbers, ascending, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CpuList(Vec<u32>);

/// A list that is not `N`, `N-M` or several of these with commas between, or names a CPU above 65,535.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a list of CPUs such as 0-3,8")]
pub struct CpuListError(String);

impl CpuList {
    /// The CPUs `0..count`.
    pub fn first(count: u32) -> Self {
        Self((0..count).collect())
    }

    /// Each CPU number, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    /// How many CPUs it names.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it names none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it names `cpu`.
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.binary_search(&cpu).is_ok()
    }

    /// The CPUs that both name.
    pub fn intersection(&self, other: &Self) -> Self {
        Self(self.iter().filter(|&cpu| other.contains(cpu)).collect())
    }
}

impl FromStr for CpuList {
    type Err = CpuListError;

    fn from_str(text: &str) -> Result<Self, CpuListError> {
        let error = || CpuListError(text.to_owned());
        let mut cpus = Vec::new();
        for part in text.trim().split(',').filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let first: u32 = first.trim().parse().map_err(|_| error())?;
            let last: u32 = last.trim().parse().map_err(|_| error())?;
            if first > last || last > MAX_CPU {
                return Err(error());
            }
            cpus.extend(first..=last);
        }
        cpus.sort_unstable();
        cpus.dedup();
        Ok(Self(cpus))
    }
}

impl TryFrom<String> for CpuList {
    type Error = CpuListError;

    fn try_from(text: String) -> Result<Self, CpuListError> {
        text.parse()
    }
}

impl From<CpuList> for String {
    fn from(list: CpuList) -> String {
        list.to_string()
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for run in self.0.chunk_by(|a, b| a + 1 == *b) {
            match run {
                [one] => write!(f, "{separator}{one}")?,
                [first, .., last] => write!(f, "{separator}{first}-{last}")?,
                [] => {}
            }
            separator = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, cpus: &[u32], printed: &str) {
        let list: CpuList = text.parse().unwrap();
        assert_eq!(list.iter().collect::<Vec<_>>(), cpus, "{text}");
        assert_eq!(list.to_string(), printed, "{text}");
    }

    #[test]
    fn reads_what_the_kernel_writes() {
        check("0-3\n", &[0, 1, 2, 3], "0-3");
        check("0,2-4,9", &[0, 2, 3, 4, 9], "0,2-4,9");
        check("5,1,1-2", &[1, 2, 5], "1-2,5");
        check("\n", &[], "");
    }

    #[test]
    fn refuses_what_is_no_list() {
        for text in ["a", "3-1", "0-99999", "-1", "1-", "1;2"] {
            assert!(text.parse::<CpuList>().unwrap_err().to_string().contains(text), "{text}");
        }
    }
}
