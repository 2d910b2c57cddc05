//! Agents that are in processes already: this recorder's, another's, or left over by one that is gone.

use std::os::unix::fs::MetadataExt;

use addresses::Avma;
use agent::{Image, LoadStatus, REGION, Resident, SIGNAL};

use crate::sys::process::each_mapping;
use crate::sys::read_memory;
use crate::tracer::agent::injection::load_status;
use crate::tracer::notice::SIGNALS;

/// Reads a process' memory.
pub(crate) fn reader(process: i32) -> impl Fn(u64, &mut [u8]) -> bool {
    move |address, bytes| read_memory(process, Avma(address), bytes)
}

/// The agent that was put into a process with this image, if it is mapped there: by itself, or by a parent.
pub(crate) fn own_agent(process: i32, image: &Image) -> Option<Resident> {
    let resident = Resident::of(reader(process)).flatten()?;
    (resident.is_of(image) && load_status(process) == LoadStatus::Loaded).then_some(resident)
}

/// The signal of the agent that a process has from its parent, if that is one of this image.
pub(crate) fn inherited_signal(process: i32, image: &Image) -> Option<i32> {
    own_agent(process, image)?;
    let mut word = [0; 8];
    let is_read = read_memory(process, Avma(SIGNAL), &mut word);
    let signal = i32::try_from(u64::from_ne_bytes(word)).ok().filter(|signal| SIGNALS.contains(signal));
    signal.filter(|_| is_read)
}

/// An agent whose recorder is gone.
pub(crate) fn left_over(process: i32) -> Option<Resident> {
    Resident::of(reader(process)).flatten().filter(|resident| !is_alive(process, resident))
}

/// Whose the place of the agent is that is taken, in words.
pub(crate) fn taken_by(process: i32) -> &'static str {
    match Resident::of(reader(process)) {
        None => "the place of the agent is taken",
        Some(None) => "it has the agent of another version of hbbp",
        Some(Some(resident)) if is_alive(process, &resident) => "it has the agent of another recorder",
        Some(Some(_)) => "it has the agent of an earlier recording, which could not be taken out",
    }
}

/// Whether the recorder lives that has put an agent in: the file that both map is open there.
fn is_alive(process: i32, resident: &Resident) -> bool {
    let shared = each_mapping(process as u32).find(|map| map.shared && REGION.contains(&map.start));
    if !resident.recorder.starts_with("/proc/") {
        return false;
    }
    match (shared, std::fs::metadata(&resident.recorder)) {
        (Some(map), Ok(file)) => {
            let device = (rustix::fs::major(file.dev()), rustix::fs::minor(file.dev()));
            map.inode == file.ino() && map.device == device
        }
        (None, Ok(_)) => false,
        // It may be another user's, into whose files nobody looks.
        (_, Err(error)) => error.kind() != std::io::ErrorKind::NotFound,
    }
}
