//! What becomes of the files of processes that are really there.

use std::process::{Child, Command};

use perfdata::{SampleId, Writer};

use super::*;
use crate::session::record_layout::{first_record, one_event, records};
use crate::session::synthesize::mmap;
use crate::sys::process::{Mapping, mappings};

fn files(folder: &Path) -> MappedFiles {
    MappedFiles::keeping_in(RecordLayout::of_events(&one_event()), Folder::at(folder.to_owned()))
}

/// A program that waits, a copy of `sleep`, and where its code is. It ends when this goes.
struct Sleeping {
    child: Child,
    code: Mapping,
}

impl Sleeping {
    fn record(&self) -> Vec<u8> {
        record_of(self.child.id(), &self.code)
    }

    fn end(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Sleeping {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn sleeping(at: &Path) -> Sleeping {
    std::fs::copy("/bin/sleep", at).unwrap();
    let child = Command::new(at).arg("60").spawn().unwrap();
    let name = at.as_os_str().as_bytes();
    let code = || mappings(child.id()).into_iter().find(|map| map.prot & 4 != 0 && map.path == name);
    let code = std::iter::repeat_with(code).flatten().next().unwrap();
    Sleeping { child, code }
}

/// A program that waits and whose file was deleted, the files with the record of its mapping, and that record.
fn deleted(folder: &Path) -> (Sleeping, MappedFiles, Vec<u8>) {
    let program = folder.join("program");
    let sleeping = sleeping(&program);
    std::fs::remove_file(&program).unwrap();
    // What is there now is not it.
    std::fs::copy("/bin/true", &program).unwrap();
    let mut files = files(&folder.join("kept"));
    let mut record = sleeping.record();
    files.identify(&mut record);
    see(&mut files, &record);
    assert_eq!(files.open, 1);
    (sleeping, files, record)
}

fn record_of(pid: u32, map: &Mapping) -> Vec<u8> {
    let mut writer = Writer::of_records(Vec::new(), &one_event()).unwrap();
    writer.write_mmap2(&mmap(pid, map, SampleId { identifier: Some(5), ..SampleId::default() })).unwrap();
    std::mem::take(writer.get_mut())
}

/// IDENTIFIER, IP, TID, TIME.
fn sample(pid: u32, ip: u64) -> Vec<u8> {
    let words = [5, ip, u64::from(pid) << 32 | u64::from(pid), 1];
    [&[9, 0, 0, 0, 2, 0, 40, 0][..], words.map(u64::to_le_bytes).as_flattened()].concat()
}

fn id_of(record: &[u8]) -> Option<Vec<u8>> {
    let record = first_record(record, 0).unwrap().unwrap();
    (record.misc() & MISC_BUILD_ID != 0).then(|| id_in(record.body).unwrap().to_vec())
}

fn see(files: &mut MappedFiles, bytes: &[u8]) {
    records(bytes).for_each(|record| files.see(&record.unwrap()));
}

#[test]
fn a_file_at_its_path_is_named_and_not_copied() {
    let folder = tempfile::tempdir().unwrap();
    let sleeping = sleeping(&folder.path().join("program"));
    let mut files = files(&folder.path().join("kept"));
    let mut record = sleeping.record();
    files.identify(&mut record);
    assert_eq!(id_of(&record), id_of_file(&File::open("/bin/sleep").unwrap()));
    see(&mut files, &record);
    see(&mut files, &sample(sleeping.child.id(), sleeping.code.start));
    let (metadata, failure) = files.conclude(true);
    assert_eq!((metadata.identified, metadata.elsewhere, metadata.kept, failure), (Some(1), Some(0), Some(0), None));
}

#[test]
fn a_deleted_file_is_copied_when_it_is_hit() {
    let folder = tempfile::tempdir().unwrap();
    let (mut sleeping, mut files, record) = deleted(folder.path());
    let id = id_of(&record).unwrap();
    assert_eq!(Some(&id), id_of_file(&File::open("/bin/sleep").unwrap()).as_ref());
    see(&mut files, &sample(sleeping.child.id(), sleeping.code.end));
    assert_eq!(files.open, 1, "that was beside it");
    see(&mut files, &sample(sleeping.child.id(), sleeping.code.start + 1));
    sleeping.end();
    let (metadata, failure) = files.conclude(true);
    assert_eq!((metadata.elsewhere, metadata.kept, files.open, failure), (Some(1), Some(1), 0, None));
    assert_eq!(metadata.copied_bytes, std::fs::metadata("/bin/sleep").ok().map(|sleep| sleep.len()));
}

#[test]
fn what_is_replaced_is_kept_while_its_process_lives() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    let mut sleeping = sleeping(&program);
    let mut files = files(&folder.path().join("kept"));
    let mut record = sleeping.record();
    files.identify(&mut record);
    see(&mut files, &record);
    let look = |files: &mut MappedFiles| {
        files.next_look = Instant::now();
        files.look();
    };
    // That its rights changed is no matter.
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    look(&mut files);
    std::fs::remove_file(&program).unwrap();
    std::fs::copy("/bin/true", &program).unwrap();
    look(&mut files);
    assert_eq!(files.open, 0);
    sleeping.end();
    let (metadata, failure) = files.conclude(true);
    assert_eq!((metadata.elsewhere, metadata.kept, failure), (Some(1), Some(1), None));
    assert_eq!(metadata.copied_bytes, std::fs::metadata("/bin/sleep").ok().map(|sleep| sleep.len()));
}

#[test]
fn what_ends_without_a_sample_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let (sleeping, mut files, _) = deleted(folder.path());
    let pid = sleeping.child.id();
    let task = |kind: u8, pid: u32, parent: u32| {
        let ids = [u64::from(parent) << 32 | u64::from(pid); 2];
        [&[kind, 0, 0, 0, 0, 0, 32, 0][..], ids.map(u64::to_le_bytes).as_flattened(), &[0; 8]].concat()
    };
    let (forked, exit) = (u32::MAX - 1, 4);
    see(&mut files, &task(7, forked, pid));
    see(&mut files, &task(exit, pid, 1));
    assert_eq!(files.open, 1, "the child has it, too");
    see(&mut files, &task(exit, forked, 1));
    assert_eq!(files.open, 0);
    drop(sleeping);
    assert_eq!(files.conclude(true).0.kept, Some(0));
}

#[test]
fn a_file_that_is_written_in_its_place_is_another_one() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    let mut sleeping = sleeping(&program);
    sleeping.end();
    let mut files = files(&folder.path().join("kept"));
    let mut id = || {
        let mut record = sleeping.record();
        files.identify(&mut record);
        id_of(&record)
    };
    let of = |path: &Path| id_of_file(&File::open(path).unwrap());
    assert_eq!(id(), of(&program));
    std::fs::write(&program, std::fs::read("/bin/true").unwrap()).unwrap();
    assert_eq!(id(), of(Path::new("/bin/true")));
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    assert_eq!(id(), of(Path::new("/bin/true")));
}

#[test]
fn what_is_mapped_over_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let (sleeping, mut files, record) = deleted(folder.path());
    see(&mut files, &record);
    assert_eq!(files.open, 1, "the same again");
    let other = Mapping { path: b"//anon".to_vec(), inode: 0, ..sleeping.code.clone() };
    see(&mut files, &record_of(sleeping.child.id(), &other));
    assert_eq!(files.open, 0);
}

#[test]
fn of_a_file_that_is_gone_the_record_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    let mut sleeping = sleeping(&program);
    sleeping.end();
    std::fs::copy("/bin/true", folder.path().join("new")).unwrap();
    std::fs::rename(folder.path().join("new"), &program).unwrap();
    let mut files = files(&folder.path().join("kept"));
    let before = sleeping.record();
    let mut record = before.clone();
    files.identify(&mut record);
    assert_eq!(record, before);
    assert_eq!(files.conclude(true).0.unidentified, Some(1));
}

#[test]
fn any_bytes_are_records_of_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = files(folder.path());
    for size in [0, 1, 7, 8, 30, 72, 200, u16::MAX] {
        let mut record = vec![0xff; usize::from(size).max(8)];
        record[..8].copy_from_slice(&[&[10, 0, 0, 0, 0, 0][..], &size.to_le_bytes()].concat());
        files.identify(&mut record);
        files.identify(&mut record[..4]);
    }
}
