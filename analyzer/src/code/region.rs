//! Where code is.

use super::{Image, Segment};
use crate::address::Svma;

/// A range that holds code: an executable section, or an executable segment without any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    pub start: Svma,
    pub end: Svma,
    /// Name of the section; `code` for a segment without sections.
    pub name: String,
}

impl Region {
    /// The region that holds an address. The regions must be sorted and disjoint.
    pub fn holding(regions: &[Self], address: Svma) -> Option<&Self> {
        let after = regions.partition_point(|region| region.start <= address);
        regions.get(after.checked_sub(1)?).filter(|region| address < region.end)
    }
}

/// Where code is: the executable sections, and executable segments that have no such section. Sorted and disjoint.
pub(crate) fn regions(image: &Image) -> Vec<Region> {
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
