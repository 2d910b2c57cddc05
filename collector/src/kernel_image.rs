//! Where the running kernel and its modules are.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// A stretch of kernel code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KernelMapping {
    pub(crate) start: u64,
    pub(crate) length: u64,
    /// Address of the symbol in the mapping's name, by which readers see that the kernel was moved; 0 for modules.
    pub(crate) reference: u64,
    pub(crate) name: String,
}

/// The kernel's text as `[kernel.kallsyms]_text`, as perf names it; `None` where `/proc/kallsyms` hides addresses.
pub(crate) fn kernel_text(kallsyms: &Path) -> Option<KernelMapping> {
    let (mut text, mut stext, mut etext) = (None, None, None);
    for line in BufReader::new(fs::File::open(kallsyms).ok()?).lines() {
        let line = line.ok()?;
        let mut fields = line.split_whitespace();
        let (address, _, name) = (fields.next()?, fields.next()?, fields.next()?);
        let place = match name {
            "_text" => &mut text,
            "_stext" => &mut stext,
            "_etext" => &mut etext,
            _ => continue,
        };
        *place = u64::from_str_radix(address, 16).ok().filter(|&address| address != 0);
        if text.is_some() && etext.is_some() {
            break;
        }
    }
    let (start, symbol) = text.map(|start| (start, "_text")).or(stext.map(|start| (start, "_stext")))?;
    let length = etext?.checked_sub(start)?;
    Some(KernelMapping { start, length, reference: start, name: format!("[kernel.kallsyms]{symbol}") })
}

/// The modules of `/proc/modules`, under the paths of their files where these are found, else as `[name]`.
pub(crate) fn modules(list: &str, release: &str) -> Vec<KernelMapping> {
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

/// Module name -> path, from the left sides of `modules.dep`: `kernel/fs/ext4/ext4.ko.xz: kernel/lib/crc16.ko.xz`.
fn module_paths(dependencies: &str) -> HashMap<String, String> {
    let entry = |line: &str| {
        let path = line.split_once(':')?.0;
        let file = path.rsplit('/').next()?;
        let name = file.split(".ko").next()?.replace('-', "_");
        Some((name, path.to_owned()))
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
        check_text(
            "0000 A fixed\n81000000 T _text\n81000000 T _stext\n81e01000 T _etext\n",
            Some((0x81000000, 0xe01000, "[kernel.kallsyms]_text")),
        );
        check_text("81000200 T _stext\n81e01000 T _etext\n", Some((0x81000200, 0xe00e00, "[kernel.kallsyms]_stext")));
        check_text("0 T _text\n0 T _etext\n", None);
        check_text("81000000 T _text\n", None);
        check_text("", None);
    }

    #[test]
    fn modules_with_and_without_files() {
        let list = "ext4 737280 1 - Live 0xffffffffc0400000\nhidden 4096 0 - Live 0x0000000000000000\nodd\n";
        assert_eq!(
            modules(list, "no-such-release"),
            [KernelMapping { start: 0xffffffffc0400000, length: 737280, reference: 0, name: "[ext4]".into() }]
        );
        let paths = module_paths("kernel/fs/ext4/ext4.ko.xz: kernel/lib/crc16.ko.xz\nkernel/drivers/virtio-net.ko:\n");
        assert_eq!(paths["ext4"], "kernel/fs/ext4/ext4.ko.xz");
        assert_eq!(paths["virtio_net"], "kernel/drivers/virtio-net.ko");
    }
}
