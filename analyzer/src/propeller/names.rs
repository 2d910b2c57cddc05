//! By which names the compiler and the linker know functions.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use object::LittleEndian as LE;
use object::elf::{SHN_ABS, SHN_UNDEF, SHT_SYMTAB, STB_LOCAL, STT_FUNC, STT_GNU_IFUNC};

use crate::address::Svma;
use crate::binaries::Binary;
use crate::code::{NameBytes, NamesOf, SymbolTable};

/// The symbols of the functions of an address map.
pub(super) struct Names {
    bytes: NameBytes,
    file: NamesOf,
    /// By entry, file offsets of names and their hashes: those of global symbols first.
    symbols: BTreeMap<Svma, Vec<(u32, u64)>>,
    /// Hashes of names that several functions have.
    shared: HashSet<u64>,
    /// How many bytes of names may be handed out: in honest files, symbols do not share strings.
    fuel: u64,
}

/// The names of a function.
pub(super) struct FunctionNames {
    /// All symbols at its entry. None where no symbol has a name that a line of the profile can hold.
    pub names: Vec<String>,
    /// Another function has one of the names.
    pub is_shared: bool,
}

impl Names {
    /// `is_entry` says where functions start that the compiler knows.
    pub fn of(binary: &Binary, is_entry: impl Fn(Svma) -> bool) -> Self {
        let debug_file = binary.debug_file.as_ref().map(|debug_file| &debug_file.image);
        let bytes = NameBytes::of(&binary.image, debug_file);
        let files = [(NamesOf::Image, Some(&binary.image)), (NamesOf::DebugFile, debug_file)];
        let mut tables =
            files.into_iter().filter_map(|(file, image)| Some((file, image?, SymbolTable::of(image?, SHT_SYMTAB)?)));
        let mut names = Names {
            bytes,
            file: NamesOf::Image,
            symbols: BTreeMap::new(),
            shared: HashSet::new(),
            fuel: binary.image.length(),
        };
        let Some((file, image, table)) = tables.next() else { return names };
        (names.file, names.fuel) = (file, image.length());
        let is_function = |kind| matches!(kind, STT_FUNC | STT_GNU_IFUNC);
        let mut symbols: Vec<_> = table
            .symbols()
            .iter()
            .filter(|symbol| is_function(symbol.st_type()))
            .filter(|symbol| !matches!(symbol.st_shndx.get(LE), SHN_UNDEF | SHN_ABS))
            .filter(|symbol| is_entry(Svma(symbol.st_value.get(LE))))
            .collect();
        symbols.sort_by_key(|symbol| symbol.st_bind() == STB_LOCAL);
        let mut owners: HashMap<u64, Svma> = HashMap::new();
        for symbol in symbols {
            let entry = Svma(symbol.st_value.get(LE));
            let Some(offset) = table.name_offset(symbol) else { continue };
            let hash = hash(names.bytes.bytes(file, offset, NameBytes::LONGEST));
            names.symbols.entry(entry).or_default().push((offset, hash));
            if *owners.entry(hash).or_insert(entry) != entry {
                names.shared.insert(hash);
            }
        }
        names
    }

    /// The functions with names that others have, whether they ran or not.
    pub fn shared(&self) -> SharedNames {
        let shared = |symbols: &[(u32, u64)]| -> BTreeSet<u64> {
            symbols.iter().map(|(_, hash)| *hash).filter(|hash| self.shared.contains(hash)).collect()
        };
        let functions = self.symbols.iter().map(|(entry, symbols)| (*entry, shared(symbols)));
        functions.filter(|(_, names)| !names.is_empty()).collect()
    }

    /// Those of the function that starts there.
    pub fn at(&mut self, entry: Svma) -> FunctionNames {
        let mut found = FunctionNames { names: Vec::new(), is_shared: false };
        let mut known = HashSet::new();
        for &(offset, hash) in self.symbols.get(&entry).into_iter().flatten() {
            let bytes = self.bytes.bytes(self.file, offset, NameBytes::LONGEST);
            let Some(fuel) = self.fuel.checked_sub(bytes.len() as u64) else { break };
            self.fuel = fuel;
            let Some(name) = std::str::from_utf8(bytes).ok().filter(|name| fits_a_line(name)) else { continue };
            if !known.insert(bytes) {
                continue;
            }
            found.is_shared |= self.shared.contains(&hash);
            found.names.push(name.to_owned());
        }
        found
    }
}

/// Names that several functions have, as hashes, each once: by function.
pub(super) type SharedNames = BTreeMap<Svma, BTreeSet<u64>>;

/// Whether a line of the profile can hold it as one word: clang takes `#` for a comment only at the start of a line.
pub(super) fn fits_a_line(name: &str) -> bool {
    let is_whole = (name.len() as u64) < NameBytes::LONGEST;
    is_whole && !name.is_empty() && !name.contains(|letter: char| letter.is_whitespace() || letter.is_control())
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}
