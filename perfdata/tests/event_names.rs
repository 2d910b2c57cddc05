//! Names of events in recordings that do not name them, as `perf evlist` makes them.

mod by_hand;
mod perf_tool;

use by_hand::{Attr, SAMPLE_ID_ALL, file, record, words};
use perf_tool::{perf, perf_is_here};
use perfdata::{AttrFlags, Recording, SampleFormat as F};

#[test]
fn names_are_perfs() {
    if !perf_is_here() {
        return;
    }
    let mut events = Vec::new();
    events.extend((0..11).map(|config| (0, config, 0, 0)));
    // perf 6.1 does not know 10 and 11.
    events.extend((0..10).chain(12..14).map(|config| (1, config, 0, 0)));
    events.extend([(4, 0x1c2, 0, 0), (4, 0, 0, 0), (4711, 5, 0, 0)]);
    for cache in 0..7 {
        events.extend([0, 0x1_0000, 0x200, 0x1_0200, 0x100].map(|rest| (3, cache | rest, 0, 0)));
    }
    events.extend([1, 2, 3, 4].map(|bp_type| (5, 0, bp_type, 0x1234)));

    let flags = [
        AttrFlags::default(),
        AttrFlags::EXCLUDE_KERNEL,
        AttrFlags::EXCLUDE_USER,
        AttrFlags::EXCLUDE_HV,
        AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV,
        AttrFlags::EXCLUDE_USER | AttrFlags::EXCLUDE_HV,
        AttrFlags::EXCLUDE_GUEST,
        AttrFlags::EXCLUDE_HOST,
        AttrFlags::EXCLUDE_HOST | AttrFlags::EXCLUDE_GUEST,
        AttrFlags::PRECISE_IP_0,
        AttrFlags::PRECISE_IP_0 | AttrFlags::PRECISE_IP_1,
        AttrFlags::PRECISE_IP_1 | AttrFlags::EXCLUDE_GUEST,
        AttrFlags::PRECISE_IP_1 | AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV | AttrFlags::EXCLUDE_GUEST,
        AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HOST,
        AttrFlags::EXCLUDE_IDLE,
    ];
    let mut attrs = Vec::new();
    let mut add = |event, flags: AttrFlags| {
        let id = attrs.len() as u64 + 1;
        let flags = flags.0 | SAMPLE_ID_ALL;
        attrs.push(Attr { sample_type: F::IDENTIFIER.0, ids: vec![id], event: Some(event), flags, ..Attr::default() });
    };
    events.iter().for_each(|&event| add(event, AttrFlags::default()));
    for flags in flags {
        [(0, 0, 0, 0), (1, 1, 0, 0), (4, 0x1c2, 0, 0)].into_iter().for_each(|event| add(event, flags));
    }

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("perf.data");
    std::fs::write(&path, file(&attrs, &[record(9, 2, &words(&[1]))])).unwrap();
    let printed = perf(&["evlist"], &path);
    let theirs: Vec<_> = printed.lines().filter(|line| !line.starts_with('#')).collect();
    let recording = Recording::open(&path).unwrap();
    let ours: Vec<_> = recording.events().iter().map(|event| event.name.as_str()).collect();
    for ((ours, theirs), attr) in ours.iter().zip(&theirs).zip(&attrs) {
        assert_eq!(ours, theirs, "{attr:?}");
    }
    assert_eq!(ours.len(), theirs.len(), "{printed}");
}
