//! Which group a user means.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use crate::errno::plain;
use crate::sys::control_group::hierarchy::{self, Hierarchy, walk};
use crate::sys::control_group::{ControlGroup, is_group};

/// How many digits of a container's id name it at least.
const DIGITS: usize = 6;
/// What has a container's id, too, and is not it.
const MONITOR: &[u8] = b"-conmon-";
/// How many names are said of those that are meant.
const MOST: usize = 5;

/// Why it is not known which control group is meant.
#[derive(Debug, thiserror::Error)]
pub enum ControlGroupError {
    /// None are mounted that perf events know.
    #[error(
        "no control groups can be seen here that perf events know: mount them (mount -t cgroup2 none /sys/fs/cgroup), or give the \
         container /sys/fs/cgroup"
    )]
    NotMounted,
    /// There is none of this name.
    #[error("there is no control group {name:?} in {}", .hierarchy.display())]
    NoSuch {
        /// What was asked for.
        name: String,
        /// Where it was looked for.
        hierarchy: PathBuf,
        /// The names that there are: paths in the hierarchy.
        existing: Vec<String>,
    },
    /// It is in a hierarchy that perf events do not know.
    #[error(
        "{} is in a hierarchy of control groups that perf events do not know: they know {}, and nothing is at the same place there",
        .folder.display(),
        .hierarchy.display()
    )]
    Elsewhere {
        /// What was asked for.
        folder: PathBuf,
        /// The one that perf events know.
        hierarchy: PathBuf,
    },
    /// Several are called so.
    #[error("{name:?} is the name of {} control groups: give the path of one, {}", .groups.len(), several(.groups))]
    Several {
        /// What was asked for.
        name: String,
        /// Their paths.
        groups: Vec<String>,
    },
    /// It cannot be looked at.
    #[error("the control group {}: {}", .folder.display(), plain(.source))]
    Unreadable {
        /// Its folder.
        folder: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

fn several(groups: &[String]) -> String {
    let more = if groups.len() > MOST { ", .." } else { "" };
    format!("{}{more}", groups[..groups.len().min(MOST)].join(" or "))
}

impl ControlGroup {
    /// The group that is meant: by its folder (`/sys/fs/cgroup/..`, or `.` and what begins with it), by its path in the hierarchy
    /// (`system.slice/nginx.service`), or by its name if no other has it: `nginx.service`, `nginx`, the id of a container or its first
    /// digits.
    ///
    /// # Errors
    /// There is none, or there are several.
    pub fn find(word: &OsStr) -> Result<Self, ControlGroupError> {
        let hierarchy = hierarchy::of_perf_events().ok_or(ControlGroupError::NotMounted)?;
        find(Path::new(word), &hierarchy, &hierarchy::all())
    }
}

fn find(word: &Path, hierarchy: &Hierarchy, all: &[Hierarchy]) -> Result<ControlGroup, ControlGroupError> {
    let group_of = |folder: PathBuf, mount: &Path| {
        let name = name(&folder, mount);
        ControlGroup::of(folder.clone(), name).map_err(|source| ControlGroupError::Unreadable { folder, source })
    };
    let group = |folder: PathBuf| group_of(folder, &hierarchy.mount);
    let inside = |path: &Path| Some(hierarchy.mount.join(relative(path)?)).filter(|folder| is_group(folder));
    if let Some(folder) = folder(word) {
        // Of another mount of the same hierarchy, or another hierarchy, where it may be at the same place.
        let mounts = all.iter().filter(|other| folder.starts_with(&other.mount));
        let Some(mount) = mounts.max_by_key(|other| other.mount.as_os_str().len()) else {
            return group(folder);
        };
        if mount.mount == hierarchy.mount || mount.is_same_as(hierarchy) {
            return group_of(folder, &mount.mount);
        }
        let place = folder.strip_prefix(&mount.mount).ok().and_then(inside);
        let elsewhere = || ControlGroupError::Elsewhere { folder, hierarchy: hierarchy.mount.clone() };
        return group(place.ok_or_else(elsewhere)?);
    }
    // As /proc/PID/cgroup says it, from outside of what is mounted here.
    let from_root = word.strip_prefix(&hierarchy.root).ok().filter(|_| hierarchy.root != Path::new("/"));
    if let Some(folder) = inside(word).or_else(|| from_root.and_then(inside)).filter(|_| is_path(word)) {
        return group(folder);
    }
    let mut folders = Vec::new();
    walk(&hierarchy.mount, |folder| folders.push(folder.to_owned()));
    folders.sort();
    let named = |how: fn(&[u8], &[u8]) -> bool| -> Vec<&PathBuf> {
        let is_it = |name: &OsStr| how(name.as_bytes(), word.as_os_str().as_bytes());
        folders.iter().skip(1).filter(|folder| folder.file_name().is_some_and(is_it)).collect()
    };
    let found = [named(is_called), named(is_unit), named(is_container), named(is_monitor)]
        .into_iter()
        .find(|found| !found.is_empty());
    let word = word.to_string_lossy().into_owned();
    match found.as_deref() {
        Some([one]) => group((*one).clone()),
        Some(several) => {
            let groups = several.iter().map(|folder| name(folder, &hierarchy.mount)).collect();
            Err(ControlGroupError::Several { name: word, groups })
        }
        None => {
            let existing = folders.iter().skip(1).map(|folder| name(folder, &hierarchy.mount)).collect();
            Err(ControlGroupError::NoSuch { name: word, hierarchy: hierarchy.mount.clone(), existing })
        }
    }
}

/// The folder of a group that a path leads to, from `/` or from the current folder; what it is called there, without links and `..`.
fn folder(word: &Path) -> Option<PathBuf> {
    let leads = matches!(word.components().next(), Some(Component::RootDir | Component::CurDir | Component::ParentDir));
    leads.then(|| word.canonicalize().ok()).flatten().filter(|folder| is_group(folder))
}

/// Whether it says where in a hierarchy: `.` does not.
fn is_path(word: &Path) -> bool {
    matches!(word.components().next(), Some(Component::RootDir | Component::Normal(_)))
}

/// A path below a folder; `None` if it would lead out of it.
fn relative(path: &Path) -> Option<PathBuf> {
    let mut below = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => below.push(name),
            Component::RootDir | Component::CurDir => {}
            Component::ParentDir | Component::Prefix(_) => return None,
        }
    }
    Some(below)
}

/// The path of a group in its hierarchy.
fn name(folder: &Path, mount: &Path) -> String {
    let below = folder.strip_prefix(mount).unwrap_or(folder);
    Path::new("/").join(below).to_string_lossy().into_owned()
}

fn is_called(name: &[u8], word: &[u8]) -> bool {
    name == word
}

/// `nginx` is `nginx.service`.
fn is_unit(name: &[u8], word: &[u8]) -> bool {
    let rest = name.strip_prefix(word);
    rest.is_some_and(|rest| [&b".service"[..], b".scope", b".slice"].contains(&rest))
}

/// `0123456789ab` is `docker-0123456789ab(..).scope`, `libpod-..`, `cri-containerd-..`, or `0123456789ab(..)`.
fn is_container(name: &[u8], word: &[u8]) -> bool {
    has_id(name, word) && !name.windows(MONITOR.len()).any(|part| part == MONITOR)
}

/// What looks after a container: `libpod-conmon-0123456789ab(..).scope`, `crio-conmon-..`.
fn is_monitor(name: &[u8], word: &[u8]) -> bool {
    has_id(name, word)
}

fn has_id(name: &[u8], word: &[u8]) -> bool {
    let is_id = word.len() >= DIGITS && word.iter().all(u8::is_ascii_hexdigit);
    let id = name.rsplit(|&byte| byte == b'-').next().unwrap_or(name);
    is_id && id.starts_with(word)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const GROUPS: [&str; 12] = [
        "",
        "system.slice",
        "system.slice/nginx.service",
        "system.slice/nginx.service/worker",
        "system.slice/dev-disk\\x2dby.mount",
        "system.slice/docker-0123456789abcdef.scope",
        "user.slice/worker",
        "user.slice/libpod-aaaaaa0123456789.scope",
        "user.slice/libpod-conmon-aaaaaa0123456789.scope",
        "user.slice/crio-conmon-bbbbbb0123456789.scope",
        "docker/feedc0ffee0123",
        "odd name: \\x2d ü",
    ];

    fn hierarchies(root: &str) -> (tempfile::TempDir, Vec<Hierarchy>) {
        let dir = tempfile::tempdir().unwrap();
        for place in GROUPS.iter().map(|name| format!("perf/{name}")).chain(["other/system.slice/cron".to_owned()]) {
            let folder = dir.path().join(place);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("cgroup.procs"), "").unwrap();
        }
        fs::create_dir_all(dir.path().join("other/system.slice/nginx.service")).unwrap();
        fs::write(dir.path().join("other/system.slice/nginx.service/cgroup.procs"), "").unwrap();
        let mount = dir.path().display();
        let all = format!(
            "1 0 0:1 {root} {mount}/perf rw - cgroup2 none rw\n2 0 0:2 / {mount}/other rw - cgroup none rw,cpu\n"
        );
        let all = hierarchy::of_text(all.as_bytes());
        (dir, all)
    }

    fn found(word: &str, root: &str) -> Result<String, String> {
        let (dir, all) = hierarchies(root);
        let word = word.replace("DIR", dir.path().to_str().unwrap());
        let found = find(Path::new(&word), &all[0], &all);
        found.map(|group| group.name).map_err(|error| error.to_string().replace(dir.path().to_str().unwrap(), "DIR"))
    }

    #[test]
    fn a_group_by_folder_path_and_name() {
        for (word, name) in [
            ("DIR/perf/system.slice", "/system.slice"),
            ("DIR/perf/system.slice/", "/system.slice"),
            ("DIR/perf", "/"),
            ("/", "/"),
            ("/system.slice/nginx.service", "/system.slice/nginx.service"),
            ("system.slice/nginx.service/", "/system.slice/nginx.service"),
            ("nginx.service", "/system.slice/nginx.service"),
            ("nginx", "/system.slice/nginx.service"),
            ("dev-disk\\x2dby.mount", "/system.slice/dev-disk\\x2dby.mount"),
            ("0123456789ab", "/system.slice/docker-0123456789abcdef.scope"),
            ("feedc0ffee01", "/docker/feedc0ffee0123"),
            ("odd name: \\x2d ü", "/odd name: \\x2d ü"),
            ("DIR/perf/user.slice/../system.slice/.", "/system.slice"),
            ("DIR/other/../perf/system.slice", "/system.slice"),
            // What looks after a container has its id, too.
            ("aaaaaa0123", "/user.slice/libpod-aaaaaa0123456789.scope"),
            ("bbbbbb0123", "/user.slice/crio-conmon-bbbbbb0123456789.scope"),
            // Of another hierarchy, at the same place.
            ("DIR/other/system.slice/nginx.service", "/system.slice/nginx.service"),
        ] {
            assert_eq!(found(word, "/").as_deref(), Ok(name), "{word}");
        }
        // In a container that sees a part of the hierarchy by its whole name.
        assert_eq!(found("/docker/ab/user.slice/worker", "/docker/ab").as_deref(), Ok("/user.slice/worker"));
    }

    #[test]
    fn groups_that_are_none_or_several() {
        for (word, error) in [
            (
                "worker",
                "\"worker\" is the name of 2 control groups: give the path of one, /system.slice/nginx.service/worker or /user.slice/worker",
            ),
            ("ngin", "there is no control group \"ngin\" in DIR/perf"),
            ("", "there is no control group \"\" in DIR/perf"),
            ("../other/system.slice", "there is no control group"),
            // The current folder is no group.
            (".", "there is no control group \".\" in DIR/perf"),
            ("./system.slice", "there is no control group"),
            ("feed", "there is no control group \"feed\""),
            (
                "DIR/perf/../other/system.slice/cron",
                "DIR/other/system.slice/cron is in a hierarchy of control groups that perf events do not know",
            ),
            ("DIR/perf/no", "there is no control group \"DIR/perf/no\""),
            (
                "DIR/other/system.slice/cron",
                "DIR/other/system.slice/cron is in a hierarchy of control groups that perf events do not know",
            ),
        ] {
            let said = found(word, "/").unwrap_err();
            assert!(said.starts_with(error), "{word}: {said}");
        }
    }
}
