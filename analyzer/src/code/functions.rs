//! Functions: disjoint, named ranges that cover all code of an image.

use std::borrow::Cow;

use super::Image;
use super::eh_frame::unwind_ranges;
use super::function::{Function, FunctionId};
use super::kept_functions::KeptFunctions;
use super::layers::{bound_unsized, fill, flatten, gaps, merge_aliases};
use super::names::{Name, NameBytes, NamesOf};
use super::plt::add_plt_entries;
use super::region::{Region, regions};
use super::symbols::add_symbols;
use crate::address::Svma;

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

    /// They, to be kept.
    pub(crate) fn kept(&self) -> KeptFunctions<'_> {
        KeptFunctions(Cow::Borrowed(&self.functions))
    }

    /// Those that were found in an image and its debug file before. `None` if they can be none of the image.
    pub(crate) fn of_kept(kept: KeptFunctions<'_>, image: &Image, debug_file: Option<&Image>) -> Option<Self> {
        let regions = regions(image);
        let names = NameBytes::of(image, debug_file);
        kept.cover(&regions).then(|| FunctionTable { functions: kept.0.into_owned(), regions, names })
    }

    /// The function that holds an address. `None` outside of the image's code.
    pub fn at(&self, address: Svma) -> Option<FunctionId> {
        let index = self.functions.partition_point(|function| function.start <= address).checked_sub(1)?;
        let inside = address < self.functions.get(index)?.end;
        u32::try_from(index).ok().filter(|_| inside).map(FunctionId)
    }

    /// The function of an id.
    ///
    /// # Panics
    /// When the id is of another table.
    #[expect(clippy::indexing_slicing, reason = "only this table makes its ids")]
    pub fn get(&self, id: FunctionId) -> &Function {
        &self.functions[id.0 as usize]
    }

    /// The function of an id that may be of another table.
    pub(super) fn try_get(&self, id: FunctionId) -> Option<&Function> {
        self.functions.get(id.0 as usize)
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
                let region = self.region(region);
                Cow::Owned(format!("[{}+{:#x}]", region.name, function.symbol.0 - region.start.0))
            }
        }
    }

    #[expect(clippy::indexing_slicing, reason = "places are named by the index of their region")]
    fn region(&self, index: u32) -> &Region {
        &self.regions[index as usize]
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
        let names = NameBytes::of(image, debug_file);
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
