//! The files that code ran from. Each record of a mapping gets the id of its file on its way to the recording, so that reports take no other
//! file of the same path for it. Files that only a process has are kept, if samples fall in them, while the process lives: those of other mount
//! namespaces, and what was deleted, replaced, or made in memory.
//!
//! ```text
//! record of a mapping: path, device, inode
//!   -> at its path?            id from the file                              reports find it there
//!   -> /proc/PID/map_files?    id, and the file stays open
//!        samples fall in it -> a copy in ~/.debug, by its id                 reports find it there
//! ```

mod by_path;
mod elsewhere;
mod find;
mod folder;
mod keeper;
pub(super) mod mapping_record;
#[cfg(test)]
mod tests;
mod wanted;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use formats::file_identity::FileIdentity;
use formats::metadata::MappedFilesMetadata;
use perf_event_open_sys::bindings as sys;

use crate::session::build_id::id_of_file;
use crate::session::last_thread::LastThreads;
use crate::session::mapped_files::by_path::ByPath;
use crate::session::mapped_files::elsewhere::Elsewhere;
use crate::session::mapped_files::find::Key;
use crate::session::mapped_files::folder::Folder;
use crate::session::mapped_files::keeper::Keeper;
use crate::session::mapped_files::mapping_record::{MISC_BUILD_ID, MOST_ID, id_in, key_of, put_id};
use crate::session::mapped_files::wanted::WantedRanges;
use crate::session::record_layout::{
    HEADER, MISC_EXEC, RecordBytes, RecordLayout, SAMPLE, halves, path_of_mapping, word,
};
use crate::sys::{Mounts, Server, thread_cpu_time};

/// Files that are open at most.
const MOST_OPEN: usize = 1024;
/// Files that are known at most: of others the records stay as they are.
const MOST_FILES: usize = 1 << 18;
/// How often it is looked whether files are still at their paths,
const OFTEN: Duration = Duration::from_millis(500);
/// and how small a share of the time that takes, however many there are.
const SHARE: u32 = 1000;

/// All files that were mapped as code.
#[derive(Debug)]
pub(crate) struct MappedFiles {
    layout: RecordLayout,
    mounts: Mounts,
    /// Who serves the files of a device that a process has mapped, in the records that are being looked at.
    servers: HashMap<(u32, (u32, u32)), Option<Server>>,
    files: HashMap<Key, Mapped>,
    /// Those that only processes have, by path and id, as records of mappings name them.
    elsewhere: HashMap<(Vec<u8>, Vec<u8>), Arc<Elsewhere>>,
    /// Those of them that wait for a sample, by process.
    wanted: HashMap<u32, Arc<WantedRanges>>,
    by_path: ByPath,
    last_threads: LastThreads,
    open: usize,
    keeper: Keeper,
    keeps: bool,
    next_look: Instant,
}

#[derive(Debug)]
enum Mapped {
    /// It is at its path.
    Here { id: Vec<u8>, state: FileIdentity, by: u32 },
    /// Only processes have it.
    Elsewhere { id: Vec<u8>, state: FileIdentity },
    /// Nobody could say what it is.
    Unidentified,
    /// A process serves it, whom it could take for ever to ask: that waits until the end.
    Served,
    /// It is no ELF file.
    NoFile,
}

impl MappedFiles {
    /// Of records of this layout. `keeps`: copies are made.
    pub(crate) fn new(layout: RecordLayout, keeps: bool) -> Self {
        Self {
            layout,
            mounts: Mounts::default(),
            servers: HashMap::new(),
            files: HashMap::new(),
            elsewhere: HashMap::new(),
            wanted: HashMap::new(),
            by_path: ByPath::default(),
            last_threads: LastThreads::default(),
            open: 0,
            keeper: Keeper::new(Folder::of_user()),
            keeps,
            next_look: Instant::now() + OFTEN,
        }
    }

    /// The same, with copies in a folder.
    #[cfg(test)]
    fn keeping_in(layout: RecordLayout, folder: Folder) -> Self {
        Self { keeper: Keeper::new(Some(folder)), ..Self::new(layout, true) }
    }

    /// Looks at the files of mappings among records that have just come, whose processes may end soon, and writes the ids into the records.
    pub(crate) fn identify(&mut self, records: &mut [u8]) {
        self.servers.clear();
        let mut offset = 0;
        while let Some([a, b, c, d, misc, more, low, high]) = records.get(offset..).and_then(|rest| rest.first_chunk())
        {
            let (kind, misc) = (u32::from_le_bytes([*a, *b, *c, *d]), u16::from_le_bytes([*misc, *more]));
            let size = usize::from(u16::from_le_bytes([*low, *high]));
            let Some(record) = records.get_mut(offset..offset + size).filter(|_| size >= HEADER) else { return };
            offset += size;
            if kind == sys::PERF_RECORD_MMAP2 && misc & MISC_BUILD_ID == 0 {
                let Some((pid, key)) = key_of(&record[HEADER..]) else { continue };
                let id = self.id(pid, &key);
                if let Some(id) =
                    self.by_path.id_in_record(&key.path, id, matches!(self.files.get(&key), Some(Mapped::Here { .. })))
                {
                    put_id(record, misc, &id);
                }
            }
        }
    }

    /// The id of a file that a process has just mapped.
    fn id(&mut self, pid: u32, key: &Key) -> Option<Vec<u8>> {
        let is_full = self.files.len() >= MOST_FILES;
        let was_written = self.was_written(pid, key);
        match self.files.get_mut(key) {
            Some(Mapped::Here { id, by, .. }) if !was_written => {
                *by = pid;
                return Some(id.clone());
            }
            Some(Mapped::Elsewhere { id, .. }) if !was_written => {
                let id = id.clone();
                let file = self.elsewhere.get(&(key.path.clone(), id.clone())).cloned();
                if let Some(file) = file.filter(|file| self.keeps && !file.is_kept() && !file.is_open()) {
                    self.give(&file, key.open_of(pid));
                }
                return Some(id);
            }
            Some(Mapped::NoFile | Mapped::Served) => return None,
            None if is_full => return None,
            // Another process may live longer; written to in its place, a file is another one.
            Some(Mapped::Unidentified | Mapped::Here { .. } | Mapped::Elsewhere { .. }) | None => {}
        }
        let mapped = self.look_at(pid, key);
        let id = match &mapped {
            Mapped::Here { id, .. } | Mapped::Elsewhere { id, .. } => Some(id.clone()),
            Mapped::Unidentified | Mapped::Served | Mapped::NoFile => None,
        };
        self.files.insert(key.clone(), mapped);
        id
    }

    /// Whether a file that has an id was written to since.
    fn was_written(&self, pid: u32, key: &Key) -> bool {
        match self.files.get(key) {
            Some(Mapped::Here { state, .. }) => {
                was_written(state, FileIdentity::at(Path::new(OsStr::from_bytes(&key.path))))
            }
            Some(Mapped::Elsewhere { id, state }) => {
                let known = self.elsewhere.get(&(key.path.clone(), id.clone()));
                let now = known.and_then(|file| file.state());
                was_written(state, now.or_else(|| FileIdentity::at(&key.path_of(pid))))
            }
            _ => false,
        }
    }

    fn look_at(&mut self, pid: u32, key: &Key) -> Mapped {
        let ask = || self.mounts.server(pid as i32, key.device);
        if *self.servers.entry((pid, key.device)).or_insert_with(ask) == Some(Server::Process) {
            return Mapped::Served;
        }
        let (file, is_here) = match key.open_here() {
            Some(file) => (file, true),
            None => match key.open_of(pid) {
                Some(file) => (file, false),
                None => return Mapped::Unidentified,
            },
        };
        if !key.is_in_memory(pid, &file) {
            return Mapped::Unidentified;
        }
        let Ok(metadata) = file.metadata() else { return Mapped::Unidentified };
        let Some(id) = recorded_id(&file) else { return Mapped::NoFile };
        let state = FileIdentity::of(&metadata);
        if is_here {
            return Mapped::Here { id, state, by: pid };
        }
        self.add_elsewhere(key, &id, Some(file));
        Mapped::Elsewhere { id, state }
    }

    fn add_elsewhere(&mut self, key: &Key, id: &[u8], file: Option<File>) -> Arc<Elsewhere> {
        let new = || Arc::new(Elsewhere::new(key.clone(), id.to_vec()));
        let known = self.elsewhere.entry((key.path.clone(), id.to_vec())).or_insert_with(new).clone();
        self.give(&known, file);
        known
    }

    /// Holds a file open until it is hit, or all have ended that have it mapped.
    fn give(&mut self, known: &Elsewhere, file: Option<File>) {
        if self.keeps && self.open < MOST_OPEN && !known.is_kept() {
            self.open += usize::from(known.hold(file));
        }
    }

    /// Takes in a record that goes to the file.
    pub(crate) fn see(&mut self, record: &RecordBytes<'_>) {
        match record.kind {
            sys::PERF_RECORD_MMAP2 => self.map(record),
            _ if self.wanted.is_empty() => None,
            SAMPLE => self.sample(record),
            sys::PERF_RECORD_COMM if record.misc() & MISC_EXEC != 0 => self.execute(record.body),
            sys::PERF_RECORD_FORK if record.misc() & MISC_EXEC == 0 => self.fork(record.body),
            sys::PERF_RECORD_EXIT => self.exit(record.body),
            _ => None,
        };
    }

    /// pid, tid, start, length.
    fn map(&mut self, record: &RecordBytes<'_>) -> Option<()> {
        let (body, pid) = (record.body, word(record.body, 0)? as u32);
        if self.elsewhere.is_empty() || pid == u32::MAX {
            return None;
        }
        let start = word(body, 8)?;
        let range = start..start.checked_add(word(body, 16)?)?;
        let id = (record.misc() & MISC_BUILD_ID != 0).then(|| id_in(body)).flatten();
        let file = id.and_then(|id| self.elsewhere.get(&(path_of_mapping(body)?.to_vec(), id.to_vec())));
        let before = match (file.filter(|file| !file.is_kept()).cloned(), self.wanted.get_mut(&pid)) {
            (None, None) => Vec::new(),
            (None, Some(ranges)) => Arc::make_mut(ranges).unmap(&range),
            (Some(file), Some(ranges)) => Arc::make_mut(ranges).map(range, file),
            (Some(file), None) => {
                let mut ranges = WantedRanges::default();
                ranges.map(range, file);
                self.wanted.insert(pid, Arc::new(ranges));
                Vec::new()
            }
        };
        self.close(before.into_iter());
        Some(())
    }

    /// pid, tid.
    fn execute(&mut self, body: &[u8]) -> Option<()> {
        self.forget(word(body, 0)? as u32)
    }

    /// pid, ppid, tid, ptid: a new process has what its parent has.
    fn fork(&mut self, body: &[u8]) -> Option<()> {
        let [pid, parent] = halves(word(body, 0)?);
        if pid != parent {
            self.forget(pid);
            let ranges = self.wanted.get(&parent)?.clone();
            self.wanted.insert(pid, ranges);
        }
        Some(())
    }

    /// pid, ppid, tid, ptid.
    fn exit(&mut self, body: &[u8]) -> Option<()> {
        let (pid, tid) = (word(body, 0)? as u32, word(body, 8)? as u32);
        let ends = self.wanted.contains_key(&pid) && self.last_threads.ends(pid, tid);
        if ends { self.forget(pid) } else { None }
    }

    /// Closes what no process has any more.
    fn forget(&mut self, pid: u32) -> Option<()> {
        let ranges = self.wanted.remove(&pid)?;
        // Processes that were forked may have the same.
        self.close(Arc::try_unwrap(ranges).into_iter().flat_map(WantedRanges::into_files));
        Some(())
    }

    /// Closes those of these files that are mapped nowhere else.
    fn close(&mut self, files: impl Iterator<Item = Arc<Elsewhere>>) {
        for file in files {
            // All files are known, and this one was mapped here for the last time.
            if Arc::strong_count(&file) == 2 && file.take_file().is_some() {
                self.open -= 1;
            }
        }
    }

    fn sample(&mut self, record: &RecordBytes<'_>) -> Option<()> {
        let pid = self.layout.sample_pid(record)?;
        let ranges = self.wanted.get(&pid)?;
        let words = record.body.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
        let hit = ranges.hit_by(words);
        if hit.is_empty() {
            return None;
        }
        for file in hit {
            self.keep(&file, pid);
        }
        let ranges = self.wanted.get_mut(&pid)?;
        Arc::make_mut(ranges).forget_kept();
        if ranges.is_empty() {
            self.wanted.remove(&pid);
        }
        Some(())
    }

    fn keep(&mut self, file: &Elsewhere, pid: u32) {
        if file.set_kept() {
            return;
        }
        let open = file.take_file();
        self.open -= usize::from(open.is_some());
        if self.keeps {
            self.keeper.keep(file.key.name(), &file.id, open.or_else(|| file.key.open_of(pid)));
        }
    }

    /// Keeps what was replaced meanwhile, if it is time to look: its processes may end soon.
    pub(crate) fn look(&mut self) {
        if !self.keeps || Instant::now() < self.next_look {
            return;
        }
        let own = thread_cpu_time();
        self.keep_replaced();
        self.next_look = Instant::now() + OFTEN.max(thread_cpu_time().saturating_sub(own) * SHARE);
    }

    /// Keeps files that were at their paths and are not any more, as far as a process lives that has them.
    fn keep_replaced(&mut self) {
        let replaced = |(key, mapped): (&Key, &Mapped)| match mapped {
            Mapped::Here { id, state, by } => (FileIdentity::at(Path::new(OsStr::from_bytes(&key.path)))
                != Some(*state))
            .then(|| (key.clone(), id.clone(), *state, *by)),
            _ => None,
        };
        let all: Vec<_> = self.files.iter().filter_map(replaced).collect();
        for (key, id, state, pid) in all {
            let is_it = |file: &File| recorded_id(file).as_ref() == Some(&id);
            // That its name or its rights changed is no matter. Written to in its place, it is another one for those who have it mapped, too.
            let here = key.open_here().and_then(|file| Some((FileIdentity::of(&file.metadata().ok()?), file)));
            if let Some((state, _)) = here.filter(|(_, file)| is_it(file)) {
                self.files.insert(key, Mapped::Here { id, state, by: pid });
                continue;
            }
            let file = key.open_of(pid).filter(is_it);
            if file.is_some() {
                let file = self.add_elsewhere(&key, &id, file);
                self.keep(&file, pid);
                self.files.insert(key, Mapped::Elsewhere { id, state });
            }
        }
    }

    /// The ids of files that processes serve, by path: read now, if they are the only ones at their paths.
    pub(crate) fn served(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let served = self.files.iter().filter(|(_, mapped)| matches!(mapped, Mapped::Served)).map(|(key, _)| key);
        let mut of_path: HashMap<&[u8], usize> = HashMap::new();
        self.files.keys().for_each(|key| *of_path.entry(&key.path).or_default() += 1);
        let alone = served.filter(|key| of_path.get(key.path.as_slice()) == Some(&1));
        alone.filter_map(|key| Some((key.path.clone(), recorded_id(&key.open_here()?)?))).collect()
    }

    /// What is known now. `is_last`: no file comes after this one, so all copies are to be made.
    pub(crate) fn conclude(&mut self, is_last: bool) -> (MappedFilesMetadata, Option<String>) {
        self.keep_replaced();
        if is_last {
            self.keeper.finish();
        }
        let kept = self.keeper.kept();
        let count = |is: fn(&Mapped) -> bool| Some(self.files.values().filter(|mapped| is(mapped)).count() as u64);
        let folder = self.keeper.folder().filter(|_| kept.files > 0);
        let metadata = MappedFilesMetadata {
            identified: count(|mapped| matches!(mapped, Mapped::Here { .. } | Mapped::Elsewhere { .. })),
            unidentified: count(|mapped| matches!(mapped, Mapped::Unidentified)),
            elsewhere: count(|mapped| matches!(mapped, Mapped::Elsewhere { .. })),
            kept: Some(kept.files),
            copied_bytes: Some(kept.bytes),
            folder: folder.map(|folder| folder.to_string_lossy().into_owned()),
            by_path: self.by_path.to_metadata(),
        };
        let failure = kept.first_failure.map(|first| {
            let others = if kept.failed > 1 { format!(", and {} others", kept.failed - 1) } else { String::new() };
            format!("a file that only its process had is not kept, so its code is unread: {first}{others}")
        });
        (metadata, failure)
    }
}

/// Whether the same file was, as far as is known, written to: not where another one has its place, or none.
fn was_written(state: &FileIdentity, now: Option<FileIdentity>) -> bool {
    now.is_some_and(|now| now.is_same_file(state) && now != *state)
}

/// The id of an ELF file, as a record of a mapping has it: `mold --build-id=sha256` makes 32 bytes.
fn recorded_id(file: &File) -> Option<Vec<u8>> {
    let mut id = id_of_file(file)?;
    id.truncate(MOST_ID);
    Some(id)
}
