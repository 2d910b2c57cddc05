//! Reading the machine from `/proc` and `/sys`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use perfdata::Cache;

use super::{Cpu, EventOpener, Kernel, Machine, Privileges, probe};
use crate::machine::cpu_list::CpuList;
use crate::machine::pmu::Pmu;

impl Machine {
    /// Reads the files under `root` (`/`, or a tree made for a test) and tries events on `opener`.
    ///
    /// A file that is missing or not understood leaves its field at the default: nothing here can fail.
    pub fn read(root: &Path, opener: &mut dyn EventOpener) -> Self {
        let files = Files(root.to_owned());
        let cpuinfo = files.text("proc/cpuinfo");
        let online = files.cpus("sys/devices/system/cpu/online").or_else(|| processors(&cpuinfo));
        let online = online.unwrap_or_else(|| CpuList::first(1));
        let present = files.cpus("sys/devices/system/cpu/present");
        let first = online.iter().next().unwrap_or(0);
        let probes = probe::probe(opener, first);
        Self {
            caches: caches(&files, first),
            cpu: cpu(&cpuinfo),
            present: present.map_or(online.len(), |list| list.len()) as u32,
            online,
            memory_kb: memory_kb(&files.text("proc/meminfo")),
            pmus: pmus(&files),
            kernel: kernel(&files),
            privileges: privileges(&files.text("proc/self/status")),
            container: container(&files),
            probes,
        }
    }

    /// Looks whether BPF can read the kernel's code, where `/proc/kcore` cannot be. That loads a program for a moment, so only those ask who say it.
    pub fn try_kernel_memory(&mut self, opener: &mut dyn EventOpener) {
        self.kernel.kernel_text = self.kernel.kernel_text || opener.try_kernel_memory().is_ok();
    }
}

/// The tree the machine is read from.
struct Files(PathBuf);

impl Files {
    fn text(&self, path: &str) -> String {
        let bytes = fs::read(self.0.join(path)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn parsed<T: FromStr>(&self, path: &str) -> Option<T> {
        self.text(path).trim().parse().ok()
    }

    /// A list of CPUs that names at least one.
    fn cpus(&self, path: &str) -> Option<CpuList> {
        self.parsed(path).filter(|list: &CpuList| !list.is_empty())
    }

    /// Names in a directory, sorted; none if it is not there.
    fn names(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.0.join(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// A directory of small files: name -> content.
    fn map(&self, path: &str) -> BTreeMap<String, String> {
        let values = self.names(path).into_iter().map(|name| {
            let value = self.text(&format!("{path}/{name}"));
            (name, value.trim().to_owned())
        });
        values.collect()
    }
}

/// The processors of `/proc/cpuinfo`, which are those that run: where there is no `/sys`, as in a bare chroot.
fn processors(cpuinfo: &str) -> Option<CpuList> {
    let of_line =
        |line: &str| line.strip_prefix("processor")?.trim_start().strip_prefix(':').map(str::trim).map(str::to_owned);
    let numbers: Vec<String> = cpuinfo.lines().filter_map(of_line).collect();
    numbers.join(",").parse().ok().filter(|list: &CpuList| !list.is_empty())
}

/// The first processor of `/proc/cpuinfo`.
fn cpu(cpuinfo: &str) -> Cpu {
    let first = cpuinfo.split("\n\n").next().unwrap_or_default();
    let field = |name: &str| value_of(first, name, ':').unwrap_or_default();
    let flags = field("flags");
    let flag = |name: &str| flags.split_whitespace().any(|flag| flag == name);
    Cpu {
        vendor: field("vendor_id").to_owned(),
        family: field("cpu family").parse().unwrap_or(0),
        model: field("model").parse().unwrap_or(0),
        stepping: field("stepping").parse().unwrap_or(0),
        name: field("model name").to_owned(),
        hypervisor: flag("hypervisor"),
        brs: flag("brs"),
        lbr_v2: flag("amd_lbr_v2"),
    }
}

/// The caches of a CPU, in the order in which the kernel numbers them.
fn caches(files: &Files, cpu: u32) -> Vec<Cache> {
    let folder = format!("sys/devices/system/cpu/cpu{cpu}/cache");
    let cache = |name: String| {
        let text = |file: &str| files.text(&format!("{folder}/{name}/{file}")).trim().to_owned();
        let number = |file: &str| files.parsed(&format!("{folder}/{name}/{file}")).unwrap_or(0);
        let level = files.parsed(&format!("{folder}/{name}/level"))?;
        let (line_size, sets) = (number("coherency_line_size"), number("number_of_sets"));
        let ways = number("ways_of_associativity");
        Some(Cache {
            level,
            line_size,
            sets,
            ways,
            kind: text("type"),
            size: text("size"),
            cpus: text("shared_cpu_list"),
        })
    };
    files.names(&folder).into_iter().filter(|name| name.starts_with("index")).filter_map(cache).collect()
}

/// The value after `name` and `separator` on a line of its own.
fn value_of<'a>(text: &'a str, name: &str, separator: char) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(separator)?;
        (key.trim() == name).then_some(value.trim())
    })
}

fn memory_kb(meminfo: &str) -> u64 {
    let total = value_of(meminfo, "MemTotal", ':').unwrap_or_default();
    total.trim_end_matches("kB").trim().parse().unwrap_or(0)
}

fn pmus(files: &Files) -> Vec<Pmu> {
    const DEVICES: &str = "sys/bus/event_source/devices";
    let pmu = |name: String| {
        let dir = format!("{DEVICES}/{name}");
        let kind = files.parsed(&format!("{dir}/type"))?;
        // Uncore PMUs have a `cpumask` of the CPUs to open them on; core PMUs of hybrid machines list all theirs in `cpus`.
        let cpus = files.cpus(&format!("{dir}/cpus")).or_else(|| files.cpus(&format!("{dir}/cpumask")));
        let mut events = files.map(&format!("{dir}/events"));
        events.retain(|name, _| !name.ends_with(".scale") && !name.ends_with(".unit") && !name.ends_with(".snapshot"));
        let (format, caps) = (files.map(&format!("{dir}/format")), files.map(&format!("{dir}/caps")));
        Some(Pmu { name, kind, cpus, format, events, caps })
    };
    files.names(DEVICES).into_iter().filter_map(pmu).collect()
}

fn kernel(files: &Files) -> Kernel {
    let sysctl = |name: &str| files.parsed(&format!("proc/sys/kernel/{name}"));
    let uname = rustix::system::uname();
    let text = |name: &std::ffi::CStr| name.to_string_lossy().into_owned();
    Kernel {
        release: files.parsed("proc/sys/kernel/osrelease").unwrap_or_else(|| text(uname.release())),
        arch: text(uname.machine()),
        hostname: files.parsed("proc/sys/kernel/hostname").unwrap_or_else(|| text(uname.nodename())),
        perf_event_paranoid: sysctl("perf_event_paranoid"),
        kptr_restrict: sysctl("kptr_restrict"),
        max_sample_rate: files.parsed("proc/sys/kernel/perf_event_max_sample_rate"),
        mlock_kb: files.parsed("proc/sys/kernel/perf_event_mlock_kb"),
        nmi_watchdog: sysctl("nmi_watchdog").map(|on| on != 0),
        ptrace_scope: sysctl("yama/ptrace_scope"),
        kernel_symbols: shows_addresses(&files.0.join("proc/kallsyms")),
        kernel_text: is_elf(&files.0.join("proc/kcore")),
    }
}

/// Whether a file can be read, and is no other one in its place, as in containers.
fn is_elf(file: &Path) -> bool {
    use std::io::Read;
    let mut magic = [0; 4];
    fs::File::open(file).and_then(|mut file| file.read_exact(&mut magic)).is_ok() && magic == *b"\x7fELF"
}

/// Whether the first symbols have addresses; without permission all are shown as 0.
fn shows_addresses(kallsyms: &Path) -> bool {
    use std::io::{BufRead, BufReader};
    let Ok(file) = fs::File::open(kallsyms) else { return false };
    let lines = BufReader::with_capacity(512, file).lines().map_while(Result::ok).take(64);
    lines.filter_map(|line| u64::from_str_radix(line.split_whitespace().next()?, 16).ok()).any(|address| address != 0)
}

fn privileges(status: &str) -> Privileges {
    let effective = value_of(status, "CapEff", ':').and_then(|hex| u64::from_str_radix(hex, 16).ok()).unwrap_or(0);
    let has = |capability: u32| effective & (1 << capability) != 0;
    let uids = value_of(status, "Uid", ':').unwrap_or_default();
    Privileges {
        uid: uids.split_whitespace().nth(1).and_then(|uid| uid.parse().ok()).unwrap_or(u32::MAX),
        ipc_lock: has(14),
        sys_ptrace: has(19),
        sys_admin: has(21),
        perfmon: has(38),
        bpf: has(39),
    }
}

/// Signs that container runtimes leave.
fn container(files: &Files) -> Option<String> {
    if files.0.join(".dockerenv").exists() {
        return Some("docker".to_owned());
    }
    if files.0.join("run/.containerenv").exists() {
        return Some("podman".to_owned());
    }
    if files.0.join("var/run/secrets/kubernetes.io").exists() {
        return Some("kubernetes".to_owned());
    }
    let named = files.text("run/systemd/container");
    if !named.trim().is_empty() {
        return Some(named.trim().to_owned());
    }
    let groups = files.text("proc/1/cgroup");
    ["docker", "kubepods", "containerd", "lxc"].iter().find(|&&sign| groups.contains(sign)).map(|&sign| sign.to_owned())
}

#[cfg(test)]
mod tests {
    use perfdata::EventAttr;

    use super::*;
    use crate::errno::Errno;
    use crate::machine::Probe;

    /// A kernel that opens nothing but software events.
    struct SoftwareOnly;

    impl EventOpener for SoftwareOnly {
        fn try_open(&mut self, attr: &EventAttr, _: Option<u32>, all_tasks: bool) -> Result<(), Errno> {
            match (attr.kind, all_tasks) {
                (1, false) => Ok(()),
                (1, true) => Err(Errno::EACCES),
                _ => Err(Errno::ENOENT),
            }
        }

        fn try_control_group(&mut self, _: &EventAttr, _: u32) -> Result<(), Errno> {
            Err(Errno::EACCES)
        }

        fn try_trace(&mut self) -> Result<(), Errno> {
            Err(Errno::ENOSYS)
        }

        fn try_timer(&mut self) -> Result<(), Errno> {
            Err(Errno::ENOSYS)
        }

        fn try_kernel_memory(&mut self) -> Result<(), Errno> {
            Err(Errno::ENOSYS)
        }
    }

    fn write(root: &Path, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    #[test]
    fn without_sys_the_cpus_are_those_of_cpuinfo() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), &[("proc/cpuinfo", "processor\t: 0\nmodel name\t: x\n\nprocessor\t: 1\n\nprocessor\t: 5\n")]);
        assert_eq!(Machine::read(dir.path(), &mut SoftwareOnly).online.to_string(), "0-1,5");
        assert_eq!(processors("processor\t: x\n"), None);
        assert_eq!(processors(""), None);
    }

    #[test]
    fn reads_a_tree() {
        let dir = tempfile::tempdir().unwrap();
        write(
            dir.path(),
            &[
                (
                    "proc/cpuinfo",
                    "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 151\nmodel name\t: 12th Gen\nstepping\t: 2\nflags\t\t: fpu hypervisor\n\nprocessor\t: 1\nvendor_id : x\n",
                ),
                ("proc/meminfo", "MemTotal:       24685148 kB\nMemFree: 1 kB\n"),
                ("proc/self/status", "Name:\tx\nUid:\t1000\t1001\t1000\t1000\nCapEff:\t0000004000000000\n"),
                ("proc/sys/kernel/perf_event_paranoid", "2\n"),
                ("proc/sys/kernel/osrelease", "6.1.0-test\n"),
                ("proc/kallsyms", "0000000000000000 T a\n0000000000000000 T b\n"),
                ("proc/1/cgroup", "0::/kubepods/besteffort/pod1\n"),
                ("sys/devices/system/cpu/online", "0-2,4\n"),
                ("sys/devices/system/cpu/present", "0-7\n"),
                ("sys/devices/system/cpu/cpu0/cache/index0/level", "1\n"),
                ("sys/devices/system/cpu/cpu0/cache/index0/type", "Data\n"),
                ("sys/devices/system/cpu/cpu0/cache/index0/size", "48K\n"),
                ("sys/devices/system/cpu/cpu0/cache/index0/coherency_line_size", "64\n"),
                ("sys/devices/system/cpu/cpu0/cache/index0/number_of_sets", "64\n"),
                ("sys/devices/system/cpu/cpu0/cache/index0/ways_of_associativity", "12\n"),
                ("sys/devices/system/cpu/cpu0/cache/index0/shared_cpu_list", "0-1\n"),
                ("sys/devices/system/cpu/cpu0/cache/uevent", "\n"),
                ("sys/bus/event_source/devices/cpu_atom/type", "10\n"),
                ("sys/bus/event_source/devices/cpu_atom/cpus", "4-7\n"),
                ("sys/bus/event_source/devices/cpu_atom/format/umask", "config:8-15\n"),
                ("sys/bus/event_source/devices/cpu_atom/events/branch-instructions", "event=0xc4\n"),
                ("sys/bus/event_source/devices/cpu_atom/events/energy.scale", "1e-9\n"),
                ("sys/bus/event_source/devices/cpu_atom/caps/branches", "32\n"),
                ("sys/bus/event_source/devices/broken/type", "none\n"),
            ],
        );
        let machine = Machine::read(dir.path(), &mut SoftwareOnly);
        assert_eq!(machine.cpuid(), "GenuineIntel,6,151,2");
        assert!(machine.cpu.hypervisor && !machine.cpu.brs);
        assert_eq!((machine.online.to_string().as_str(), machine.present, machine.memory_kb), ("0-2,4", 8, 24_685_148));
        let cache = Cache {
            level: 1,
            line_size: 64,
            sets: 64,
            ways: 12,
            kind: "Data".into(),
            size: "48K".into(),
            cpus: "0-1".into(),
        };
        assert_eq!(machine.caches, [cache]);
        assert_eq!(machine.pmus.len(), 1);
        let atom = machine.pmu("cpu_atom").unwrap();
        assert_eq!(
            (atom.kind, atom.cap("branches"), atom.cpus.as_ref().unwrap().to_string().as_str()),
            (10, Some(32), "4-7")
        );
        assert_eq!(atom.events.keys().collect::<Vec<_>>(), ["branch-instructions"]);
        assert_eq!(machine.privileges, Privileges { uid: 1001, perfmon: true, ..Privileges::default() });
        assert!(machine.may_sample_kernel(), "CAP_PERFMON outweighs the paranoid level");
        assert_eq!(machine.kernel.release, "6.1.0-test");
        assert_eq!(machine.kernel.ptrace_scope, None);
        assert!(!machine.kernel.kernel_symbols);
        assert_eq!(machine.container.as_deref(), Some("kubepods"));
        assert_eq!(machine.probes.task_clock, Probe::Works);
        assert_eq!(machine.probes.cycles, Probe::Fails(Errno::ENOENT));
        assert_eq!(machine.probes.system_wide, Probe::Fails(Errno::EACCES));
    }

    #[test]
    fn an_empty_tree_is_a_machine_without_anything() {
        let dir = tempfile::tempdir().unwrap();
        let machine = Machine::read(dir.path(), &mut SoftwareOnly);
        assert_eq!((machine.online.len(), machine.pmus.len(), machine.cpu.family), (1, 0, 0));
        assert_eq!(machine.container, None);
    }
}
