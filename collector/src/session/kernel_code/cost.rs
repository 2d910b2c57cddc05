//! What the copy of a kernel costs, in a file and the running one: a measurement, no test. `benches/kernel-copy` makes the file and runs it.

use std::env;
use std::hint::black_box;
use std::io::BufWriter;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use formats::metadata::RECORD_TYPE;
use perfdata::{RecordType, Writer};

use super::*;
use crate::session::record_layout::one_event;

/// Of so many runs the median is printed.
const RUNS: usize = 9;

#[test]
#[ignore = "a measurement, which benches/kernel-copy runs"]
fn cost_of_the_copy() {
    let root = PathBuf::from(env::var_os("HBBP_KERNEL_ROOT").expect("the folder that benches/kernel-copy makes"));
    println!("functions      bytes  reads  ms: names    code     all written");
    measure(&root, || Err(Errno::EPERM));
    match Memory::open(Path::new("/"), by_bpf) {
        Ok(Memory::Kcore(_)) => println!("the running kernel, from /proc/kcore:"),
        Ok(Memory::Pages(_)) => println!("the running kernel, by BPF:"),
        Err(why) => return println!("the running kernel cannot be read: {why:?}"),
    }
    measure(Path::new("/"), by_bpf);
}

/// Some functions of the kernel below `root`, and all of them.
fn measure(root: &Path, by_bpf: ByBpf) {
    let memory = Memory::open(root, by_bpf).unwrap();
    let there: Vec<u64> = starts(root).into_iter().filter(|at| memory.has(*at)).collect();
    for wanted in [100, 1000, 10_000, there.len() / 2, there.len()] {
        let mut hits = KernelHits::default();
        let step = there.len() as f64 / wanted as f64;
        let hit = (0..wanted).filter_map(|number| there.get((number as f64 * step) as usize));
        hit.for_each(|at| hits.see(&at.to_le_bytes()));
        measure_copy(root, by_bpf, &memory, &hits);
    }
}

/// Where functions begin, ascending.
fn starts(root: &Path) -> Vec<u64> {
    let list = std::fs::read(root.join("proc/kallsyms")).unwrap();
    let code = symbols::symbols(&list).filter(|symbol| symbol.kind.eq_ignore_ascii_case(&b't'));
    let mut starts: Vec<u64> = code.map(|symbol| symbol.address).collect();
    starts.sort_unstable();
    starts.dedup();
    starts
}

fn measure_copy(root: &Path, by_bpf: ByBpf, memory: &Memory, hits: &KernelHits) {
    let addresses: Vec<u64> = hits.addresses.iter().copied().collect();
    let names = || Symbols::around(&root.join("proc/kallsyms"), &addresses, &ENTRIES).unwrap();
    let symbols = names();
    let (ranges, _) = ranges(&addresses, &symbols);
    let bytes: u64 = ranges.iter().map(|range| range.end - range.start).sum();
    let named = median(|| drop(black_box(names())));
    let read = median(|| drop(black_box(copied(memory, ranges.clone()))));
    let whole = median(|| drop(black_box(hits.copy(root, by_bpf, ""))));
    let code = hits.copy(root, by_bpf, "");
    let written = median(|| {
        let out = BufWriter::with_capacity(1 << 18, tempfile::tempfile().unwrap());
        let mut writer = Writer::create(out, &one_event()).unwrap();
        for body in &code.bodies {
            writer.write_user_record(RecordType(RECORD_TYPE), body).unwrap();
        }
    });
    let (functions, pieces) = (symbols.functions.len(), ranges.len());
    let times = [named, read, whole, written].map(|time| format!("{:8.1}", time.as_secs_f64() * 1e3)).concat();
    println!("{functions:7} {bytes:10} {pieces:6} {times}");
}

fn median(mut run: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let begin = Instant::now();
            run();
            begin.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[RUNS / 2]
}
