//! Function ranges of the unwind table (`.eh_frame`): the one thing that a stripped file still says about its functions.
//!
//! The search table beside it (`.eh_frame_hdr`) is only asked where the entries are when no section says it; its
//! rows are not used: entries can be missing there.

use gimli::{
    BaseAddresses, CieOrFde, EhFrame, EhFrameHdr, EhFrameOffset, EndianSlice, LittleEndian, Pointer, UnwindSection,
};
use std::borrow::Cow;
use std::collections::HashMap;

use super::Image;
use super::candidate::{Candidate, Rank};
use super::function::{Function, Origin};
use super::layers::flatten;
use super::names::Name;
use super::region::Region;
use crate::address::Svma;

type Bytes<'image> = EndianSlice<'image, LittleEndian>;
type Cie<'image> = gimli::CommonInformationEntry<Bytes<'image>>;

/// The ranges of all unwind entries that lie in the regions, sorted and disjoint. Reading stops at the first entry whose
/// length cannot be believed; an entry that is damaged inside is left out.
pub(crate) fn unwind_ranges(image: &Image, regions: &[Region]) -> Vec<Function> {
    let Some((bytes, start)) = eh_frame(image) else { return Vec::new() };
    let mut section = EhFrame::new(&bytes, LittleEndian);
    section.set_address_size(image.address_bytes());
    let text = image.section(".text").map_or(0, |section| section.start.0);
    let bases = BaseAddresses::default().set_eh_frame(start.0).set_text(text);
    let mut cies: HashMap<EhFrameOffset, Cie<'_>> = HashMap::new();
    let mut candidates = Vec::new();
    let mut entries = section.entries(&bases);
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let parsed = partial.parse(|section, bases, offset| {
            if let Some(cie) = cies.get(&offset) {
                return Ok(cie.clone());
            }
            let cie = section.cie_from_offset(bases, offset)?;
            cies.insert(offset, cie.clone());
            Ok(cie)
        });
        let Ok(fde) = parsed else { continue };
        // Entries of signal trampolines start one byte early: unwinders look up the return address minus one.
        let early = u64::from(fde.is_signal_trampoline());
        let start = Svma(fde.initial_address().saturating_add(early));
        candidates.extend(candidate(start, fde.len().saturating_sub(early), regions));
    }
    candidates.sort_by_key(|candidate| (candidate.start, candidate.end));
    // Of entries with the same start the longest; there is no reason for more than one.
    candidates.reverse();
    candidates.dedup_by_key(|candidate| candidate.start);
    candidates.reverse();
    flatten(&candidates)
}

fn candidate(start: Svma, length: u64, regions: &[Region]) -> Option<Candidate> {
    let after = regions.partition_point(|region| region.start <= start);
    let index = after.checked_sub(1)?;
    let region = regions.get(index)?;
    let end = Svma(start.0.saturating_add(length)).min(region.end);
    let name = Name::Place(u32::try_from(index).ok()?);
    let (rank, origin) = (Rank::PLT, Origin::EhFrame);
    (start < end).then_some(Candidate { start, end, rank, origin, has_known_end: true, name })
}

/// The bytes of the unwind table and their address.
fn eh_frame(image: &Image) -> Option<(Cow<'_, [u8]>, Svma)> {
    if let Some(section) = image.section(".eh_frame") {
        return Some((image.section_bytes(section), section.start));
    }
    let start = image.eh_frame_header()?;
    let header = EhFrameHdr::new(image.bytes_up_to(start, 64), LittleEndian);
    let bases = BaseAddresses::default().set_eh_frame_hdr(start.0);
    let Pointer::Direct(table) = header.parse(&bases, image.address_bytes()).ok()?.eh_frame_ptr() else { return None };
    // A zero length ends the table before the segment does.
    Some((Cow::Borrowed(image.bytes_up_to(Svma(table), u64::MAX)), Svma(table)))
}
