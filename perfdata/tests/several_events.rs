//! Which event a record belongs to when there are several.

mod by_hand;

use by_hand::{Attr, SAMPLE_ID_ALL, open, read_all, record, words};
use perfdata::{Error, Record, Recording, SampleFormat as F};

fn attr(sample_type: F, ids: &[u64]) -> Attr {
    Attr { sample_type: sample_type.0, flags: SAMPLE_ID_ALL, ids: ids.to_vec(), ..Attr::default() }
}

/// The event of each sample, or the error.
fn sample_events(recording: &Recording) -> Vec<Result<usize, String>> {
    let mut events = Vec::new();
    let damage = read_all(recording, |raw| {
        if raw.is_sample() {
            events.push(recording.sample(raw).map(|sample| sample.event).map_err(|error| error.to_string()));
        }
    });
    assert_eq!(damage, None);
    events
}

#[test]
fn the_identifier_is_first_whatever_else_is_there() {
    let first = attr(F::IDENTIFIER | F::IP, &[7]);
    let second = attr(F::IDENTIFIER | F::TID | F::TIME | F::CPU | F::BRANCH_STACK, &[1 << 60, 8]);
    let samples = [
        record(9, 0, &words(&[7, 0x1000])),
        record(9, 0, &words(&[8, 1, 2, 3, 0])),
        record(9, 0, &words(&[1 << 60, 1, 2, 3, 1, 4, 5, 6])),
    ];
    let recording = open(&[first, second], &samples);
    assert_eq!(sample_events(&recording), [Ok(0), Ok(1), Ok(1)]);
}

#[test]
fn the_id_is_after_what_comes_before_it() {
    for (before, words_before) in [
        (F::default(), 0),
        (F::IP, 1),
        (F::IP | F::TID | F::TIME | F::ADDR, 4),
        (F::TID | F::ADDR | F::CPU | F::PERIOD | F::STREAM_ID, 2),
    ] {
        let attrs = [attr(before | F::ID, &[10]), attr(before | F::ID, &[11])];
        let sample = |id| {
            let mut body = vec![99; 10];
            body[words_before] = id;
            record(9, 0, &words(&body))
        };
        let recording = open(&attrs, &[sample(11), sample(10)]);
        assert_eq!(sample_events(&recording), [Ok(1), Ok(0)], "{before}");
    }
}

#[test]
fn an_unknown_id_is_named() {
    let attrs = [attr(F::IDENTIFIER, &[7]), attr(F::IDENTIFIER, &[8])];
    let recording = open(&attrs, &[record(9, 0, &words(&[4711])), record(9, 0, &words(&[8]))]);
    let events = sample_events(&recording);
    let message = events[0].as_ref().unwrap_err();
    assert!(message.contains("has the event id 4711, which no event of the recording has"), "{message}");
    assert_eq!(events[1], Ok(1));
}

/// perf writes 0 into what it makes up.
#[test]
fn id_zero_is_the_first_events() {
    let attrs = [attr(F::IDENTIFIER, &[7]), attr(F::IDENTIFIER, &[8])];
    let recording = open(&attrs, &[record(9, 0, &words(&[0]))]);
    assert_eq!(sample_events(&recording), [Ok(0)]);
}

#[test]
fn a_single_event_needs_no_id() {
    let recording = open(&[attr(F::IDENTIFIER | F::IP, &[])], &[record(9, 0, &words(&[4711, 1]))]);
    assert_eq!(sample_events(&recording), [Ok(0)]);
}

#[test]
fn events_without_ids_are_taken_as_the_first_and_that_is_said() {
    let recording = open(&[attr(F::IP, &[1]), attr(F::IP, &[2])], &[record(9, 0, &words(&[4711]))]);
    assert_eq!(sample_events(&recording), [Ok(0)]);
    assert!(recording.notes()[0].contains("none of the 2 events records its id"), "{:?}", recording.notes());
}

#[test]
fn events_that_cannot_be_told_apart_are_refused() {
    for (first, second) in [(F::IP, F::IP | F::TID), (F::ID, F::IP | F::ID), (F::IDENTIFIER | F::IP, F::ID | F::IP)] {
        let bytes = by_hand::file(&[attr(first, &[1]), attr(second, &[2])], &[]);
        let error = Recording::from_bytes(bytes).unwrap_err();
        assert!(matches!(error, Error::SampleIdPlaces { first: 0, second: 1 }), "{error}");
    }
}

/// A trailer is as long as its own event makes it.
#[test]
fn trailers_of_different_lengths() {
    let attrs = [attr(F::IDENTIFIER | F::TID, &[7]), attr(F::IDENTIFIER | F::TID | F::TIME, &[8])];
    let recording = open(&attrs, &[record(2, 0, &words(&[1, 2, 33, 7])), record(2, 0, &words(&[1, 2, 33, 44, 8]))]);
    let mut ids = Vec::new();
    read_all(&recording, |raw| {
        let Record::Lost(lost) = recording.parse(raw).unwrap() else { panic!() };
        assert_eq!((lost.id, lost.lost), (1, 2));
        ids.push((lost.sample_id.pid, lost.sample_id.time, lost.sample_id.identifier));
    });
    assert_eq!(ids, [(Some(33), None, Some(7)), (Some(33), Some(44), Some(8))]);
}

/// Without IDENTIFIER the id is before the stream id and the CPU.
#[test]
fn trailers_with_the_id_in_their_middle() {
    for (after, words_after) in [(F::default(), 0), (F::CPU, 1), (F::STREAM_ID, 1), (F::CPU | F::STREAM_ID, 2)] {
        let attrs = [attr(F::TID | F::ID | after, &[7]), attr(F::IP | F::ID | after, &[8])];
        let rest = vec![99; words_after];
        let lost = |trailer: &[u64]| record(2, 0, &words(&[&[1, 2], trailer, &rest].concat()));
        let recording = open(&attrs, &[lost(&[33, 7]), lost(&[8])]);
        let mut ids = Vec::new();
        read_all(&recording, |raw| {
            let Record::Lost(lost) = recording.parse(raw).unwrap() else { panic!() };
            assert_eq!((lost.id, lost.lost), (1, 2));
            ids.push((lost.sample_id.pid, lost.sample_id.id));
        });
        assert_eq!(ids, [(Some(33), Some(7)), (None, Some(8))], "{after}");
    }
}

#[test]
fn an_unknown_trailer_id_matters_only_where_lengths_differ() {
    let lost = record(2, 0, &words(&[1, 2, 33, 4711]));
    let same = [attr(F::IDENTIFIER | F::TID, &[7]), attr(F::IDENTIFIER | F::TID | F::IP, &[8])];
    let recording = open(&same, std::slice::from_ref(&lost));
    read_all(&recording, |raw| assert!(matches!(recording.parse(raw), Ok(Record::Lost(_)))));
    let different = [attr(F::IDENTIFIER | F::TID, &[7]), attr(F::IDENTIFIER, &[8])];
    let recording = open(&different, &[lost]);
    read_all(&recording, |raw| {
        let error = recording.parse(raw).unwrap_err().to_string();
        assert!(error.contains("LOST at") && error.contains("event id 4711"), "{error}");
    });
}
