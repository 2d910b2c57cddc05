//! The kernel's error numbers, as values that can be recorded and replayed.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An `errno` value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Errno(pub i32);

impl Errno {
    /// Operation not permitted.
    pub const EPERM: Self = Self(libc::EPERM);
    /// No such file, PMU or event.
    pub const ENOENT: Self = Self(libc::ENOENT);
    /// No such process.
    pub const ESRCH: Self = Self(libc::ESRCH);
    /// Permission is denied.
    pub const EACCES: Self = Self(libc::EACCES);
    /// Someone else has it.
    pub const EBUSY: Self = Self(libc::EBUSY);
    /// No such device.
    pub const ENODEV: Self = Self(libc::ENODEV);
    /// An argument is invalid.
    pub const EINVAL: Self = Self(libc::EINVAL);
    /// Too many open files.
    pub const EMFILE: Self = Self(libc::EMFILE);
    /// There is no room.
    pub(crate) const ENOSPC: Self = Self(libc::ENOSPC);
    /// No such system call.
    pub const ENOSYS: Self = Self(libc::ENOSYS);
    /// The machine cannot do this.
    pub const EOPNOTSUPP: Self = Self(libc::EOPNOTSUPP);

    /// The error the calling thread's last failed system call left.
    pub(crate) fn last() -> Self {
        Self(std::io::Error::last_os_error().raw_os_error().unwrap_or(0))
    }

    /// Whether it speaks of missing permission.
    pub fn is_permission(self) -> bool {
        matches!(self, Self::EPERM | Self::EACCES)
    }
}

impl From<rustix::io::Errno> for Errno {
    fn from(errno: rustix::io::Errno) -> Self {
        Self(errno.raw_os_error())
    }
}

impl From<std::io::Error> for Errno {
    /// One that is not the kernel's is that of an argument.
    fn from(error: std::io::Error) -> Self {
        error.raw_os_error().map_or(Self::EINVAL, Self)
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&plain(&std::io::Error::from_raw_os_error(self.0)))
    }
}

/// The message without the number that the standard library adds.
pub(crate) fn plain(error: &std::io::Error) -> String {
    let message = error.to_string();
    let number = error.raw_os_error().map(|number| format!(" (os error {number})"));
    number.and_then(|number| message.strip_suffix(&number).map(str::to_owned)).unwrap_or(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_without_numbers() {
        assert_eq!(Errno::EINVAL.to_string(), "Invalid argument");
        assert_eq!(plain(&std::io::Error::other("odd")), "odd");
    }
}
