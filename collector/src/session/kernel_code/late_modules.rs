//! Modules of the kernel that were loaded while it was recorded. No record of the kernel tells of them, so the list of the end is compared with the
//! mappings that the recording has.

use std::ops::Range;

use super::KernelHits;
use crate::session::kernel_image::KernelMapping;

/// A mapping of the kernel that the recording has.
#[derive(Clone, Debug)]
pub(super) struct Known {
    range: Range<u64>,
    /// The module's name; that of the image is no module's.
    name: String,
}

impl Known {
    pub(super) fn new(start: u64, length: u64, path: &[u8]) -> Self {
        let name = module_name(&String::from_utf8_lossy(path));
        Self { range: start..start.saturating_add(length), name }
    }

    fn is_of_image(&self) -> bool {
        self.name.starts_with("[kernel.kallsyms]")
    }
}

/// The name of a module by its path (`/lib/modules/6.1.0/kernel/fs/ext4/ext4.ko.xz`), or of `[ext4]`: whether its file is found may change.
fn module_name(path: &str) -> String {
    if let Some(name) = path.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return name.to_owned();
    }
    let file = path.rsplit('/').next().unwrap_or(path);
    file.split(".ko").next().unwrap_or(file).replace('-', "_")
}

/// Those of `listed` in which samples fell and of which no mapping is known. And a sentence on those of which nobody knows when they came: they are
/// where another module had been, or had been elsewhere themselves. They are not mapped.
pub(super) fn late_modules(mut listed: Vec<KernelMapping>, hits: &KernelHits) -> (Vec<KernelMapping>, Option<String>) {
    listed.sort_by_key(|module| module.start);
    // From Linux 6.4 on, lengths have the data in them, which is elsewhere.
    let next: Vec<u64> = listed.iter().skip(1).map(|module| module.start).chain([u64::MAX]).collect();
    for (module, next) in listed.iter_mut().zip(next) {
        module.length = module.length.min(next - module.start);
    }
    let names: Vec<String> = listed.iter().map(|module| module_name(&module.name)).collect();
    let is_there = |known: &Known| {
        known.is_of_image()
            || listed.iter().zip(&names).any(|(module, name)| module.start == known.range.start && *name == known.name)
    };
    let gone: Vec<&Known> = hits.known.iter().filter(|known| !is_there(known)).collect();
    let (mut new, mut unclear) = (Vec::new(), Vec::new());
    for (module, name) in listed.iter().zip(&names) {
        let range = module.range();
        let is_known = hits.known.iter().any(|known| known.range.start == module.start && known.name == *name);
        if is_known || !hits.any_in(range.clone()) {
            continue;
        }
        let overlaps = |known: &&Known| known.range.start < range.end && range.start < known.range.end;
        if gone.iter().any(|known| known.name == *name || overlaps(known)) {
            unclear.push(name.as_str());
        } else {
            new.push(module.clone());
        }
    }
    let said = (!unclear.is_empty()).then(|| {
        format!(
            "modules of the kernel were loaded where another one had been, or again: which samples are theirs is not known ({})",
            unclear.join(", ")
        )
    });
    (new, said)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: u64 = 0xffff_ffff_c040_0000;

    fn module(start: u64, name: &str) -> KernelMapping {
        KernelMapping { start, length: 0x1000, reference: 0, name: name.to_owned() }
    }

    #[test]
    fn modules_with_samples_that_no_mapping_is_known_of_are_new() {
        let mut hits = KernelHits::default();
        hits.map(0xffff_ffff_8100_0000, 0x3f00_0000, b"[kernel.kallsyms]_text");
        hits.map(AT, 0x1000, b"[ext4]");
        [AT + 8, AT + 0x1008, 0xffff_ffff_a000_0008].iter().for_each(|at| hits.see(&at.to_le_bytes()));
        let listed = [module(AT, "[ext4]"), module(AT + 0x1000, "[nf]"), module(AT + 0x2000, "[idle]")];
        // Kernels that are not moved have modules where others have their image.
        let low = module(0xffff_ffff_a000_0000, "[low]");
        let (new, said) = late_modules([&listed[..], &[low]].concat(), &hits);
        assert_eq!(new.iter().map(|module| module.name.as_str()).collect::<Vec<_>>(), ["[low]", "[nf]"]);
        assert_eq!(said, None);
    }

    #[test]
    fn a_module_in_the_place_of_another_is_said() {
        let mut hits = KernelHits::default();
        hits.map(AT, 0x1000, b"[ext4]");
        hits.see(&(AT + 0x808).to_le_bytes());
        let (new, said) = late_modules(vec![module(AT + 0x800, "[nf]")], &hits);
        assert!(new.is_empty() && said.unwrap().ends_with("not known (nf)"));
        let (new, said) = late_modules(vec![module(AT, "[nf]")], &hits);
        assert!(new.is_empty() && said.is_some());
    }

    /// The same module at two places has one file, and one mapping would be taken for the other.
    #[test]
    fn a_module_that_was_loaded_again_elsewhere_is_said() {
        let mut hits = KernelHits::default();
        hits.map(AT, 0x1000, b"[ext4]");
        hits.see(&(AT + 0x5008).to_le_bytes());
        let (new, said) = late_modules(vec![module(AT + 0x5000, "[ext4]")], &hits);
        assert!(new.is_empty() && said.unwrap().ends_with("(ext4)"));
    }

    #[test]
    fn a_module_is_the_same_without_its_file() {
        let mut hits = KernelHits::default();
        hits.map(AT, 0x1000, b"/lib/modules/6.1.0/kernel/drivers/net/virtio-net.ko.xz");
        hits.see(&(AT + 8).to_le_bytes());
        let (new, said) = late_modules(vec![module(AT, "[virtio_net]")], &hits);
        assert!(new.is_empty() && said.is_none());
    }

    /// Lengths that have the data in them reach into what is listed after it.
    #[test]
    fn modules_end_where_the_next_one_begins() {
        let mut hits = KernelHits::default();
        hits.map(AT + 0x1000, 0x1000, b"[ext4]");
        [AT + 8, AT + 0x1008].iter().for_each(|at| hits.see(&at.to_le_bytes()));
        let long = KernelMapping { length: 0x3000, ..module(AT, "[nf]") };
        let (new, said) = late_modules(vec![module(AT + 0x1000, "[ext4]"), long], &hits);
        assert_eq!((new, said), (vec![module(AT, "[nf]")], None));
    }
}
