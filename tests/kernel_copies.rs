//! Recordings of `perf record --kcore`: a directory with the recording and a copy of the kernel that ran, laid out as `perf` does.

#[path = "support/archived.rs"]
mod archived;
mod support;
#[path = "support/synthetic.rs"]
mod synthetic;

use std::fs;
use std::path::{Path, PathBuf};

use perfdata::{Avma, FeatureBit, Features, Mmap};
use serde_json::{Value, json};
use synthetic::{A, A_JNE, B, Burst, C, D, D_JMP, Recorder, burst_metadata};

const TEXT: u64 = 0xffff_ffff_9f00_0000;
/// Where a module is loaded, what it is called, and its file.
const MODULE: u64 = 0xffff_ffff_c040_0000;
const MODULE_FILE: &str = "/lib/modules/6.1.0/kernel/sound/snd-timer.ko.xz";
/// A program of BPF: clc, stc, cmc, ret.
const PROGRAM: u64 = 0xffff_ffff_c060_0040;
const PROGRAM_NAME: &str = "bpf_prog_0123456789abcdef_count";
const KERNEL: &str = "[kernel.kallsyms]";

/// 20 nops, `jne`, 3 nops, `jmp`, 3 nops, `jmp`.
fn text() -> Vec<u8> {
    [&[0x90; 20][..], &[0x75, 0x05], &[0x90; 3], &[0xeb, 0x02], &[0x90; 3], &[0xeb, 0xe0]].concat()
}

/// A page with the code at its beginning.
fn page(at: usize, code: &[u8]) -> Vec<u8> {
    let mut page = vec![0; 4096];
    page[at..at + code.len()].copy_from_slice(code);
    page
}

/// A core file as `perf` writes it: a program header for each range, and no sections.
fn core(segments: &[(u64, &[u8])]) -> Vec<u8> {
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    file.extend([4, 0, 62, 0, 1, 0, 0, 0]);
    [0, 64, 0_u64].iter().for_each(|word| file.extend(word.to_le_bytes()));
    file.extend(0_u32.to_le_bytes());
    [64, 56, segments.len() as u16, 0, 0, 0].iter().for_each(|half| file.extend(half.to_le_bytes()));
    let mut offset = 4096 * (64 + 56 * segments.len() as u64).div_ceil(4096);
    let first = offset as usize;
    for (start, bytes) in segments {
        let size = bytes.len() as u64;
        file.extend([1, 0, 0, 0, 7, 0, 0, 0]);
        [offset, *start, 0, size, size, 4096].iter().for_each(|word| file.extend(word.to_le_bytes()));
        offset += size;
    }
    file.resize(first, 0);
    segments.iter().for_each(|(_, bytes)| file.extend(*bytes));
    file
}

/// The memory of the kernel, its module at 0x10 of its page, and the program.
fn copied() -> Vec<u8> {
    let modules = [page(0x10, &text()), page(0, &[]), page(0x40, &[0xf8, 0xf9, 0xf5, 0xc3])];
    let [module, data, program] = modules.each_ref().map(Vec::as_slice);
    core(&[(TEXT, &page(0, &text())), (MODULE, &[module, data].concat()), (PROGRAM & !0xfff, program)])
}

fn symbols(text: u64, module: u64) -> String {
    let (work, read, data) = (text + C - A, module + 0x10 + C - A, module + 0x1000);
    let (enter, program) = (module + 0x10, PROGRAM);
    format!(
        "{text:016x} T _text\n{text:016x} t entry\nodd\n{work:016x} t work\n{enter:016x} t timer_open\t[snd_timer]\n\
         {data:016x} d timers\t[snd_timer]\n{read:016x} t timer_read\t[snd_timer]\n{program:016x} t {PROGRAM_NAME}\t[bpf]\n"
    )
}

fn list(module: u64) -> String {
    format!("snd 114688 1 snd_timer, Live 0xffffffffc0500000\nsnd_timer 8192 1 snd, Live {module:#x} (E)\n")
}

/// Samples of the program, of the kernel, of the module and of the program of BPF.
fn recorder(folder: &Path) -> Option<Recorder> {
    let binary = synthetic::program(folder, "four", &[])?;
    let mut recorder = Recorder::traced(&binary);
    let mapping = Recorder::kernel_mapping(TEXT, b"[kernel.kallsyms]_text");
    recorder.map(&mapping);
    recorder.map(&Mmap { start: Avma(MODULE), len: 0x2000, pgoff: 0, path: MODULE_FILE.as_bytes(), ..mapping });
    recorder.ksymbol(PROGRAM, 4, PROGRAM_NAME.as_bytes(), false);
    let around = [(A_JNE, C), (D_JMP, A)];
    recorder.burst(&Burst { ip: A, branches: &around, instructions: 25, period: 25 });
    recorder.sample(A);
    recorder.sample(D);
    [TEXT, MODULE + 0x10, MODULE + 0x10 + C - A, PROGRAM].iter().for_each(|ip| recorder.kernel_sample(*ip));
    Some(recorder)
}

/// `perf.data` as a directory with what `perf` copies. `version`: what it says of its directory.
fn directory(folder: &Path, recorder: Recorder, version: u64) -> PathBuf {
    let directory = folder.join("perf.data");
    let copy = directory.join("kcore_dir");
    fs::create_dir_all(&copy).unwrap();
    let mut features = Features { os_release: Some("6.1.0".into()), ..burst_metadata("instructions") };
    features.other.insert(FeatureBit::DIR_FORMAT, version.to_le_bytes().to_vec());
    fs::write(directory.join("data"), recorder.finish(&features)).unwrap();
    fs::write(copy.join("kcore"), copied()).unwrap();
    fs::write(copy.join("kallsyms"), symbols(TEXT, MODULE)).unwrap();
    fs::write(copy.join("modules"), list(MODULE)).unwrap();
    directory
}

fn recorded(folder: &Path) -> Option<PathBuf> {
    Some(directory(folder, recorder(folder)?, 0))
}

/// The rows of a mix of code of the kernel.
fn rows(file: &Path, more: &[&str]) -> Vec<String> {
    let arguments = ["mix", file.to_str().unwrap(), "--rows", "module,function,mnemonic", "--format", "csv"];
    let csv = support::stdout(&[&arguments, more].concat());
    let row = |line: &str| line.split(',').take(3).collect::<Vec<_>>().join(" ");
    let is_of_kernel = |row: &String| !row.contains("four");
    let mut rows: Vec<String> = csv.lines().skip(1).map(row).filter(is_of_kernel).collect();
    rows.sort();
    rows
}

/// All code of the kernel is read.
fn all() -> Vec<String> {
    let mut rows = vec![
        format!("{KERNEL} entry jne"),
        format!("{KERNEL} entry nop"),
        format!("{MODULE_FILE} timer_open jne"),
        format!("{MODULE_FILE} timer_open nop"),
        format!("{MODULE_FILE} timer_read nop"),
    ];
    rows.extend(["clc", "stc", "cmc", "ret"].map(|name| format!("{PROGRAM_NAME} {PROGRAM_NAME} {name}")));
    rows.sort();
    rows
}

/// What is said of unread code.
fn said(file: &Path, more: &[&str]) -> String {
    support::stdout(&[&["mix", "-v", file.to_str().unwrap()], more].concat())
}

#[test]
fn a_directory_is_read_with_the_kernel_and_its_modules() {
    let folder = tempfile::tempdir().unwrap();
    let Some(directory) = recorded(folder.path()) else { return };
    assert_eq!(rows(&directory, &[]), all());
    let blocks = support::stdout(&["blocks", directory.to_str().unwrap(), "--format", "json"]);
    assert!(blocks.contains(r#""start":16,"#), "addresses are those in the module: {blocks}");
    // The same files, named for the kernel: its modules are read from them, too.
    let data = directory.join("data");
    let given = format!("{KERNEL}={}", directory.join("kcore_dir/kcore").display());
    assert_eq!(rows(&data, &["--binary", &given]), all());
    assert!(!rows(&data, &[]).iter().any(|row| row.contains("nop")), "{:?}", rows(&data, &[]));
}

/// Exact counts of the program.
fn exact(program: &Path) -> Value {
    let block = json!({"module": 0, "start": A, "end": B, "instructions": 21, "decoded": true, "function": "_start", "ebs": 0, "lbr": 0,
        "count": 9, "chosen": "truth", "bias": false, "ebs_samples": 0, "lbr_streams": 0});
    json!({"schema": "hbbp-blocks/1", "source": "truth", "instructions": 189,
        "head": {"source": "truth", "unit": "executions", "engine": "callgrind-3.19.0", "command": "./four", "processes": 1,
            "counted": 189, "left_out": [], "environment": {}},
        "modules": [{"path": program, "build_id": null, "read": true}], "blocks": [block]})
}

#[test]
fn every_command_takes_a_directory_for_a_recording() {
    let folder = tempfile::tempdir().unwrap();
    let Some(directory) = recorded(folder.path()) else { return };
    let file = directory.to_str().unwrap();
    let archive = folder.path().join("run.tar.zst");
    let archive = archive.to_str().unwrap();
    for (arguments, expected) in [
        (&["annotate", file, "--color", "never"][..], "timer_read"),
        (&["blocks", file], "timer_read"),
        (&["export", file, "--format", "folded"], "timer_read"),
        (&["report", file, "-o", "-"], "<html"),
        (&["vectorization", file, "--format", "json"], "hbbp-vectorization/1"),
        (&["paths", file, "--format", "json"], "hbbp-paths/1"),
        (&["diff", file, file, "--rows", "function"], "timer_read"),
        (&["merge", file, "-o", "-"], "snd-timer"),
        (&["archive", file, "-o", archive], ""),
        (&["mix", archive, "--rows", "function"], "timer_read"),
        (&["mix", "-i", file, "--rows", "function"], "timer_read"),
    ] {
        let text = support::stdout(arguments);
        assert!(text.contains(expected), "{arguments:?}: {text}");
    }
    let truth = folder.path().join("truth.json");
    fs::write(&truth, exact(&folder.path().join("four")).to_string()).unwrap();
    let validated = support::stdout(&["validate", file, "--truth", truth.to_str().unwrap()]);
    assert!(validated.contains("four"), "{validated}");
}

/// Where it is means nothing in another recording.
#[test]
fn what_the_kernel_has_made_is_not_merged() {
    let folder = tempfile::tempdir().unwrap();
    let Some(directory) = recorded(folder.path()) else { return };
    let merged = folder.path().join("merged.json");
    support::stdout(&["merge", directory.to_str().unwrap(), "-o", merged.to_str().unwrap()]);
    let flow: Value = serde_json::from_slice(&fs::read(merged).unwrap()).unwrap();
    let has_counts = |name: &str| {
        let module = flow["modules"].as_array().unwrap().iter().find(|module| module["path"] == name);
        let has = |of: &str| module.is_some_and(|module| module[of].as_array().is_some_and(|list| !list.is_empty()));
        ["ranges", "branches", "samples"].iter().any(|of| has(of))
    };
    assert!(has_counts(MODULE_FILE) && !has_counts(PROGRAM_NAME) && !has_counts(KERNEL), "{flow}");
}

#[test]
fn other_directories_are_refused_with_what_was_expected() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let refused = |file: &Path, expected: &str| {
        for command in [&["mix"][..], &["blocks"], &["annotate"], &["merge", "-o", "-"], &["archive", "-o", "-"]] {
            let output = support::run(&[command, &[file.to_str().unwrap()]].concat());
            let why = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success() && why.contains(expected), "{command:?}: {why}");
        }
    };
    refused(&empty, "is a directory, and none of `perf record --kcore`");
    fs::create_dir(empty.join("data")).unwrap();
    refused(&empty, "is a directory, and none of `perf record --kcore`");
    let Some(recorder) = recorder(folder.path()) else { return };
    // What says that samples are elsewhere.
    let threads = directory(folder.path(), recorder, 1);
    let several = "its samples are in a file for each thread of the recorder (`perf record --threads`)";
    refused(&threads, several);
    refused(&threads.join("data"), several);
    let Some(recorded) = recorded(folder.path()) else { return };
    fs::write(recorded.join("data.0"), b"").unwrap();
    refused(&recorded, several);
    // Of versions that are to come, too.
    for version in [2, 1 << 8, 1 << 56] {
        let other = tempfile::tempdir().unwrap();
        let Some(recorder) = self::recorder(other.path()) else { return };
        refused(&directory(other.path(), recorder, version), several);
    }
}

/// As `perf` itself makes one.
#[test]
fn recordings_of_several_threads_are_not_taken_for_empty_ones() {
    let folder = tempfile::tempdir().unwrap();
    if !testing::has("perf") {
        return;
    }
    let file = folder.path().join("perf.data");
    let perf = ["record", "--threads", "-e", "cpu-clock", "-o", file.to_str().unwrap(), "--", "true"];
    let output = std::process::Command::new("perf").args(perf).output().unwrap();
    if !output.status.success() || !file.is_dir() {
        return testing::skip!(Tool, "perf does not record with --threads here");
    }
    for file in [&file, &file.join("data")] {
        let output = support::run(&["mix", file.to_str().unwrap()]);
        let why = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && why.contains("`perf record --threads`"), "{why}");
    }
}

#[test]
fn an_archive_has_the_code_of_the_kernel_and_its_modules() {
    let folder = tempfile::tempdir().unwrap();
    let Some(directory) = recorded(folder.path()) else { return };
    // What is no code of what ran.
    let copy = directory.join("kcore_dir/kcore");
    let more = [fs::read(&copy).unwrap(), vec![1; 1 << 20]].concat();
    fs::write(&copy, more).unwrap();
    let archive = folder.path().join("run.tar.zst");
    let reports = archived::REPORTS.iter().filter(|report| report[0] != "export");
    let report = |report: &[&str], file: &Path| {
        let output = support::run(&[report, &[file.to_str().unwrap()]].concat());
        assert!(output.status.success(), "{report:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let before: Vec<String> = reports.clone().map(|of| report(of, &directory)).collect();
    support::stdout(&["archive", directory.to_str().unwrap(), "-o", archive.to_str().unwrap()]);
    fs::remove_dir_all(&directory).unwrap();
    let after: Vec<String> = reports.map(|of| report(of, &archive)).collect();
    assert_eq!(after, before);
    assert_eq!(rows(&archive, &[]), all());
    let tar = zstd::decode_all(fs::File::open(&archive).unwrap()).unwrap();
    assert!(tar.len() < 1 << 20, "{}", tar.len());
}

#[test]
fn the_copy_goes_before_a_modules_file_unless_that_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let Some(directory) = recorded(folder.path()) else { return };
    let root = folder.path().join("root");
    let places = root.join("lib/modules/6.1.0/kernel/sound");
    fs::create_dir_all(&places).unwrap();
    let source =
        ".text\n.type timer_open, @function\ntimer_open: .rept 64\ncld\n.endr\n.size timer_open, .-timer_open\n";
    let Some(file) = synthetic::assemble(&places, "snd-timer.ko", source, &["-c"]) else { return };
    fs::copy(folder.path().join("four"), root.join("four")).unwrap();
    let below = ["--symfs", root.to_str().unwrap()];
    assert_eq!(rows(&directory, &below), all());
    let is_of_file = |row: &String| *row == format!("{MODULE_FILE} timer_open cld");
    let named = rows(&directory, &["--binary", &format!("snd-timer.ko.xz={}", file.display())]);
    assert!(named.iter().any(is_of_file) && named.contains(&format!("{KERNEL} entry nop")), "{named:?}");
    // Without the copy it is the file's.
    fs::remove_dir_all(directory.join("kcore_dir")).unwrap();
    let found = rows(&directory, &below);
    assert!(found.iter().any(is_of_file) && !found.contains(&format!("{KERNEL} entry nop")), "{found:?}");
}

#[test]
fn what_is_not_in_the_copy_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let Some(directory) = recorded(folder.path()) else { return };
    let copy = directory.join("kcore_dir");
    let (kallsyms, modules) = (copy.join("kallsyms"), copy.join("modules"));
    let module_is_unread = |expected: &str| {
        let said = said(&directory, &[]);
        assert!(said.contains(expected), "{said}");
        let rows = rows(&directory, &[]);
        assert!(rows.contains(&format!("{KERNEL} entry nop")), "{rows:?}");
        assert!(!rows.iter().any(|row| row.contains("timer_open nop")), "{rows:?}");
    };
    // It was loaded again after the copy, or first.
    let elsewhere = MODULE - 0x10_0000;
    fs::write(&kallsyms, symbols(TEXT, elsewhere)).unwrap();
    fs::write(&modules, list(elsewhere)).unwrap();
    module_is_unread("has it at 0xffffffffc0300000, and it was recorded at 0xffffffffc0400000: it was loaded twice");
    fs::write(&modules, "").unwrap();
    module_is_unread("it was not loaded when the kernel was copied");
    fs::remove_file(&modules).unwrap();
    module_is_unread("it was not loaded when the kernel was copied");
    // Another boot.
    fs::write(&kallsyms, symbols(TEXT + 0x20_0000, MODULE)).unwrap();
    fs::write(&modules, list(MODULE)).unwrap();
    assert!(said(&directory, &[]).contains("is another kernel"));
    assert!(!rows(&directory, &[]).iter().any(|row| row.contains("nop") || row.contains("clc")));
    fs::remove_file(&kallsyms).unwrap();
    assert!(said(&directory, &[]).contains("kallsyms"));
}

#[test]
fn what_was_kept_of_an_analysis_is_made_anew_when_the_copy_changes() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut recorder) = recorder(folder.path()) else { return };
    // What is small is not kept; what was written just now is not either.
    (0..30_000).for_each(|_| recorder.kernel_sample(MODULE + 0x10));
    let directory = directory(folder.path(), recorder, 0);
    let copy = directory.join("kcore_dir");
    let cache = folder.path().join("cache");
    let mix = || {
        let mut hbbp = support::hbbp();
        hbbp.args(["mix", "-v", directory.to_str().unwrap(), "--rows", "function,mnemonic"]);
        let output = hbbp.env("XDG_CACHE_HOME", &cache).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let wait = || std::thread::sleep(std::time::Duration::from_millis(2100));
    wait();
    let (made, again) = (mix(), mix());
    assert!(made.contains("timer_open") && again.contains("# cache"), "{again}");
    let changed = [
        ("kallsyms", symbols(TEXT, MODULE).replace("timer_open", "timer_shut").into_bytes(), "timer_shut"),
        ("modules", list(MODULE - 0x1000).into_bytes(), "loaded twice"),
        ("modules", list(MODULE).into_bytes(), "timer_shut"),
        ("kcore", copied().iter().map(|byte| if *byte == 0x90 { 0xf8 } else { *byte }).collect(), "clc"),
    ];
    for (name, bytes, expected) in changed {
        fs::write(copy.join(name), bytes).unwrap();
        wait();
        let changed = mix();
        assert!(!changed.contains("# cache") && changed.contains(expected), "{name}: {changed}");
        mix();
    }
}

#[test]
fn absurd_copies_do_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let Some(directory) = recorded(folder.path()) else { return };
    let copy = directory.join("kcore_dir");
    let good = [("kcore", copied()), ("kallsyms", symbols(TEXT, MODULE).into()), ("modules", list(MODULE).into())];
    let restore = || good.iter().for_each(|(name, bytes)| fs::write(copy.join(name), bytes).unwrap());
    let survives = || {
        let output = support::run(&["mix", directory.to_str().unwrap()]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    for (name, bytes) in &good {
        for length in (0..64).chain((64..bytes.len()).step_by(bytes.len() / 23)) {
            fs::write(copy.join(name), &bytes[..length]).unwrap();
            survives();
        }
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..30 {
            let mut other = bytes.clone();
            let end = other.len().min(400);
            (0..4).for_each(|_| other[random.usize(..end)] = random.u8(..));
            fs::write(copy.join(name), other).unwrap();
            survives();
        }
        fs::remove_file(copy.join(name)).unwrap();
        fs::create_dir(copy.join(name)).unwrap();
        survives();
        fs::remove_dir(copy.join(name)).unwrap();
        restore();
    }
    // Segments over each other, of all memory, and more than a kernel has.
    let code = page(0x10, &text());
    let many: Vec<(u64, &[u8])> = (0..500).map(|at| (MODULE - 8 * at, &code[..])).collect();
    fs::write(copy.join("kcore"), core(&many)).unwrap();
    survives();
    let mut huge = copied();
    for header in 0..3 {
        // Sizes in the file and in memory.
        huge[64 + 56 * header + 32..][..16].copy_from_slice(&[0xff; 16]);
    }
    fs::write(copy.join("kcore"), huge).unwrap();
    survives();
    restore();
    let module = [page(0x10, &text()), page(0, &[])].concat();
    let mut large = core(&[(TEXT, &page(0, &text())), (MODULE, &module)]);
    // The size of the module's segment in the file and in memory.
    large[64 + 56 + 32..][..16].copy_from_slice(&[(1_u64 << 29).to_le_bytes(); 2].concat());
    fs::write(copy.join("kcore"), large).unwrap();
    let sparse = fs::File::options().write(true).open(copy.join("kcore")).unwrap();
    sparse.set_len(1 << 31).unwrap();
    let mut wide = fs::read(copy.join("kallsyms")).unwrap();
    wide.extend(format!("{:016x} t far\t[snd_timer]\n", u64::MAX - 1).bytes());
    fs::write(copy.join("kallsyms"), wide).unwrap();
    fs::write(copy.join("modules"), format!("snd_timer {} 0 - Live {MODULE:#x}\n", u64::MAX)).unwrap();
    survives();
    assert!(said(&directory, &[]).contains("256 MiB"), "{}", said(&directory, &[]));
    restore();
    // A module that covers others, twice, and lines of other forms.
    let modules =
        format!("a {} 0 - Live {:#x}\n{}{}\n\0\nsnd_timer\n", u64::MAX, MODULE - 8, list(MODULE), list(MODULE));
    fs::write(copy.join("modules"), modules).unwrap();
    assert_eq!(rows(&directory, &[]), all());
}

#[test]
fn a_million_symbols_and_modules_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let Some(directory) = recorded(folder.path()) else { return };
    let copy = directory.join("kcore_dir");
    let mut kallsyms = symbols(TEXT, MODULE);
    for number in 0..1_000_000_u64 {
        let (at, of) = match number % 4 {
            0 => (TEXT + 0x1000 + number, String::new()),
            1 => (MODULE + 0x1000 + number, "\t[snd_timer]".to_owned()),
            2 => (PROGRAM, "\t[bpf]".to_owned()),
            _ => (MODULE + number, format!("\t[m{number}]")),
        };
        kallsyms.push_str(&format!("{at:x} t s{of}\n"));
    }
    fs::write(copy.join("kallsyms"), kallsyms).unwrap();
    let mut modules = list(MODULE);
    (0..200_000)
        .for_each(|number| modules.push_str(&format!("m{number} 4096 0 - Live {:#x}\n", MODULE + 0x2000 + number)));
    fs::write(copy.join("modules"), modules).unwrap();
    let rows = rows(&directory, &[]);
    assert!(rows.contains(&format!("{MODULE_FILE} timer_open nop")), "{rows:?}");
}

/// The search for both sides has neither copy: modules that are on both are compared in the code that they were counted in.
#[test]
fn comparisons_are_of_the_code_that_ran() {
    let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let sides = folders.each_ref().map(|folder| {
        let binary = synthetic::program(folder.path(), "four", &[])?;
        let mut recorder = Recorder::traced(&binary);
        let mapping = Recorder::kernel_mapping(TEXT, b"[kernel.kallsyms]_text");
        recorder.map(&mapping);
        recorder.map(&Mmap { start: Avma(MODULE), len: 0x2000, pgoff: 0, path: MODULE_FILE.as_bytes(), ..mapping });
        [TEXT, MODULE + 0x10, MODULE + 0x10 + C - A].iter().for_each(|ip| recorder.kernel_sample(*ip));
        Some(directory(folder.path(), recorder, 0))
    });
    let [Some(one), Some(same), Some(patched)] = &sides else { return };
    // Code of another function of the module is patched.
    let other: Vec<u8> = copied().into_iter().map(|byte| if byte == 0x75 { 0x74 } else { byte }).collect();
    fs::write(patched.join("kcore_dir/kcore"), other).unwrap();
    // A file of another layout.
    let root = folders[0].path().join("root");
    let places = root.join("lib/modules/6.1.0/kernel/sound");
    fs::create_dir_all(&places).unwrap();
    let source = ".text\n.type elsewhere, @function\nelsewhere: .rept 64\ncld\n.endr\n.size elsewhere, .-elsewhere\n";
    let Some(_) = synthetic::assemble(&places, "snd-timer.ko", source, &["-c"]) else { return };
    let below = ["--symfs", root.to_str().unwrap()];
    let file = |side: &Path| side.to_str().unwrap().to_owned();
    for more in [&[][..], &below] {
        for (with, is_same) in [(same, true), (patched, false)] {
            let text = support::stdout(&[&["diff", &file(one), &file(with), "--format", "json"], more].concat());
            let diff: Value = serde_json::from_str(&text).unwrap();
            let rows = diff["functions"].as_array().unwrap();
            let mut names: Vec<&str> = rows.iter().filter_map(|row| row["function"].as_str()).collect();
            names.sort_unstable();
            assert_eq!(names, ["entry", "timer_open", "timer_read"], "{text}");
            assert_eq!(rows.len(), names.len(), "{text}");
            let [functions, blocks] = ["functions", "blocks"].map(|of| diff["overlap"][of].as_f64());
            assert!(functions.is_some_and(|overlap| overlap > 0.999_999), "{text}");
            assert_eq!(blocks.is_some_and(|overlap| overlap > 0.999_999), is_same, "{text}");
        }
    }
}

#[test]
fn a_copy_that_is_refused_is_said_where_the_modules_file_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let Some(directory) = recorded(folder.path()) else { return };
    let places = folder.path().join("root/lib/modules/6.1.0/kernel/sound");
    fs::create_dir_all(&places).unwrap();
    let source =
        ".text\n.type timer_open, @function\ntimer_open: .rept 64\ncld\n.endr\n.size timer_open, .-timer_open\n";
    let Some(file) = synthetic::assemble(&places, "snd-timer.ko", source, &["-c"]) else { return };
    fs::write(directory.join("kcore_dir/kallsyms"), symbols(TEXT + 0x20_0000, MODULE)).unwrap();
    let root = folder.path().join("root");
    let said = said(&directory, &["--symfs", root.to_str().unwrap()]);
    let line = said.lines().find(|line| line.contains(&format!("its code is taken from {}", file.display())));
    assert!(line.is_some_and(|line| line.contains("is another kernel")), "{said}");
}

/// A directory that may not be searched, or here a link that leads nowhere but to itself.
#[test]
fn a_copy_that_cannot_be_looked_at_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let Some(directory) = recorded(folder.path()) else { return };
    let copy = directory.join("kcore_dir");
    fs::remove_dir_all(&copy).unwrap();
    assert!(!said(&directory, &[]).contains("kcore_dir"));
    std::os::unix::fs::symlink(&copy, &copy).unwrap();
    let said = said(&directory, &[]);
    assert!(said.contains("kcore_dir/kcore: Too many levels of symbolic links"), "{said}");
}

/// Room is for what is read: kernels have hundreds of programs, far from each other.
#[test]
fn what_is_listed_and_not_hit_takes_no_room() {
    let folder = tempfile::tempdir().unwrap();
    let Some(directory) = recorded(folder.path()) else { return };
    let list = directory.join("kcore_dir/kallsyms");
    let mut kallsyms = fs::read_to_string(&list).unwrap();
    let trampolines = (1..=300_u64).map(|number| PROGRAM + number * (2 << 20));
    trampolines.for_each(|at| kallsyms.push_str(&format!("{at:x} t ftrace_trampoline\t[__builtin__ftrace]\n")));
    fs::write(list, kallsyms).unwrap();
    assert_eq!(rows(&directory, &[]), all());
}

/// Without the mapping of the kernel nothing tells whether the copy is of it.
#[test]
fn copies_of_recordings_with_hidden_addresses_are_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let Some(binary) = synthetic::program(folder.path(), "four", &[]) else { return };
    let mut recorder = Recorder::traced(&binary);
    let mapping = Recorder::kernel_mapping(MODULE, MODULE_FILE.as_bytes());
    recorder.map(&Mmap { len: 0x2000, pgoff: 0, ..mapping });
    recorder.sample(A);
    recorder.kernel_sample(MODULE + 0x10);
    let said = said(&directory(folder.path(), recorder, 0), &[]);
    let line = said.lines().find(|line| line.contains(MODULE_FILE)).unwrap_or_else(|| panic!("{said}"));
    assert!(line.contains("the recording does not say where the kernel was"), "{said}");
}
