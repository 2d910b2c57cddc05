//! Functions: disjoint, named ranges that cover all code of an image.

use std::borrow::Cow;

use super::eh_frame::unwind_ranges;
use super::layers::{Region, bound_unsized, fill, flatten, gaps, merge_aliases};
use super::names::{Name, NameBytes, NamesOf};
use super::plt::add_plt_entries;
use super::symbols::add_symbols;
use super::{Image, Segment};
use crate::address::Svma;

/// Index of a function in its [`FunctionTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId(pub u32);

/// Where a function's range comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// A symbol of `.symtab` (of the file or of its separate debug file).
    Symbol,
    /// A symbol of `.dynsym`.
    DynamicSymbol,
    /// An entry of the procedure linkage table.
    Plt,
    /// An unwind entry where no symbol is.
    EhFrame,
    /// Code that nothing describes: where it has functions and instructions is not known.
    Gap,
}

/// A function, or the part of one that no other symbol lies in: `[start, end)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    /// The first address of the range.
    pub start: Svma,
    /// The address after its last byte.
    pub end: Svma,
    /// The address that the name stands for. It is before `start` only in the part of a function that lies
    /// behind a symbol inside it, so offsets printed as `name+0x10` count from here.
    pub symbol: Svma,
    /// Where the range comes from.
    pub origin: Origin,
    /// Whether it is known where the function ends. Behind a symbol without a size, up to the next one, there may be many functions.
    pub has_known_end: bool,
    pub(super) name: Name,
}

/// The functions of an image: sorted, disjoint, covering every executable section.
///
/// Of several symbols at one address one names the function: typed rather than not, global rather than weak rather than local,
/// then without version, with fewer leading underscores, shorter, alphabetically first. Symbols without a size
/// reach to the next one, or to the end of their unwind entry or section; without a type and inside another
/// symbol they are labels. A symbol inside another interrupts it.
#[derive(Clone, Debug, Default)]
pub struct FunctionTable {
    functions: Vec<Function>,
    regions: Vec<Region>,
    names: NameBytes,
}

impl FunctionTable {
    /// The functions that the image itself describes.
    pub fn of(image: &Image) -> Self {
        Self::build(image, None)
    }

    /// The functions that the image and its separate debug file describe. The caller has compared the build-ids.
    pub fn with_debug_file(image: &Image, debug_file: &Image) -> Self {
        Self::build(image, Some(debug_file))
    }

    /// The function that holds an address. `None` outside of the image's code.
    pub fn at(&self, address: Svma) -> Option<FunctionId> {
        let index = self.functions.partition_point(|function| function.start <= address).checked_sub(1)?;
        let inside = address < self.functions[index].end;
        u32::try_from(index).ok().filter(|_| inside).map(FunctionId)
    }

    /// The function of an id.
    ///
    /// # Panics
    /// When the id is of another table.
    pub fn get(&self, id: FunctionId) -> &Function {
        &self.functions[id.0 as usize]
    }

    /// All functions, by address.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (FunctionId, &Function)> + Clone {
        self.functions.iter().enumerate().map(|(index, function)| (FunctionId(index as u32), function))
    }

    /// How many functions there are.
    pub fn len(&self) -> usize {
        self.functions.len()
    }

    /// Whether the address is where the function of this range starts.
    pub fn is_entry(&self, id: FunctionId, address: Svma) -> bool {
        self.get(id).symbol == address
    }

    /// Whether two ranges are parts of one function.
    pub fn are_of_one(&self, a: FunctionId, b: FunctionId) -> bool {
        self.get(a).symbol == self.get(b).symbol
    }

    /// Whether the image has no code.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// The name as the file has it (mangled, see [`demangle`](super::demangle())); `puts@plt` for an entry of the
    /// procedure linkage table, `[.text+0x1230]` (section and offset) for code without a name.
    pub fn name(&self, id: FunctionId) -> Cow<'_, str> {
        let function = self.get(id);
        match function.name {
            Name::String(file, offset) => self.names.string(file, offset),
            Name::Plt(offset) => Cow::Owned(self.names.string(NamesOf::Image, offset).into_owned() + "@plt"),
            Name::PltOfResolver(resolver) => Cow::Owned(self.name_at(resolver) + "@plt"),
            Name::Place(region) => {
                let region = &self.regions[region as usize];
                Cow::Owned(format!("[{}+{:#x}]", region.name, function.symbol.0 - region.start.0))
            }
        }
    }

    /// The name of the symbol at exactly this address, or what `objdump` calls a place without one.
    fn name_at(&self, address: Svma) -> String {
        let function = self.at(address).map(|id| self.get(id)).filter(|function| function.symbol == address);
        match function.map(|function| function.name) {
            Some(Name::String(file, offset)) => self.names.string(file, offset).into_owned(),
            _ => format!("*ABS*+{address}"),
        }
    }

    fn build(image: &Image, debug_file: Option<&Image>) -> Self {
        let names = NameBytes { image: Some(image.shared_bytes()), debug_file: debug_file.map(Image::shared_bytes) };
        let regions = regions(image);
        let mut candidates = Vec::new();
        add_symbols(image, NamesOf::Image, &regions, &mut candidates);
        if let Some(debug_file) = debug_file {
            add_symbols(debug_file, NamesOf::DebugFile, &regions, &mut candidates);
        }
        add_plt_entries(image, &regions, &mut candidates);
        let mut candidates = merge_aliases(candidates, &names);
        let unwind = unwind_ranges(image, &regions);
        bound_unsized(&mut candidates, &unwind, &regions);
        let named = flatten(&candidates);
        let functions = fill(fill(named, &unwind), &gaps(&regions));
        Self { functions, regions, names }
    }
}

/// Where code is: the executable sections, and executable segments that have no such section. Sorted and disjoint.
pub(super) fn regions(image: &Image) -> Vec<Region> {
    let mut sections: Vec<_> = image.sections().iter().filter(|section| section.executable).collect();
    sections.sort_by_key(|section| (section.start, section.size));
    let mut regions = Vec::new();
    let mut remaining = sections.into_iter().peekable();
    for segment in image.executable_segments() {
        let before = regions.len();
        let mut free = segment.start;
        while let Some(section) = remaining.next_if(|section| section.start < segment.end()) {
            let start = section.start.max(free);
            let end = Svma(section.start.0.saturating_add(section.size)).min(segment.end());
            if start < end {
                regions.push(Region { start, end, name: section.name.clone() });
                free = end;
            }
        }
        if regions.len() == before {
            regions.push(whole(segment));
        }
    }
    regions
}

fn whole(segment: &Segment) -> Region {
    Region { start: segment.start, end: segment.end(), name: "code".to_owned() }
}
