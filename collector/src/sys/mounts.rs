//! Which devices are file systems that another process or machine serves.

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::sys::process::{contents, proc_path};

/// A device, as `/proc/PID/maps` has it.
type Device = (u32, u32);

/// How long a list of mounts is believed.
const LONGEST: Duration = Duration::from_secs(1);

/// Who has the pages of a file system, where the kernel has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Server {
    /// A process of this machine.
    Process,
    /// Another machine, or more of them.
    Machine,
}

/// Types of file systems whose pages come from other machines.
const OF_MACHINES: [&str; 19] = [
    "9p", "afs", "beegfs", "ceph", "cifs", "coda", "gfs2", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2",
    "orangefs", "prl_fs", "smb3", "smbfs", "vboxsf", "virtiofs",
];

/// What is mounted, as processes see it.
#[derive(Debug, Default)]
pub(crate) struct Mounts(RefCell<HashMap<Vec<u8>, Mounted>>);

#[derive(Debug)]
struct Mounted {
    read: Instant,
    /// `None` where the kernel serves them itself, or they were in no list.
    servers: HashMap<Device, Option<Server>>,
}

impl Mounts {
    /// Who serves a file that a process has mapped.
    pub(crate) fn server(&self, process: i32, device: Device) -> Option<Server> {
        let namespace = std::fs::read_link(proc_path(process as u32).join("ns/mnt"));
        let namespace = namespace.map(|link| link.into_os_string().into_encoded_bytes()).unwrap_or_default();
        let mut all = self.0.borrow_mut();
        let known = all.get(&namespace).filter(|mounted| mounted.read.elapsed() < LONGEST);
        if let Some(server) = known.and_then(|mounted| mounted.servers.get(&device)) {
            return *server;
        }
        let list = contents(&proc_path(process as u32).join("mountinfo"));
        let mut servers: HashMap<Device, Option<Server>> =
            list.split(|&byte| byte == b'\n').filter_map(mount).collect();
        let server = *servers.entry(device).or_default();
        all.retain(|_, mounted| mounted.read.elapsed() < LONGEST);
        all.insert(namespace, Mounted { read: Instant::now(), servers });
        server
    }
}

/// A line of `/proc/PID/mountinfo` (proc_pid_mountinfo(5)): its device, and who serves that.
/// `36 35 0:50 / /mnt rw shared:1 - fuse.sshfs host: rw`
fn mount(line: &[u8]) -> Option<(Device, Option<Server>)> {
    let mut fields = line.split(|&byte| byte == b' ').map(|field| std::str::from_utf8(field).ok());
    let (major, minor) = fields.nth(2)??.split_once(':')?;
    let kind = fields.skip_while(|field| *field != Some("-")).nth(1)??;
    let name = kind.split_once('.').map_or(kind, |(name, _)| name);
    let server = match name {
        "fuse" | "fuseblk" => Some(Server::Process),
        _ => OF_MACHINES.contains(&name).then_some(Server::Machine),
    };
    Some(((major.parse().ok()?, minor.parse().ok()?), server))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_mountinfo() {
        for (line, expected) in [
            ("36 35 0:50 / /mnt rw,relatime shared:1 - fuse.sshfs host:/x rw", Some(((0, 50), Some(Server::Process)))),
            ("36 35 0:50 / /mnt rw,relatime - nfs4 host:/x rw", Some(((0, 50), Some(Server::Machine)))),
            ("22 1 254:1 / / rw,relatime shared:1 master:2 - ext4 /dev/root rw", Some(((254, 1), None))),
            ("22 1 0:31 / / rw - overlay overlay rw,lowerdir=/a", Some(((0, 31), None))),
            ("22 1 254:1 / / rw,relatime", None),
            ("", None),
        ] {
            assert_eq!(mount(line.as_bytes()), expected, "{line}");
        }
    }

    #[test]
    fn the_kernel_serves_its_own() {
        let (mounts, own) = (Mounts::default(), std::process::id() as i32);
        assert_eq!([mounts.server(own, (0, 1)), mounts.server(own, (0, 1))], [None; 2]);
    }
}
