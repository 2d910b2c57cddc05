//! The file that a record of a mapping names, and its build id in place of the inode.

use crate::session::mapped_files::find::Key;
use crate::session::record_layout::{HEADER, halves, path_of_code, word};

/// `misc` of an MMAP2: it has a build id in place of an inode.
pub(crate) const MISC_BUILD_ID: u16 = 1 << 14;
/// The build id in the body of an MMAP2, where it has one: its length, three bytes of nothing, and 20 bytes.
const ID_LENGTH: usize = 32;
const ID: usize = 36;
pub(super) const MOST_ID: usize = 20;

/// pid, tid, start, length, pgoff, maj, min, ino, generation, prot, flags, path: of a mapping of code, whose file it is.
pub(super) fn key_of(body: &[u8]) -> Option<(u32, Key)> {
    let (pid, inode) = (word(body, 0)? as u32, word(body, 40)?);
    if pid == u32::MAX || inode == 0 {
        return None;
    }
    let [major, minor] = halves(word(body, ID_LENGTH)?);
    let device = (major, minor);
    let path = path_of_code(body).filter(|path| path.starts_with(b"/"))?.to_vec();
    Some((pid, Key { path, device, inode, generation: word(body, 48)? }))
}

/// The build id of a mapping that has one.
pub(crate) fn id_in(body: &[u8]) -> Option<&[u8]> {
    let length = usize::from(*body.get(ID_LENGTH)?);
    body.get(ID..ID + length.min(MOST_ID)).filter(|id| !id.is_empty())
}

/// Writes a build id into the record of a mapping, in place of the inode.
pub(super) fn put_id(record: &mut [u8], misc: u16, id: &[u8]) {
    let id = id.get(..MOST_ID).unwrap_or(id);
    let Some(place) = record.get_mut(HEADER + ID_LENGTH..HEADER + ID + MOST_ID) else { return };
    place.fill(0);
    let (length, bytes) = place.split_at_mut(ID - ID_LENGTH);
    length[0] = id.len() as u8;
    bytes[..id.len()].copy_from_slice(id);
    record[4..6].copy_from_slice(&(misc | MISC_BUILD_ID).to_le_bytes());
}
