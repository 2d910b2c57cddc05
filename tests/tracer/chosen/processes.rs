//! Threads, forks, execs, and processes that do not live long.

use std::collections::BTreeMap;

use crate::{Place, programs, text};

#[test]
fn every_thread_has_bursts_by_its_cpu_time() {
    let Some(place) = Place::to_trace() else { return };
    let Some(threads) = place.program("threads", programs::THREADS) else { return };
    // Where bursts cost more, a budget buys fewer of them in the same time. Of 50, the first thread has none in one case of four; of 250, in one
    // of a thousand.
    let mut recordings = [40, 80, 160, 320, 640, 1280]
        .iter()
        .map(|unit| place.trace(&["--overhead", "20", "--start-credit", "0"], &[text(&threads), &unit.to_string()]));
    let traced = recordings.find(|traced| traced.number("/bursts") >= 250).expect("250 bursts");
    let document = place.json(&["blocks", "--format", "json"]);
    let blocks = document["blocks"].as_array().unwrap();
    for n in 1..=8 {
        let seen = blocks.iter().filter(|block| block["function"] == format!("spin_{n}"));
        assert!(seen.map(|block| block["lbr_streams"].as_f64().unwrap()).sum::<f64>() > 0.0, "spin_{n}: {document:#}");
    }
    // A burst stands for the CPU time of its period; periods get shorter while it is found out what bursts cost. Threads begin in turn.
    let mut periods: BTreeMap<u32, u64> = BTreeMap::new();
    for burst in traced.bursts.iter().filter(|burst| burst.tid != burst.pid) {
        *periods.entry(burst.tid).or_default() += burst.pieces.iter().map(|piece| piece.period).sum::<u64>();
    }
    assert_eq!(periods.len(), 8, "{periods:?}");
    let total: u64 = periods.values().sum();
    let bursts = traced.number("/bursts") as f64;
    for (n, &period) in (1..).zip(periods.values()) {
        let share = period as f64 / total as f64;
        let expected = f64::from(n) / 36.0;
        // Four standard deviations of bursts that come by chance.
        let deviation = (expected * (1.0 - expected) / bursts).sqrt();
        assert!(
            (share - expected).abs() < 4.0 * deviation,
            "thread {n} has {share}, not {expected}, of {bursts} bursts: {periods:?}"
        );
    }
}

#[test]
fn children_have_bursts_of_their_own_program() {
    let Some(place) = Place::to_trace() else { return };
    let (Some(hot), Some(known)) = (place.program("hot", programs::HOT), place.program("known", programs::KNOWN))
    else {
        return;
    };
    // A child by fork and exec, one of a child, and an exec in place.
    let script = format!("{0} 200 & (sh -c '{1} 200; true'; true); wait; exec {1} 200", hot.display(), known.display());
    let traced = place.trace(&["--overhead", "20"], &["sh", "-c", &script]);
    let mut by_program: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for burst in &traced.bursts {
        if let Some((path, _)) = traced.locate(burst, burst.pieces[0].ip) {
            let pids = by_program.entry(path.rsplit('/').next().unwrap().to_owned()).or_default();
            if !pids.contains(&burst.pid) {
                pids.push(burst.pid);
            }
        }
    }
    assert_eq!(by_program.get("hot").map(Vec::len), Some(1), "{by_program:?}");
    assert_eq!(by_program.get("known").map(Vec::len), Some(2), "{by_program:?}");
    let blocks = place.json(&["blocks", "--format", "json"]);
    let broken = blocks["head"]["lbr_source"]["broken"].as_object().unwrap();
    assert!(broken.values().all(|count| count == 0), "{broken:?}");

    let alone = place.trace(&["--overhead", "20", "--no-inherit"], &["sh", "-c", &script]);
    assert_eq!((alone.number("/threads"), alone.number("/processes")), (1, 1));
    let [first] = alone.by_process().keys().copied().collect::<Vec<u32>>()[..] else {
        panic!("{:?}", alone.by_process())
    };
    // The shell, which becomes the program in the end.
    assert_eq!(alone.names[&first], "known");
}

#[test]
fn processes_that_do_not_live_long_have_bursts() {
    let Some(place) = Place::to_trace() else { return };
    let Some(hot) = place.program("hot", programs::HOT) else { return };
    let script = format!("i=0; while [ $i -lt 300 ]; do {} 5; i=$((i+1)); done", hot.display());
    // Following a process from fork to exit takes about a millisecond, of their five.
    let traced = place.trace(&["--overhead", "50"], &["sh", "-c", &script]);
    let mut pids: Vec<u32> = traced.bursts_in("hot").map(|burst| burst.pid).collect();
    pids.sort_unstable();
    pids.dedup();
    assert!(pids.len() >= 60, "{} of 300: {:#}", pids.len(), traced.tracer());
}
