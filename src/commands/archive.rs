//! `hbbp archive`: a recording and the files of its programs, for another machine.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use analyzer::counting::{Code, Detail, GroupBy};
use analyzer::recording::{Module, ModuleKind, Subset};
use analyzer::{Analysis, BinarySearch, CountedModule, FileIdentity, Options, analyze};
use anyhow::{Context, bail};
use archive::{is_archive, plan, write};
use model::Rules;
use otlp::is_otlp;

use crate::input::{
    BinaryArgs, DEFAULT_RECORDING, Reader, Reads, is_standard_input, open_recording, recording_of, title_of,
};
use crate::output::{count, counted, replace, written_to};
use crate::progress::Progress;

/// Pack a recording and the programs that it is of into one file for other machines
///
/// Every command reads it like a recording, and its reports are the same. Programs and libraries that samples or branches hit are packed,
/// with their separate debug files. It is a tar, compressed by zstd, that `tar xf` unpacks, too.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Recording to pack: a file, or the directory of `perf record --kcore` [default: hbbp.data]
    #[arg(value_name = "FILE")]
    recording: Option<PathBuf>,

    /// File to write; `-` for standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Pack all programs and libraries that were mapped, also those that nothing hit
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    binaries: BinaryArgs,
}

const READER: Reader = Reader { name: "hbbp archive", reads: Reads::Recordings, records: false };

const EXAMPLES: &str = "\
Examples:
  hbbp archive run.data -o run.tar.zst    on the machine where it was recorded
  hbbp annotate run.tar.zst               on any other
  hbbp diff monday.tar.zst tuesday.tar.zst";

/// Looks for the files, and packs them.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let file = args.recording.as_deref().unwrap_or(Path::new(DEFAULT_RECORDING));
    if is_standard_input(file) {
        bail!("{} packs files: write the recording to one first", READER.name);
    }
    if file.is_file() && is_archive(file) {
        bail!("{} is an archive already", file.display());
    }
    let search = args.binaries.search();
    // It is a recording that is packed, not the profiles that it is made of.
    let made =
        is_otlp(file).then(|| recording_of(file, &search)).transpose().with_context(|| file.display().to_string())?;
    let packed_recording = made.as_ref().map_or(file, |made| made.path());
    let recording = open_recording(packed_recording, &READER, &search)?;
    let search = search.of_recording(&recording);
    if FileIdentity::at(&args.output) == FileIdentity::at(file) {
        bail!("{} is the recording itself: name another file to write", args.output.display());
    }
    let progress = Progress::new();
    let options = Options {
        search: search.clone(),
        subset: Subset::Whole,
        group_by: GroupBy::default(),
        detail: Detail::Calls,
        core: None,
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        rules: &Rules::default(),
    };
    let analysis = analyze(&recording, &options, &|step| progress.step(step))?;
    let search = search.among(analysis.modules.iter().map(|(_, module)| module));
    let data = recording.directory().map(|directory| directory.join("data"));
    let packed_recording = data.as_deref().unwrap_or(packed_recording);
    let named = |module: &Module| analysis.counted.iter().any(|of| has_known_functions(&analysis, of, module));
    let mut plan = plan(packed_recording, modules(&analysis, args.all, &search).into_iter(), named, &search)?;
    plan.contents.recording.name = title_of(file);
    let output = FileIdentity::at(&args.output);
    let mut packed = plan.files.iter().map(|file| &file.place);
    if let Some(packed) = packed.find(|packed| output.is_some() && FileIdentity::at(packed) == output) {
        bail!("{} is {}, which is packed: name another file to write", args.output.display(), packed.display());
    }
    let show = |done, all| progress.show("packing", done, all);
    replace(&args.output, |out| write(&plan, out, &show))?;
    drop(progress);
    for module in &plan.contents.modules {
        if let Some(why) = &module.missing {
            say!("{} is not in it: {why}", module.path);
        }
    }
    say!(
        "{}, {}, {}: {} bytes, written to {}",
        plan.contents.recording.name,
        counted(plan.binaries as u64, "program or library", "programs and libraries"),
        counted(plan.debug_files as u64, "file of debug information", "files of debug information"),
        count(plan.contents.bytes() as f64),
        written_to(&args.output)
    );
    Ok(ExitCode::SUCCESS)
}

/// Whether it is what was counted in a module whose functions are known by name alone, and is in one of them.
fn has_known_functions(analysis: &Analysis, counted: &CountedModule, module: &Module) -> bool {
    let Code::Unread { blocks, functions, .. } = &counted.counts.code else { return false };
    let of = analysis.modules.get(counted.counts.module);
    of.path == module.path
        && of.build_id == module.build_id
        && blocks.iter().any(|block| functions.at(block.start).is_some())
}

/// The modules whose files reports read: those that were hit; and of LBR call stacks, those that only called. The recording has the code of
/// some itself, and only the kernel's may be that of a file that was named.
fn modules<'a>(analysis: &'a Analysis, all: bool, search: &BinarySearch) -> Vec<&'a Module> {
    let may_have_file = |module: &Module| {
        matches!(module.kind, ModuleKind::File | ModuleKind::Kernel | ModuleKind::KernelModule) || module.is_vdso()
    };
    let instead = |module: &Module| module.kind == ModuleKind::Kernel && search.is_given_for(module);
    let is_file = |module: &&Module| may_have_file(module) && (module.code.is_none() || instead(module));
    if all || analysis.calls.as_ref().is_some_and(|calls| calls.events.is_some()) {
        return analysis.modules.iter().map(|(_, module)| module).filter(is_file).collect();
    }
    let hit = analysis.counted.iter().map(|module| analysis.modules.get(module.counts.module));
    hit.filter(is_file).collect()
}
