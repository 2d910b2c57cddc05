//! Functions as they are kept: to find them again means to read all symbols, unwind entries and relocations of a file.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::function::{Function, Origin};
use super::kept;
use super::names::Name;
use super::region::Region;
use crate::address::Svma;

/// Of a function: bytes from the end of the one before, its own bytes, those from the address that its name stands for to its first, where it
/// comes from, whether its end is known, and its name.
type Packed = (u64, u64, u64, Origin, bool, Name);

/// The functions of a file: sorted, disjoint, and told in some bytes each by how far they are from the one before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptFunctions<'a>(pub(super) Cow<'a, [Function]>);

impl KeptFunctions<'_> {
    /// Whether they can be functions of a file whose code is there, all of which they cover.
    pub(super) fn cover(&self, regions: &[Region]) -> bool {
        let covered = self.0.iter().map(|function| function.end.0 - function.start.0).fold(0, u64::wrapping_add);
        let code = regions.iter().map(|region| region.end.0 - region.start.0).fold(0, u64::wrapping_add);
        let are_within = self.0.iter().all(|function| {
            let is_code = Region::holding(regions, function.start).is_some_and(|region| function.end <= region.end);
            is_code
                && match function.name {
                    Name::Place(index) => {
                        regions.get(index as usize).is_some_and(|region| region.start <= function.symbol)
                    }
                    _ => true,
                }
        });
        are_within && covered == code
    }
}

fn end_of(before: Option<&Function>) -> Svma {
    before.map_or(Svma(0), |function| function.end)
}

fn packed(function: &Function, before: Option<&Function>) -> Packed {
    let &Function { start, end, symbol, origin, has_known_end, name } = function;
    let gap = start.0.wrapping_sub(end_of(before).0);
    (gap, end.0.wrapping_sub(start.0), start.0.wrapping_sub(symbol.0), origin, has_known_end, name)
}

/// `None` where it is no function that could come after the other one.
fn unpacked(packed: Packed, before: Option<&Function>) -> Option<Function> {
    let (gap, size, after_symbol, origin, has_known_end, name) = packed;
    let start = end_of(before).0.checked_add(gap)?;
    let end = start.checked_add(size).filter(|_| size > 0)?;
    let symbol = start.checked_sub(after_symbol)?;
    Some(Function { start: Svma(start), end: Svma(end), symbol: Svma(symbol), origin, has_known_end, name })
}

impl Serialize for KeptFunctions<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        kept::write(&self.0, packed, serializer)
    }
}

impl<'de> Deserialize<'de> for KeptFunctions<'_> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        kept::read(deserializer, unpacked).map(|functions| KeptFunctions(Cow::Owned(functions)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::names::NamesOf;
    use super::*;

    fn function(start: u64, end: u64, symbol: u64, name: Name) -> Function {
        let (start, end, symbol) = (Svma(start), Svma(end), Svma(symbol));
        Function { start, end, symbol, origin: Origin::Symbol, has_known_end: true, name }
    }

    fn again(functions: &[Function]) -> KeptFunctions<'static> {
        let text = serde_json::to_string(&KeptFunctions(Cow::Borrowed(functions))).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn functions_are_the_same_again() {
        let functions = [
            function(0x40_1000, 0x40_1010, 0x40_1000, Name::String(NamesOf::Image, 7)),
            function(0x40_1010, 0x40_1020, 0x40_1000, Name::String(NamesOf::DebugFile, u32::MAX)),
            function(0x40_1030, 0x40_1040, 0x40_1030, Name::Plt(12)),
            function(0x40_1040, 0x40_1050, 0x40_1040, Name::PltOfResolver(Svma(0x40_1000))),
            function(0x50_0000, u64::MAX, 0x50_0000, Name::Place(3)),
        ];
        assert_eq!(*again(&functions).0, functions);
        assert_eq!(*again(&[]).0, []);
    }

    #[test]
    fn what_can_be_no_function_is_refused() {
        let read = |numbers: &str| {
            let rest = "\"Symbol\", true, {\"Plt\": 1}";
            let text = format!("[[16, 4, 0, {rest}], [{numbers}, {rest}]]");
            serde_json::from_str::<KeptFunctions<'_>>(&text).is_ok()
        };
        assert!(read("0, 1, 20"));
        assert!(!read("0, 0, 0"), "no bytes");
        assert!(!read("0, 1, 21"), "its name before all addresses");
        assert!(!read(&format!("{}, 1, 0", u64::MAX)), "a start beyond all addresses");
        assert!(!read(&format!("0, {}, 0", u64::MAX)), "an end beyond all addresses");
    }

    #[test]
    fn functions_of_other_code_are_told() {
        let region = |start: u64, end: u64| Region { start: Svma(start), end: Svma(end), name: ".text".to_owned() };
        let regions = [region(0x1000, 0x2000), region(0x3000, 0x4000)];
        let first = function(0x1000, 0x2000, 0x1000, Name::Plt(0));
        let cover = |functions: &[Function]| KeptFunctions(Cow::Borrowed(functions)).cover(&regions);
        assert!(cover(&[first, function(0x3000, 0x4000, 0x3000, Name::Place(1))]));
        assert!(!cover(&[first]), "a hole");
        assert!(!cover(&[first, function(0x2000, 0x3000, 0x2000, Name::Plt(0))]), "no code is there");
        assert!(!cover(&[function(0x1000, 0x3000, 0x1000, Name::Plt(0))]), "it ends where no code is");
        assert!(!cover(&[first, function(0x3000, 0x4000, 0x3000, Name::Place(2))]), "there is no such place");
        assert!(!cover(&[function(0x1000, 0x2000, 0x1000, Name::Place(1))]), "that place is after it");
    }
}
