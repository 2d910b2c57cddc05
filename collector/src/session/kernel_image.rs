//! Where the running kernel and its modules are.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::path::Path;

/// A range of kernel code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KernelMapping {
    pub(crate) start: u64,
    pub(crate) length: u64,
    /// Address of the symbol in the mapping's name, by which readers see that the kernel was moved; 0 for modules.
    pub(crate) reference: u64,
    pub(crate) name: String,
}

impl KernelMapping {
    /// The addresses that it has.
    pub(crate) fn range(&self) -> Range<u64> {
        self.start..self.start.saturating_add(self.length)
    }
}

/// Where modules begin on x86-64 (`MODULES_VADDR`): the kernel's image ends before.
pub(crate) const IMAGE_END: u64 = 0xffff_ffff_c000_0000;

/// The kernel's image as `[kernel.kallsyms]_text`, as perf names it; `None` where `/proc/kallsyms` hides addresses.
///
/// Its symbol `_etext` would tell where code ends, but the kernel takes 40 ms to print all symbols before it.
pub(crate) fn kernel_text(kallsyms: &Path) -> Option<KernelMapping> {
    // The kernel writes as many lines as are asked for, and the first few are enough.
    for line in BufReader::with_capacity(512, fs::File::open(kallsyms).ok()?).lines() {
        let line = line.ok()?;
        let mut fields = line.split_whitespace();
        let (address, _, name) = (fields.next()?, fields.next()?, fields.next()?);
        if matches!(name, "_text" | "_stext") {
            let start = u64::from_str_radix(address, 16).ok().filter(|&address| address != 0)?;
            let length = IMAGE_END.checked_sub(start)?;
            return Some(KernelMapping { start, length, reference: start, name: format!("[kernel.kallsyms]{name}") });
        }
    }
    None
}

/// The modules of `proc/modules` below `root`, under the paths of their files where these are found, else as `[name]`; none where the kernel hides
/// addresses.
pub(crate) fn modules(root: &Path, release: &str) -> Vec<KernelMapping> {
    listed(&fs::read_to_string(root.join("proc/modules")).unwrap_or_default(), release)
}

fn listed(list: &str, release: &str) -> Vec<KernelMapping> {
    let paths = module_paths(&fs::read_to_string(format!("/lib/modules/{release}/modules.dep")).unwrap_or_default());
    // ext4 737280 1 - Live 0xffffffffc0400000
    let module = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (name, size) = (*fields.first()?, fields.get(1)?.parse().ok()?);
        let start = u64::from_str_radix(fields.get(5)?.strip_prefix("0x")?, 16).ok().filter(|&start| start != 0)?;
        let name = match paths.get(name) {
            Some(path) => format!("/lib/modules/{release}/{path}"),
            None => format!("[{name}]"),
        };
        Some(KernelMapping { start, length: size, reference: 0, name })
    };
    list.lines().filter_map(module).collect()
}

/// The name of a module by the path of its file, or of `[ext4]`, as it is called without one.
pub(crate) fn module_name(path: &str) -> String {
    if let Some(name) = path.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return name.to_owned();
    }
    let file = path.rsplit('/').next().unwrap_or(path);
    file.split(".ko").next().unwrap_or(file).replace('-', "_")
}

/// Module name -> path, from the left sides of `modules.dep`: `kernel/fs/ext4/ext4.ko.xz: kernel/lib/crc16.ko.xz`.
fn module_paths(dependencies: &str) -> HashMap<String, String> {
    let entry = |line: &str| {
        let path = line.split_once(':')?.0;
        Some((module_name(path), path.to_owned()))
    };
    dependencies.lines().filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_text(kallsyms: &str, expected: Option<(u64, u64, &str)>) {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), kallsyms).unwrap();
        let found = kernel_text(file.path());
        assert_eq!(found.as_ref().map(|map| (map.start, map.length, map.name.as_str())), expected, "{kallsyms}");
    }

    #[test]
    fn text_from_kallsyms() {
        let text = "0000000000000000 A fixed_percpu_data\nffffffff81000000 T _text\nffffffff81000100 T other\n";
        check_text(text, Some((0xffff_ffff_8100_0000, 0x3f00_0000, "[kernel.kallsyms]_text")));
        check_text(
            "ffffffff81000000 T _stext\n",
            Some((0xffff_ffff_8100_0000, 0x3f00_0000, "[kernel.kallsyms]_stext")),
        );
        check_text("0000000000000000 T _text\n", None);
        check_text("fffffffff0000000 T _text\n", None);
        check_text("81000000 T other\n", None);
        check_text("", None);
    }

    #[test]
    fn modules_with_and_without_files() {
        let list = "ext4 737280 1 - Live 0xffffffffc0400000\nhidden 4096 0 - Live 0x0000000000000000\nodd\n";
        assert_eq!(
            listed(list, "no-such-release"),
            [KernelMapping { start: 0xffffffffc0400000, length: 737280, reference: 0, name: "[ext4]".into() }]
        );
        let paths = module_paths("kernel/fs/ext4/ext4.ko.xz: kernel/lib/crc16.ko.xz\nkernel/drivers/virtio-net.ko:\n");
        assert_eq!(paths["ext4"], "kernel/fs/ext4/ext4.ko.xz");
        assert_eq!(paths["virtio_net"], "kernel/drivers/virtio-net.ko");
    }
}
