//! Where samples are: the innermost frame of a stack, and the file that it is in.

use std::collections::HashMap;
use std::rc::Rc;

use perfdata::BuildId;

use crate::Error;
use crate::attributes::Attribute;
use crate::message::{Function, Location, Mapping, Stack};
use crate::modules::KERNEL_HALF;
use crate::tables::{Table, Tables};

/// Where code is, as a profile says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Leaf {
    /// At an address of a mapping.
    Mapped { mapping: Rc<Mapped>, address: u64, in_kernel: bool },
    /// In a function of a mapping; its address is not said.
    Named { mapping: Rc<Mapped> },
    /// In the kernel; nothing says where that is.
    Kernel { address: u64 },
    /// In a program that was made in the kernel.
    Made { name: Rc<str>, offset: u64 },
    /// In code of an interpreter, a JIT compiler and so on: what it is called.
    Interpreted(Rc<str>),
    /// In memory without a file.
    Anonymous { address: u64 },
    /// Nothing is known.
    Unknown,
}

/// A part of a file that was mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapped {
    pub start: u64,
    pub limit: u64,
    pub file_offset: u64,
    pub name: Rc<str>,
    pub build_id: Option<BuildId>,
    pub hash: Option<Rc<str>>,
}

impl Mapped {
    /// The offset in the file of an address that is in the range.
    pub(crate) fn offset_of(&self, address: u64) -> Option<u64> {
        let is_in = (self.start..self.limit).contains(&address);
        if is_in { (address - self.start).checked_add(self.file_offset) } else { None }
    }
}

/// The frames of a message. What was decoded is kept, so that nothing is decoded again for each sample.
pub(crate) struct Frames<'a> {
    tables: &'a Tables<'a>,
    stacks: HashMap<i32, (Leaf, bool)>,
    locations: HashMap<i32, Leaf>,
    mappings: HashMap<i32, Rc<Mapped>>,
    attributes: HashMap<i32, Attribute>,
}

impl<'a> Frames<'a> {
    pub(crate) fn of(tables: &'a Tables<'a>) -> Self {
        let (stacks, locations) = (HashMap::new(), HashMap::new());
        Frames { tables, stacks, locations, mappings: HashMap::new(), attributes: HashMap::new() }
    }

    /// The attribute of an index.
    pub(crate) fn attribute(&mut self, index: i32) -> Result<Attribute, Error> {
        if let Some(known) = self.attributes.get(&index) {
            return Ok(known.clone());
        }
        let attribute = Attribute::of_index(index, self.tables)?;
        self.attributes.insert(index, attribute.clone());
        Ok(attribute)
    }

    /// The innermost frame of a stack, and whether it has callers.
    pub(crate) fn leaf(&mut self, stack: i32) -> Result<(Leaf, bool), Error> {
        if let Some(known) = self.stacks.get(&stack) {
            return Ok(known.clone());
        }
        let Stack { location_indices } = self.tables.entry(Table::Stacks, stack, "a sample")?;
        let leaf = match location_indices.first() {
            Some(&location) => self.location(location)?,
            None => Leaf::Unknown,
        };
        let found = (leaf, location_indices.len() > 1);
        self.stacks.insert(stack, found.clone());
        Ok(found)
    }

    fn location(&mut self, index: i32) -> Result<Leaf, Error> {
        if let Some(known) = self.locations.get(&index) {
            return Ok(known.clone());
        }
        let location: Location = self.tables.entry(Table::Locations, index, "a stack")?;
        let leaf = self.leaf_of(&location)?;
        self.locations.insert(index, leaf.clone());
        Ok(leaf)
    }

    fn leaf_of(&mut self, location: &Location) -> Result<Leaf, Error> {
        let address = location.address;
        let frame = self.frame_type(location)?;
        let mapping = match location.mapping_index {
            0 => None,
            index => Some(self.mapping(index)?),
        };
        let is_native = matches!(&*frame, "" | "native" | "go");
        if &*frame == "kernel" {
            // The eBPF profiler takes one off the addresses of all frames of the kernel, as if they were those of callers.
            let after = address.wrapping_add(1);
            return Ok(match (mapping, self.name_of(location)?) {
                (Some(mapping), _) => Leaf::Mapped { mapping, address: after, in_kernel: true },
                (None, Some(name)) if address < KERNEL_HALF => Leaf::Made { name, offset: address },
                _ => Leaf::Kernel { address: after },
            });
        }
        let of_kernel = |mapping: &Mapped| mapping.name.starts_with("[kernel") || address >= KERNEL_HALF;
        Ok(match mapping {
            Some(mapping) if address == 0 => Leaf::Named { mapping },
            Some(mapping) => Leaf::Mapped { in_kernel: of_kernel(&mapping), mapping, address },
            None if &*frame == "abort-marker" => Leaf::Unknown,
            None if !is_native => Leaf::Interpreted(frame),
            None if address >= KERNEL_HALF => Leaf::Kernel { address },
            None if address > 0 => Leaf::Anonymous { address },
            None if !location.lines.is_empty() => Leaf::Interpreted("code without addresses".into()),
            None => Leaf::Unknown,
        })
    }

    fn frame_type(&mut self, location: &Location) -> Result<Rc<str>, Error> {
        for &index in &location.attribute_indices {
            if let Attribute::FrameType(frame) = self.attribute(index)? {
                return Ok(frame);
            }
        }
        Ok("".into())
    }

    fn name_of(&self, location: &Location) -> Result<Option<Rc<str>>, Error> {
        let Some(line) = location.lines.first() else { return Ok(None) };
        let function: Function = self.tables.entry(Table::Functions, line.function_index, "a line")?;
        let name = self.tables.shared_text(function.name_strindex, "a function")?;
        Ok(Some(name).filter(|name| !name.is_empty()))
    }

    fn mapping(&mut self, index: i32) -> Result<Rc<Mapped>, Error> {
        if let Some(known) = self.mappings.get(&index) {
            return Ok(known.clone());
        }
        let mapping: Mapping = self.tables.entry(Table::Mappings, index, "a location")?;
        let (start, limit, file_offset) = (mapping.memory_start, mapping.memory_limit, mapping.file_offset);
        let name = self.tables.shared_text(mapping.filename_strindex, "a mapping")?;
        let mut mapped = Mapped { start, limit, file_offset, name, build_id: None, hash: None };
        for &index in &mapping.attribute_indices {
            match self.attribute(index)? {
                Attribute::BuildId(id) => mapped.build_id = Some(id),
                Attribute::Hash(hash) => mapped.hash = Some(hash),
                _ => {}
            }
        }
        let mapped = Rc::new(mapped);
        self.mappings.insert(index, mapped.clone());
        Ok(mapped)
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;
    use crate::message::{ProfilesData, ProfilesDictionary};

    #[test]
    fn a_name_that_many_mappings_have_is_kept_once() {
        let named = Mapping { filename_strindex: 1, ..Mapping::default() };
        let dictionary = ProfilesDictionary {
            string_table: vec![String::new(), "/lib/".repeat(800)],
            mapping_table: vec![Mapping::default(), named.clone(), named],
            ..ProfilesDictionary::default()
        };
        let message = ProfilesData { dictionary: Some(dictionary), ..ProfilesData::default() }.encode_to_vec();
        let tables = Tables::of(&message).unwrap();
        let mut frames = Frames::of(&tables);
        let [one, other] = [1, 2].map(|index| frames.mapping(index).unwrap());
        assert_eq!(one.name.len(), 4000);
        assert!(Rc::ptr_eq(&one.name, &other.name));
    }
}
