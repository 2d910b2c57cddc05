//! Functions by the names and places that BOLT gives them.
//!
//! BOLT makes functions of symbols: a symbol inside the extent of another is an entry of it, and what lies after the last byte that a
//! symbol states, up to the next function, still belongs to it. Names of local symbols are made unique by a number that counts the
//! symbols of that name by address: `step/1`, `step/2`. Where there is no symbol but an unwind entry, the name is `__BOLT_FDE_FUNCat`
//! and the address; entries of the procedure linkage table are `puts@PLT`. (bolt/lib/Rewrite/RewriteInstance.cpp, `discoverFileObjects`; bolt/include/bolt/Utils/NameResolver.h.)

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use object::LittleEndian as LE;
use object::elf::{
    SHN_ABS, SHN_UNDEF, SHT_SYMTAB, STB_LOCAL, STT_FILE, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, STT_SECTION, STT_TLS,
};

use crate::address::Svma;
use crate::code::{
    FunctionId, FunctionTable, Image, NameBytes, NamesOf, Origin, Region, SymbolTable, regions, unwind_ranges,
};

/// The functions of an image as BOLT sees them.
#[derive(Clone, Debug, Default)]
pub struct BoltFunctions {
    /// The functions, sorted by start.
    functions: Vec<BoltFunction>,
    names: NameBytes,
    table: FunctionTable,
}

/// A function of BOLT's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoltFunction {
    /// Address of its first byte.
    pub start: Svma,
    /// Where the next one starts, or the section ends.
    pub end: Svma,
    /// Where its symbol or unwind entry says that it ends.
    stated_end: Svma,
    name: BoltName,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BoltName {
    /// The string at a file offset; of a local symbol, which of that name it is.
    Symbol(u32, Option<u32>),
    UnwindEntry,
    Plt(FunctionId),
}

impl BoltFunctions {
    /// Of the symbols and unwind entries of an image; those of a separate debug file are not seen by BOLT.
    pub fn of(image: &Image) -> Self {
        let regions = regions(image);
        let table = FunctionTable::of(image);
        let names = NameBytes::of(image, None);
        let mut functions = of_symbols(image, &names, &regions);
        functions.extend(table.iter().filter(|(_, entry)| entry.origin == Origin::Plt).map(|(id, entry)| {
            let (start, end) = (entry.start, entry.end);
            BoltFunction { start, end, stated_end: end, name: BoltName::Plt(id) }
        }));
        functions.sort_by_key(|function| function.start);
        let known = functions.len();
        for entry in unwind_ranges(image, &regions) {
            let before = functions[..known].partition_point(|known| known.start <= entry.start).checked_sub(1);
            let same = |known: &BoltFunction| known.start == entry.start || entry.start < known.stated_end;
            let of_plt = Region::holding(&regions, entry.start).is_some_and(|region| region.name.starts_with(".plt"));
            if !of_plt && !before.is_some_and(|before| same(&functions[before])) {
                let (start, end) = (entry.start, entry.end);
                functions.push(BoltFunction { start, end, stated_end: end, name: BoltName::UnwindEntry });
            }
        }
        functions.sort_by_key(|function| function.start);
        for index in 0..functions.len() {
            let next = functions.get(index + 1).map(|next| next.start);
            let region = Region::holding(&regions, functions[index].start).map(|region| region.end);
            functions[index].end = [next, region].into_iter().flatten().min().unwrap_or(functions[index].stated_end);
        }
        BoltFunctions { functions, names, table }
    }

    /// The function that holds an address.
    pub fn at(&self, address: Svma) -> Option<&BoltFunction> {
        let index = self.functions.partition_point(|function| function.start <= address).checked_sub(1)?;
        self.functions.get(index).filter(|function| address < function.end)
    }

    /// Whether it is an entry of the procedure linkage table, in which BOLT sees no blocks.
    pub fn is_plt(&self, function: &BoltFunction) -> bool {
        matches!(function.name, BoltName::Plt(_))
    }

    /// Its name: `main`, `step/2`.
    pub fn name(&self, function: &BoltFunction) -> String {
        match function.name {
            BoltName::Symbol(at, None) => self.names.string(NamesOf::Image, at).into_owned(),
            BoltName::Symbol(at, Some(number)) => format!("{}/{number}", self.names.string(NamesOf::Image, at)),
            BoltName::Plt(id) => self.table.name(id).replace("@plt", "@PLT"),
            BoltName::UnwindEntry => format!("__BOLT_FDE_FUNCat{:x}", function.start.0),
        }
    }
}

/// The outermost function symbols, one per address.
fn of_symbols(image: &Image, names: &NameBytes, regions: &[Region]) -> Vec<BoltFunction> {
    let Some(table) = SymbolTable::of(image, SHT_SYMTAB) else { return Vec::new() };
    let is_function = |kind| matches!(kind, STT_FUNC | STT_GNU_IFUNC);
    let mut symbols: Vec<_> = table
        .symbols()
        .iter()
        .filter(|symbol| !matches!(symbol.st_shndx.get(LE), SHN_UNDEF | SHN_ABS))
        .filter(|symbol| !matches!(symbol.st_type(), STT_FILE | STT_SECTION | STT_TLS))
        .collect();
    symbols.sort_by_key(|symbol| (symbol.st_value.get(LE), !is_function(symbol.st_type())));
    // By a hash of the name: names can be long, and many.
    let mut numbers: HashMap<u64, u32> = HashMap::new();
    let mut functions: Vec<BoltFunction> = Vec::new();
    let mut covered = Svma(0);
    for symbol in symbols {
        let Some(at) = table.name_offset(symbol) else { continue };
        let number = (symbol.st_bind() == STB_LOCAL).then(|| {
            let mut hasher = DefaultHasher::new();
            names.bytes(NamesOf::Image, at, NameBytes::LONGEST).hash(&mut hasher);
            let number = numbers.entry(hasher.finish()).or_default();
            *number += 1;
            *number
        });
        let start = Svma(symbol.st_value.get(LE));
        let stated_end = Svma(start.0.saturating_add(symbol.st_size.get(LE)));
        // Symbols of assembly code often have neither type nor size.
        let is_bare = symbol.st_type() == STT_NOTYPE && symbol.st_size.get(LE) == 0;
        let is_code = Region::holding(regions, start).is_some();
        if !is_code || !(is_function(symbol.st_type()) || is_bare) {
            continue;
        }
        match functions.last_mut() {
            Some(alias) if alias.start == start => alias.stated_end = alias.stated_end.max(stated_end),
            _ if start < covered => continue, // An entry of the function around it.
            _ => {
                let name = BoltName::Symbol(at, number);
                functions.push(BoltFunction { start, end: stated_end, stated_end, name });
            }
        }
        covered = covered.max(stated_end);
    }
    functions
}
