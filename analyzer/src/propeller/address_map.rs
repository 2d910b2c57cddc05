//! The basic block address map that LLVM writes beside the code (`.llvm_bb_addr_map`): which block of the compiler is where.
//!
//! ```text
//! version features           a byte each; features two since version 5; neither in sections of the old type (version 0)
//! [ranges]                   how many, if the function is in several
//!   address blocks           of each range: eight bytes, and how many blocks
//!     [id] offset [calls] size metadata [hash]        of each block; ids since version 2
//! [entries] [frequency [successors: id probability]]  what the compiler knew of a profile: passed over
//! ```
//!
//! Numbers are LEB128 where nothing else is said. Offsets count from the end of the block before, in version 0 from the function.
//! (llvm/docs/Extensions.rst; llvm/lib/Object/ELF.cpp, `decodeBBAddrMap`.)

use object::elf::SectionType;
use object::read::Bytes;

use crate::address::Svma;
use crate::code::Image;

/// The type of sections whose entries begin with a version.
const SHT_LLVM_BB_ADDR_MAP: SectionType = SectionType(0x6fff_4c0a);
/// The type that came before it: all of version 0.
const SHT_LLVM_BB_ADDR_MAP_V0: SectionType = SectionType(0x6fff_4c08);
/// The newest version that is described.
const NEWEST: u8 = 5;

const ENTRY_COUNT: u16 = 1 << 0;
const FREQUENCIES: u16 = 1 << 1;
const PROBABILITIES: u16 = 1 << 2;
const SEVERAL_RANGES: u16 = 1 << 3;
const NO_BLOCKS: u16 = 1 << 4;
const CALL_SITES: u16 = 1 << 5;
const HASHES: u16 = 1 << 6;
const AFTER_LINKING: u16 = 1 << 7;
/// Each feature with the version that brought it.
const FEATURES: [(u16, u8); 8] = [
    (ENTRY_COUNT, 2),
    (FREQUENCIES, 2),
    (PROBABILITIES, 2),
    (SEVERAL_RANGES, 2),
    (NO_BLOCKS, 2),
    (CALL_SITES, 3),
    (HASHES, 4),
    (AFTER_LINKING, 5),
];

/// A function as the compiler saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MappedFunction {
    /// Address of its first byte.
    pub entry: Svma,
    /// Its blocks, the one at the entry first. None where the compiler left them out.
    pub blocks: Vec<MappedBlock>,
}

/// A block of the compiler. It goes on after calls, and may be empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MappedBlock {
    /// The number by which the compiler knows it again.
    pub id: u32,
    /// Address of its first byte.
    pub start: Svma,
    /// The address after its last byte.
    pub end: Svma,
    /// Exceptions land there.
    pub is_landing_pad: bool,
}

/// The bit of a block's metadata that says so (`BBAddrMap::BBEntry::Metadata`, llvm/Object/ELFTypes.h).
const IS_LANDING_PAD: u32 = 1 << 2;

/// The map of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AddressMap {
    /// The functions that are in the file, as they come.
    pub functions: Vec<MappedFunction>,
    /// Some entries are older than version 2: blocks are numbered as they lie.
    pub is_old: bool,
}

/// Why there is no address map.
#[derive(Debug, thiserror::Error)]
pub enum AddressMapError {
    /// No section of that type has any bytes.
    #[error(
        "the file has no basic block address map (.llvm_bb_addr_map): build it with clang's -fbasic-block-address-map \
         (-fbasic-block-sections=labels before clang 20), and record that build"
    )]
    Missing,
    /// The section is compressed and cannot be expanded.
    #[error("{0}")]
    Compressed(String),
    /// An entry is of a version that is not known.
    #[error(
        "the basic block address map has version {version} at byte {at}: versions 0 to {NEWEST} can be read; an older compiler writes them"
    )]
    Version {
        /// The version that is stated.
        version: u8,
        /// Where in the section, in bytes.
        at: usize,
    },
    /// An entry has features that its version has not.
    #[error(
        "the basic block address map has features {features:#x} at byte {at}, which version {version} does not have"
    )]
    Features {
        /// The features that are stated.
        features: u16,
        /// The version of the entry.
        version: u8,
        /// Where in the section, in bytes.
        at: usize,
    },
    /// An entry ends before it should, or states a number that no function can have.
    #[error("the basic block address map is damaged at byte {at}: {what}")]
    Damaged {
        /// What was read there.
        what: &'static str,
        /// Where in the section, in bytes.
        at: usize,
    },
}

impl AddressMap {
    /// Reads the maps of a file, or else of its debug file: `images` are both. Functions that the linker left out are not in it.
    ///
    /// # Errors
    /// There is no map, or it cannot be read.
    pub fn of<'a>(images: impl Iterator<Item = &'a Image>) -> Result<Self, AddressMapError> {
        for image in images {
            let map = Self::of_image(image)?;
            if !map.functions.is_empty() {
                return Ok(map);
            }
        }
        Err(AddressMapError::Missing)
    }

    fn of_image(image: &Image) -> Result<Self, AddressMapError> {
        let mut map = AddressMap::default();
        // Headers of damaged files can name the same bytes over and over.
        let mut fuel = image.length();
        for (kind, is_versioned) in [(SHT_LLVM_BB_ADDR_MAP, true), (SHT_LLVM_BB_ADDR_MAP_V0, false)] {
            for section in image.sections().iter().filter(|section| section.is_of(kind)) {
                let what = "its sections are larger than the file";
                fuel = fuel.checked_sub(section.size).ok_or(AddressMapError::Damaged { what, at: 0 })?;
                let bytes = image.expanded(section).map_err(|why| AddressMapError::Compressed(why.to_string()))?;
                map.read(&bytes, is_versioned, image.address_bytes())?;
            }
        }
        Ok(map)
    }

    /// `address_bytes`: 4 or 8.
    fn read(&mut self, bytes: &[u8], is_versioned: bool, address_bytes: u8) -> Result<(), AddressMapError> {
        let mut cursor = Cursor { bytes, at: 0, address_bytes };
        while cursor.at < bytes.len() {
            let (version, features) = if is_versioned { cursor.version()? } else { (0, 0) };
            self.is_old |= version < 2;
            let function = cursor.function(version, features)?;
            // Where linkers put what they left out.
            if function.entry.0 != 0 {
                self.functions.push(function);
            }
        }
        Ok(())
    }
}

/// Where in a section something is read.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    address_bytes: u8,
}

impl Cursor<'_> {
    fn version(&mut self) -> Result<(u8, u16), AddressMapError> {
        let at = self.at;
        let [version] = self.take("a version")?;
        if version > NEWEST {
            return Err(AddressMapError::Version { version, at });
        }
        let features = match version {
            5.. => u16::from_le_bytes(self.take("features")?),
            _ => u8::from_le_bytes(self.take("features")?).into(),
        };
        let known =
            FEATURES.iter().filter(|(_, since)| *since <= version).fold(0, |known, (feature, _)| known | feature);
        let is_known = features & !known == 0;
        is_known.then_some((version, features)).ok_or(AddressMapError::Features { features, version, at })
    }

    /// The function of an entry, which is where its first range is.
    fn function(&mut self, version: u8, features: u16) -> Result<MappedFunction, AddressMapError> {
        let has = |feature: u16| features & feature != 0;
        let at = self.at;
        let ranges = if has(SEVERAL_RANGES) { self.number("a number of ranges")? } else { 1 };
        let (mut entry, mut blocks) = (None, Vec::new());
        for _ in 0..ranges {
            let base = self.address()?;
            entry.get_or_insert(Svma(base));
            let count = self.number("a number of blocks")?;
            let mut before = 0_u64;
            for index in 0..if has(NO_BLOCKS) { 0 } else { count } {
                let id = if version < 2 { index } else { self.number("the id of a block")? };
                let offset = u64::from(self.number("the offset of a block")?);
                let mut calls = 0_u64;
                for _ in 0..if has(CALL_SITES) { self.number("a number of calls")? } else { 0 } {
                    calls = calls.saturating_add(self.number("the offset of a call")?.into());
                }
                let size = calls.saturating_add(self.number("the size of a block")?.into());
                let is_landing_pad = self.number("the metadata of a block")? & IS_LANDING_PAD != 0;
                if has(HASHES) {
                    self.take::<8>("the hash of a block")?;
                }
                let start = if version == 0 { offset } else { before.saturating_add(offset) };
                before = start.saturating_add(size);
                let (start, end) = (base.saturating_add(start), base.saturating_add(before));
                blocks.push(MappedBlock { id, start: Svma(start), end: Svma(end), is_landing_pad });
            }
        }
        self.pass_profile(features, blocks.len())?;
        let entry = entry.ok_or(AddressMapError::Damaged { what: "a function without a range", at })?;
        Ok(MappedFunction { entry, blocks })
    }

    /// Passes over what the compiler knew of a profile.
    fn pass_profile(&mut self, features: u16, blocks: usize) -> Result<(), AddressMapError> {
        let has = |feature: u16| features & feature != 0;
        if has(ENTRY_COUNT) {
            self.long("an entry count")?;
        }
        for _ in 0..if has(FREQUENCIES | PROBABILITIES) { blocks } else { 0 } {
            if has(FREQUENCIES) {
                self.long("the frequency of a block")?;
            }
            if has(AFTER_LINKING) {
                self.number("the frequency of a block after linking")?;
            }
            for _ in 0..if has(PROBABILITIES) { self.long("a number of successors")? } else { 0 } {
                self.number("the id of a successor")?;
                self.number("the probability of a successor")?;
                if has(AFTER_LINKING) {
                    self.number("the frequency of a successor after linking")?;
                }
            }
        }
        Ok(())
    }

    fn address(&mut self) -> Result<u64, AddressMapError> {
        match self.address_bytes {
            4 => self.take("an address").map(|bytes| u32::from_le_bytes(bytes).into()),
            _ => self.take("an address").map(u64::from_le_bytes),
        }
    }

    fn take<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], AddressMapError> {
        let damaged = AddressMapError::Damaged { what, at: self.at };
        let &taken = self.bytes.get(self.at..).and_then(<[u8]>::first_chunk).ok_or(damaged)?;
        self.at += N;
        Ok(taken)
    }

    /// A LEB128 number of up to 64 bits.
    fn long(&mut self, what: &'static str) -> Result<u64, AddressMapError> {
        let at = self.at;
        let mut rest = Bytes(self.bytes.get(at..).unwrap_or_default());
        let number = rest.read_uleb128().map_err(|()| AddressMapError::Damaged { what, at })?;
        self.at = self.bytes.len() - rest.len();
        Ok(number)
    }

    /// One of up to 32 bits: more is in no map.
    fn number(&mut self, what: &'static str) -> Result<u32, AddressMapError> {
        let at = self.at;
        u32::try_from(self.long(what)?).map_err(|_| AddressMapError::Damaged { what, at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], is_versioned: bool) -> Result<Vec<MappedFunction>, AddressMapError> {
        let mut map = AddressMap::default();
        map.read(bytes, is_versioned, 8).map(|()| map.functions)
    }

    fn address(at: u64) -> Vec<u8> {
        at.to_le_bytes().to_vec()
    }

    fn function(entry: u64, blocks: &[(u32, u64, u64)]) -> MappedFunction {
        let block = |&(id, start, end): &(u32, u64, u64)| MappedBlock {
            id,
            start: Svma(start),
            end: Svma(end),
            is_landing_pad: false,
        };
        MappedFunction { entry: Svma(entry), blocks: blocks.iter().map(block).collect() }
    }

    #[test]
    fn offsets_count_from_the_function_in_version_0_and_from_the_block_before_since() {
        let blocks = [2, 0, 4, 8, 6, 3, 1];
        let old = [address(0x1000), blocks.to_vec()].concat();
        let expected = [function(0x1000, &[(0, 0x1000, 0x1004), (1, 0x1006, 0x1009)])];
        assert_eq!(read(&old, false).unwrap(), expected);
        assert_eq!(read(&[vec![0, 0], old].concat(), true).unwrap(), expected);
        let first = [vec![1, 0], address(0x1000), vec![2, 0, 4, 8, 2, 3, 1]].concat();
        assert_eq!(read(&first, true).unwrap(), expected);
        let second = [vec![2, 0], address(0x1000), vec![2, 0, 0, 4, 8, 7, 2, 3, 1]].concat();
        let expected = [function(0x1000, &[(0, 0x1000, 0x1004), (7, 0x1006, 0x1009)])];
        assert_eq!(read(&second, true).unwrap(), expected);
    }

    #[test]
    fn landing_pads_are_told_by_the_third_bit_of_the_metadata() {
        let blocks = [0, 8, 4, 12, 16].iter().zip(0..).flat_map(|(metadata, id)| [id, 0, 4, *metadata]);
        let map = [vec![2, 0], address(0x1000), vec![5], blocks.collect()].concat();
        let pads: Vec<bool> = read(&map, true).unwrap()[0].blocks.iter().map(|block| block.is_landing_pad).collect();
        assert_eq!(pads, [false, false, true, true, false]);
    }

    #[test]
    fn functions_can_be_in_several_ranges_and_what_linkers_left_out_is_in_none() {
        let one = [vec![2, 8, 2], address(0x1000), vec![1, 0, 0, 4, 8], address(0x2000), vec![1, 3, 0, 5, 0]].concat();
        let out = [vec![2, 0], address(0), vec![1, 0, 0, 4, 8]].concat();
        let expected = [function(0x1000, &[(0, 0x1000, 0x1004), (3, 0x2000, 0x2005)])];
        assert_eq!(read(&[out, one].concat(), true).unwrap(), expected);
    }

    #[test]
    fn all_features_are_passed_over() {
        let expected = [function(0x1000, &[(0, 0x1000, 0x1004)])];
        // Entry count 1000, frequency 133, successors 1 (50 %) and 2.
        let profile = [0xe8, 7, 0x85, 1, 2, 1, 0x80, 0x80, 0x80, 0x80, 4, 2, 0];
        let second = [&[2, 7], &address(0x1000)[..], &[1, 0, 0, 4, 8], &profile].concat();
        assert_eq!(read(&second, true).unwrap(), expected);
        // Two calls, which end at bytes 1 and 3, and one byte after them.
        let third = [&[3, 0x20], &address(0x1000)[..], &[1, 0, 0, 2, 1, 2, 1, 8]].concat();
        assert_eq!(read(&third, true).unwrap(), expected);
        let fourth = [&[4, 0x40], &address(0x1000)[..], &[1, 0, 0, 4, 8], &[0xff; 8]].concat();
        assert_eq!(read(&fourth, true).unwrap(), expected);
        let after_linking = [0xe8, 7, 0x85, 1, 9, 1, 1, 50, 9];
        let fifth = [&[5, 0x87, 0], &address(0x1000)[..], &[1, 0, 0, 4, 8], &after_linking].concat();
        assert_eq!(read(&[fifth, third].concat(), true).unwrap(), [&expected[..], &expected].concat());
        let no_blocks = [&[2, 0x10], &address(0x1000)[..], &[9]].concat();
        assert_eq!(read(&no_blocks, true).unwrap(), [function(0x1000, &[])]);
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        let told = |bytes: &[u8]| read(bytes, true).unwrap_err().to_string();
        assert!(told(&[6, 0]).contains("has version 6 at byte 0: versions 0 to 5"), "{}", told(&[6, 0]));
        assert!(told(&[2, 0x20]).contains("features 0x20 at byte 0, which version 2"), "{}", told(&[2, 0x20]));
        assert!(told(&[5, 0, 1]).contains("features 0x100"), "{}", told(&[5, 0, 1]));
        assert!(told(&[2, 8, 0]).contains("damaged at byte 2: a function without a range"), "{}", told(&[2, 8, 0]));
        let large = [vec![2, 0], address(0x1000), vec![1, 0xff, 0xff, 0xff, 0xff, 0x7f]].concat();
        assert!(told(&large).contains("damaged at byte 11: the id of a block"), "{}", told(&large));
    }

    #[test]
    fn no_end_of_the_bytes_is_read_past() {
        let profile = [0xe8, 7, 0x85, 1, 2, 1, 0x80, 0x80, 0x80, 0x80, 4, 2, 0];
        let whole = [&[2, 15, 1], &address(0x1000)[..], &[1, 0, 0, 4, 8], &profile].concat();
        assert!(read(&whole, true).is_ok());
        for end in 1..whole.len() {
            assert!(matches!(read(&whole[..end], true), Err(AddressMapError::Damaged { .. })), "{end}");
        }
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..20_000 {
            let mut bytes = whole.clone();
            let at = random.usize(..bytes.len());
            bytes[at] = random.u8(..);
            let _ = read(&bytes, true);
        }
    }
}
