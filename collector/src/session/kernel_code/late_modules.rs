//! Modules of the kernel that were loaded while it was recorded. No record of the kernel tells of them, so the list of the end is compared with the
//! mappings that the recording has.

use std::ops::Range;

use super::KernelHits;
use crate::session::kernel_image::{KernelMapping, module_name};

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

    /// Whether it is that of a module of this name. Paths are not compared: files come and go.
    fn is(&self, module: &KernelMapping, name: &str) -> bool {
        self.range.start == module.start && self.name == name
    }

    fn overlaps(&self, range: &Range<u64>) -> bool {
        self.range.start < range.end && range.start < self.range.end
    }

    fn is_of_image(&self) -> bool {
        self.name.starts_with("[kernel.kallsyms]")
    }
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
    let is_listed =
        |known: &&Known| listed.iter().zip(&names).any(|(module, name)| known.is(module, name)) || known.is_of_image();
    let gone: Vec<&Known> = hits.known.iter().filter(|known| !is_listed(known)).collect();
    let (mut new, mut unclear) = (Vec::new(), Vec::new());
    for (module, name) in listed.iter().zip(&names) {
        if hits.known.iter().any(|known| known.is(module, name)) || !hits.any_in(module.range()) {
            continue;
        }
        if gone.iter().any(|known| known.name == *name || known.overlaps(&module.range())) {
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
