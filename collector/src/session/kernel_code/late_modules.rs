//! Modules of the kernel that were loaded while it was recorded. No record of the kernel tells of them, so the list of the end is compared with the
//! mappings that the recording has.

use std::ops::Range;

use super::KernelHits;
use crate::session::kernel_image::KernelMapping;

/// Begins the names of the image's mapping, which ends where most kernels have their modules, and reaches over those of the others.
const IMAGE: &[u8] = b"[kernel.kallsyms]";

/// A mapping of the kernel that the recording has.
#[derive(Clone, Debug)]
pub(super) struct Known {
    range: Range<u64>,
    path: Vec<u8>,
}

impl Known {
    pub(super) fn new(start: u64, length: u64, path: &[u8]) -> Self {
        Self { range: start..start.saturating_add(length), path: path.to_vec() }
    }

    fn is(&self, module: &KernelMapping) -> bool {
        self.range.start == module.start && self.path == module.name.as_bytes()
    }

    fn is_module_at(&self, range: &Range<u64>) -> bool {
        self.range.start < range.end && range.start < self.range.end && !self.path.starts_with(IMAGE)
    }
}

/// Those of `modules` in which samples fell and of which no mapping is known. And a sentence on those that took the place of others: whose samples
/// are whose nobody knows, and they stay those of the others.
pub(super) fn late_modules(modules: Vec<KernelMapping>, hits: &KernelHits) -> (Vec<KernelMapping>, Option<String>) {
    let is_new =
        |module: &KernelMapping| hits.any_in(module.range()) && !hits.known.iter().any(|known| known.is(module));
    let is_in_place_of_another =
        |module: &KernelMapping| hits.known.iter().any(|known| known.is_module_at(&module.range()));
    let (replacing, new): (Vec<_>, Vec<_>) = modules.into_iter().filter(is_new).partition(is_in_place_of_another);
    let names: Vec<&str> = replacing.iter().map(|module| module.name.as_str()).collect();
    let said = (!names.is_empty()).then(|| {
        format!(
            "loaded into the kernel where another module had been, which has all samples of both: {}",
            names.join(", ")
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
        assert_eq!(new.iter().map(|module| module.name.as_str()).collect::<Vec<_>>(), ["[nf]", "[low]"]);
        assert_eq!(said, None);
    }

    #[test]
    fn a_module_in_the_place_of_another_is_said() {
        let mut hits = KernelHits::default();
        hits.map(AT, 0x1000, b"[ext4]");
        hits.see(&(AT + 0x808).to_le_bytes());
        let (new, said) = late_modules(vec![module(AT + 0x800, "[nf]")], &hits);
        assert!(new.is_empty() && said.unwrap().ends_with("both: [nf]"));
        let (new, said) = late_modules(vec![module(AT, "[nf]")], &hits);
        assert!(new.is_empty() && said.is_some());
    }
}
