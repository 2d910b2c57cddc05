//! `hbbp export`: profiles for compilers, optimizers and other tools.

mod bolt_yaml;
pub(super) mod contexts;
mod propeller;
mod sampled;

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use analyzer::BinarySearch;
use analyzer::calls::Calls;
use analyzer::flow::{AnalysedFlow, Flow};
use analyzer::recording::{ModuleTable, Sources, Vendor, metadata_of, notes, read_tasks};
use analyzer::sample_profile::{Names, SampleProfile};
use anyhow::bail;
use clap::ValueEnum;
use perfdata::Recording;

use crate::commands::truth::read_truth;
use crate::input::{Input, InputArgs, Reader, Reads, SideOfFile, is_recording};
use crate::output;
use crate::output::profile::{self, GcovVersion, InclusiveCosts, NotWritten, Profiled, Recorded};
use crate::output::{write_to, written_to};
use crate::usage::wrong_usage;
use sampled::sample_profile;

/// Write a profile for a compiler, an optimizer or another tool
///
/// Reads a recording, a file of `hbbp merge`, or exact counts (of `hbbp truth`, or with --truth of others). Most formats are profiles of one binary: the one named
/// with --binary, or else the one that ran most.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(mut_arg("model", |model| model.help(MODEL)))]
pub struct Args {
    /// Format of the profile
    #[arg(long, value_enum)]
    format: Format,

    /// Exact counts instead of a recording: what `hbbp truth` wrote, or a file of callgrind (--dump-instr=yes) or of SDE's -mix
    #[arg(long, value_name = "FILE", conflicts_with_all = ["recording", "input", "command"])]
    truth: Option<PathBuf>,

    /// Version of the `gcov` format [default: 2]
    #[arg(long, value_enum, value_name = "N")]
    gcov_version: Option<GcovVersion>,

    /// Write the order of functions to this file, with format propeller: for lld's `--symbol-ordering-file=`
    #[arg(long, value_name = "FILE")]
    ld_profile: Option<PathBuf>,

    /// Only the samples whose stacks are the branch source (`lbr` at the head of reports with `-v`), with format perf-script: what
    /// `llvm-profgen --perfscript` counts, of a recording of several events
    #[arg(long)]
    stacks_only: bool,

    /// Leave out what was inlined, and do not read debug information, with the formats of calling contexts
    #[arg(long)]
    no_inline: bool,

    #[command(flatten)]
    input: InputArgs,

    /// Write the profile to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// What can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// For `llvm-bolt -data`: branches and fall-throughs, or samples where there are no branches
    Bolt,
    /// The same with hashes of blocks, by which `llvm-bolt -infer-stale-profile` finds them in another build; made by llvm-bolt, which must
    /// be installed
    BoltYaml,
    /// For `perf2bolt -pa`: branches and ranges by address
    BoltPreagg,
    /// For `llvm-profgen --unsymbolized-profile`: ranges and branches
    LlvmProfgen,
    /// For clang's `-fprofile-sample-use=` and rustc's `-Cprofile-sample-use=` (older versions: `-Zprofile-sample-use=`), as text
    LlvmText,
    /// The same in the binary form, which compilers read faster
    LlvmExtbin,
    /// For GCC's `-fauto-profile=`
    Gcov,
    /// For clang's `-fbasic-block-sections=list=` (Propeller, `cc_profile`): the order of blocks; that of functions with --ld-profile
    Propeller,
    /// For `pprof`: all code, by function and line, with what was inlined
    Pprof,
    /// For OpenTelemetry collectors (OTLP profiles, a signal in development): all code, by function and line, and calling contexts
    Otlp,
    /// For callgrind_annotate and KCachegrind: all code, by instruction and line, with calls
    Callgrind,
    /// For scripts that read the text of Intel SDE's `-mix`: all code, blocks and instructions by class
    SdeMix,
    /// What `perf script --show-mmap-events -F ip,brstack` prints of the recording
    PerfScript,
    /// Folded stacks of calling contexts, for flame graph tools: `main;parse 1200`
    Folded,
    /// A flame graph of calling contexts, as SVG, for browsers
    Flamegraph,
    /// Calling contexts for speedscope
    Speedscope,
    /// Calling contexts for the Firefox Profiler
    Firefox,
}

const READER: Reader = Reader { name: "hbbp export", reads: Reads::Flows, records: true };

const MODEL: &str = "\
Count blocks by the source that is chosen for each (--format pprof, otlp, callgrind, sde-mix and those of calling contexts): the file of a model, \
`published` (the paper's rule), or the kind of sources that a model is for (hardware, software, simulated) [default: as `hbbp mix` does for \
calling contexts; for the others branches alone, or samples where there are none]";

const EXAMPLES: &str = "\
Examples:
  clang -O2 -gline-tables-only -fdebug-info-for-profiling -funique-internal-linkage-names server.c
  hbbp export --format llvm-extbin -o server.prof -- ./a.out
  clang -O2 -fprofile-sample-use=server.prof server.c

  gcc -O2 -g server.c
  hbbp export --format gcov -o server.gcov -- ./a.out
  gcc -O2 -fauto-profile=server.gcov server.c

  hbbp export --format llvm-profgen run.data --binary ./server -o server.ranges
  llvm-profgen --unsymbolized-profile=server.ranges --binary=./server --output=server.prof
  hbbp export --format perf-script --stacks-only run.data -o server.script
  llvm-profgen --perfscript=server.script --binary=./server --output=server.prof

  hbbp export --format bolt run.data --binary ./server -o server.fdata
  llvm-bolt ./server -o server.bolt -data=server.fdata -reorder-blocks=ext-tsp
  hbbp export --format bolt-yaml run.data --binary ./server -o server.yaml
  llvm-bolt ./next -o next.bolt -data=server.yaml -infer-stale-profile -reorder-blocks=ext-tsp

  clang -O2 -fbasic-block-sections=labels -fuse-ld=lld -o server server.c
  hbbp export --format propeller run.data --binary ./server -o cc_profile.txt --ld-profile ld_profile.txt
  clang -O2 -fbasic-block-sections=list=cc_profile.txt -fuse-ld=lld \\
        -Wl,--symbol-ordering-file=ld_profile.txt,--no-warn-symbol-ordering -o server server.c

  hbbp export --format callgrind -o sort.callgrind -- sort -n -o sorted.txt numbers.txt
  hbbp export --format flamegraph run.data -o run.svg";

/// Writes a recording or a flow as a profile for another tool.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    for (option, is_given, format) in [
        ("--gcov-version", args.gcov_version.is_some(), Format::Gcov),
        ("--stacks-only", args.stacks_only, Format::PerfScript),
        ("--ld-profile", args.ld_profile.is_some(), Format::Propeller),
    ] {
        if is_given && args.format != format {
            wrong_usage::<Args>(READER.name, format!("{option} is for --format {}", format.name()));
        }
    }
    if let Some(functions) =
        args.ld_profile.as_deref().filter(|functions| is_one_file(args.output.as_deref(), functions))
    {
        let why = format!("-o and --ld-profile both name {}: give each a file of its own", written_to(functions));
        wrong_usage::<Args>(READER.name, why);
    }
    if args.no_inline && !args.format.has_contexts() {
        let why = "--no-inline is for --format folded, flamegraph, speedscope and firefox";
        wrong_usage::<Args>(READER.name, why);
    }
    if args.input.analysis.chooses() && args.format != Format::PerfScript {
        check_choice(args);
    }
    let is_binary = matches!(args.format, Format::LlvmExtbin | Format::Gcov | Format::Pprof | Format::Otlp);
    if is_binary && args.output.is_none() && io::stdout().is_terminal() {
        bail!("this format is binary and standard output a terminal: name a file with -o");
    }
    match args.format {
        Format::PerfScript => check_samples(args)?,
        Format::BoltYaml => {
            bolt_yaml::Bolt::find()?;
        }
        format if format.has_contexts() => contexts::check(args.truth.as_deref(), &args.input, &format.name())?,
        _ => {}
    }
    let input = args.input.begin(reader(args.format), None)?;
    input.end(write(args, &input))
}

/// Whether what goes to both would be in one file, which need not be there yet, or on standard output.
fn is_one_file(one: Option<&Path>, other: &Path) -> bool {
    let is_standard_output = |file: &Path| file == Path::new("-");
    let Some(one) = one.filter(|one| !is_standard_output(one)) else { return is_standard_output(other) };
    let place = |file: &Path| {
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let named = || Some(folder.canonicalize().ok()?.join(file.file_name()?));
        // Pipes and devices take both.
        let is_special = std::fs::metadata(file).is_ok_and(|is| !is.is_file());
        if is_special { None } else { file.canonicalize().ok().or_else(named) }
    };
    place(one).is_some_and(|one| place(other) == Some(one))
}

impl Args {
    /// Where contexts are written, and how many threads read what was inlined, if that is wanted.
    fn of_contexts(&self) -> (Option<&Path>, Option<usize>) {
        (self.output.as_deref(), (!self.no_inline).then(|| self.input.analysis.threads()))
    }
}

/// Samples are in recordings only.
fn reader(format: Format) -> &'static Reader {
    const OF_SAMPLES: Reader = Reader { reads: Reads::Recordings, ..READER };
    if format == Format::PerfScript || format.has_contexts() { &OF_SAMPLES } else { &READER }
}

fn write(args: &Args, input: &Input<'_>) -> anyhow::Result<()> {
    match args.format {
        Format::Bolt => of_one_binary(args, input, profile::bolt),
        Format::BoltYaml => of_bolt_yaml(args, input),
        Format::BoltPreagg => of_one_binary(args, input, profile::bolt_preagg),
        Format::LlvmProfgen => of_one_binary(args, input, profile::llvm_profgen),
        Format::LlvmText => of_source(args, input, Names::Llvm, profile::llvm_text),
        Format::LlvmExtbin => of_source(args, input, Names::Llvm, profile::llvm_extbin),
        Format::Gcov => of_source(args, input, Names::Gcc, |sampled, out| {
            profile::gcov(sampled, args.gcov_version.unwrap_or(GcovVersion::V2), out)
        }),
        Format::Propeller => of_layout(args, input),
        Format::Pprof => of_all_code(args, input, profile::pprof),
        Format::Otlp => otlp(args, input),
        Format::Callgrind => callgrind(args, input),
        Format::SdeMix => of_all_code(args, input, profile::sde_mix),
        Format::PerfScript => of_samples(args, input),
        Format::Folded => contexts::write(input, args.of_contexts(), profile::folded),
        Format::Flamegraph => contexts::write(input, args.of_contexts(), profile::flamegraph),
        Format::Speedscope => contexts::write(input, args.of_contexts(), profile::speedscope),
        Format::Firefox => contexts::write(input, args.of_contexts(), profile::firefox),
    }
}

/// Ends the command where there is nothing to choose between sources for.
fn check_choice(args: &Args) {
    let wrong = |why: String| wrong_usage::<Args>(READER.name, why);
    if !matches!(args.format, Format::Pprof | Format::Otlp | Format::Callgrind | Format::SdeMix)
        && !args.format.has_contexts()
    {
        let format = args.format.name();
        wrong(format!(
            "--model is for --format pprof, otlp, callgrind, sde-mix and those of calling contexts, which count blocks; {format} is made from branches, or from samples \
             where there are none, as they were seen"
        ));
    }
    let counted = match &args.truth {
        Some(file) => Some(file.as_path()),
        None => args.input.file().filter(|file| !is_recording(file)),
    };
    if let Some(file) = counted {
        wrong(format!("--model chooses between the sources of a recording: {} is none", file.display()));
    }
}

impl Format {
    /// Whether it is of calling contexts.
    fn has_contexts(self) -> bool {
        matches!(self, Format::Folded | Format::Flamegraph | Format::Speedscope | Format::Firefox)
    }

    fn name(self) -> String {
        self.to_possible_value().map_or(String::new(), |value| value.get_name().to_string())
    }
}

/// `write` returns what has no place in the format, in sentences.
fn of_one_binary(
    args: &Args,
    input: &Input<'_>,
    write: fn(&Profiled<'_>, &mut dyn Write) -> io::Result<Vec<String>>,
) -> anyhow::Result<()> {
    let flow = flow(args, input)?;
    let profiled = chosen(args, &flow)?;
    if matches!(args.format, Format::Bolt | Format::BoltPreagg) {
        check_class(&profiled)?;
    }
    if args.format != Format::Bolt {
        check_branches(&profiled)?;
    }
    if matches!(args.format, Format::Bolt | Format::BoltPreagg) && profiled.code.binary.image.is_stripped() {
        say!("the file has no symbols: BOLT refuses it unless it is told --allow-stripped");
    }
    let notes = write_to(args.output.as_deref(), |out| Ok(write(&profiled, out)?))?;
    notes.iter().for_each(output::say);
    Ok(())
}

/// Ends the command where BOLT does not take the file.
fn check_class(profiled: &Profiled<'_>) -> anyhow::Result<()> {
    if profiled.code.binary.image.address_bytes() == 4 {
        bail!(
            "{} is an ELF file of 32 bits, and BOLT takes those of 64 bits only: for compilers there are --format llvm-extbin and gcov",
            profiled.module.module.path
        );
    }
    Ok(())
}

/// The module that a profile is of. What is not in it is said.
fn chosen<'a>(args: &Args, (flow, notes): &'a (AnalysedFlow, Vec<String>)) -> anyhow::Result<Profiled<'a>> {
    let profiled = Profiled::choose(flow, &args.input.analysis.search())?;
    notes.iter().chain(&profiled.describe()).for_each(output::say);
    Ok(profiled)
}

/// Ends the command where there are no branches to make a profile of.
fn check_branches(profiled: &Profiled<'_>) -> anyhow::Result<()> {
    if profiled.module.ranges.is_empty() {
        bail!(
            "there are no branches of {}, only samples: of them can be made --format bolt, llvm-text, llvm-extbin, gcov, pprof, \
             callgrind and sde-mix",
            profiled.module.module.path
        );
    }
    Ok(())
}

/// Made by `llvm-bolt`, from what the format `bolt` is.
fn of_bolt_yaml(args: &Args, input: &Input<'_>) -> anyhow::Result<()> {
    let flow = flow(args, input)?;
    let profiled = chosen(args, &flow)?;
    check_class(&profiled)?;
    check_branches(&profiled)?;
    bolt_yaml::write(&profiled, args.output.as_deref())
}

/// The order of blocks and functions; made before the files are.
fn of_layout(args: &Args, input: &Input<'_>) -> anyhow::Result<()> {
    let flow = flow(args, input)?;
    let profiled = chosen(args, &flow)?;
    check_branches(&profiled)?;
    propeller::write(&profiled, args.output.as_deref(), args.ld_profile.as_deref())
}

/// Counts by source position; made before the file is.
fn of_source(
    args: &Args,
    input: &Input<'_>,
    names: Names,
    write: impl Fn(&SampleProfile, &mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<()> {
    let flow = flow(args, input)?;
    let profiled = chosen(args, &flow)?;
    let sampled = sample_profile(&profiled, names, args.input.analysis.threads())?;
    write_to(args.output.as_deref(), |out| Ok(write(&sampled, out)?))
}

/// With what calls cost, as far as branch records show it.
fn callgrind(args: &Args, input: &Input<'_>) -> anyhow::Result<()> {
    let (flow, notes, contexts) = flow_with(args, input, true)?;
    let costs = contexts.as_ref().map(|(calls, modules)| InclusiveCosts::of(calls, modules));
    write_all_code(args, (flow, notes), |flow, search, threads, out| {
        profile::callgrind(flow, costs.as_ref(), (search, threads), out)
    })
}

/// With who called whom, as far as branch records show it.
fn otlp(args: &Args, input: &Input<'_>) -> anyhow::Result<()> {
    let (flow, notes, contexts) = flow_with(args, input, true)?;
    let recorded = match args.truth {
        None => input.opened().map(recorded).unwrap_or_default(),
        Some(_) => Recorded::default(),
    };
    write_all_code(args, (flow, notes), |flow, search, threads, out| {
        profile::otlp(flow, contexts.as_ref(), &recorded, (search, threads), out)
    })
}

/// When and where a recording was made, as far as it says so.
fn recorded(recording: &Recording) -> Recorded {
    let metadata = metadata_of(recording).unwrap_or_default();
    Recorded {
        began_unix_ns: metadata.began_unix_ns.unwrap_or(0),
        duration_ns: metadata.duration_ns.unwrap_or(0),
        host: recording.features().hostname.clone(),
    }
}

fn of_all_code(
    args: &Args,
    input: &Input<'_>,
    write: impl Fn(&AnalysedFlow, &BinarySearch, usize, &mut dyn Write) -> io::Result<Vec<String>>,
) -> anyhow::Result<()> {
    write_all_code(args, flow(args, input)?, write)
}

fn write_all_code(
    args: &Args,
    (flow, notes): (AnalysedFlow, Vec<String>),
    write: impl Fn(&AnalysedFlow, &BinarySearch, usize, &mut dyn Write) -> io::Result<Vec<String>>,
) -> anyhow::Result<()> {
    let all = flow.flow();
    if all.range_total() + all.sample_total() <= 0.0 {
        bail!("nothing was seen running");
    }
    let sampled_only = if flow.is_by_choice() { None } else { profile::sampled_only(all) };
    let left_out = profile::left_out(all).into_iter().chain(sampled_only);
    notes.into_iter().chain(left_out).for_each(output::say);
    let (search, threads) = (args.input.analysis.search(), args.input.analysis.threads());
    let notes = write_to(args.output.as_deref(), |out| Ok(write(&flow, &search, threads, out)?))?;
    notes.iter().for_each(output::say);
    Ok(())
}

fn flow(args: &Args, input: &Input<'_>) -> anyhow::Result<(AnalysedFlow, Vec<String>)> {
    let (flow, notes, _) = flow_with(args, input, false)?;
    Ok((flow, notes))
}

/// The flow, what is weaker in it than it could be, and calling contexts if they are asked for and known.
fn flow_with(args: &Args, input: &Input<'_>, contexts: bool) -> anyhow::Result<Exported> {
    let search = args.input.analysis.search();
    match &args.truth {
        Some(file) => {
            let (flow, notes) = Flow::of_truth(&read_truth(file, search.clone())?, &search);
            Ok((flow.into(), notes, None))
        }
        None => {
            let SideOfFile { flow, notes, contexts, .. } = input.flow(contexts)?;
            Ok((flow, notes, contexts))
        }
    }
}

/// A flow, notes on it, and its calling contexts with the modules of their functions.
type Exported = (AnalysedFlow, Vec<String>, Option<(Calls, ModuleTable)>);

/// What says nothing of samples is refused before a command runs for nothing.
fn check_samples(args: &Args) -> anyhow::Result<()> {
    if args.truth.is_some() {
        bail!("exact counts have no samples: --format perf-script is made from recordings only");
    }
    if let Some(option) = args.input.analysis.given() {
        let why = format!("{option} changes nothing here: --format perf-script prints the recording as it is");
        wrong_usage::<Args>(READER.name, why);
    }
    Ok(())
}

/// Every sample as it stands in the recording.
fn of_samples(args: &Args, input: &Input<'_>) -> anyhow::Result<()> {
    let recording = input.recording()?;
    notes(recording).for_each(output::say);
    let only = if args.stacks_only { Some(branch_events(recording)?) } else { None };
    let NotWritten { without_stack, of_other_events, malformed } =
        write_to(args.output.as_deref(), |out| profile::perf_script(recording, only.as_deref(), out))?;
    for (number, what) in [
        (without_stack, "samples without a branch stack"),
        (of_other_events, "samples of events that are not the branch source"),
        (malformed, "records that cannot be read"),
    ] {
        if number > 0 {
            say!("left out: {number} {what}");
        }
    }
    Ok(())
}

/// The events whose stacks are the branch source, by index.
fn branch_events(recording: &Recording) -> anyhow::Result<Vec<usize>> {
    let metadata = metadata_of(recording)?;
    let samples = read_tasks(recording, &metadata, &|_| {})?.records.samples;
    let vendor = Vendor::of(recording.features().cpuid.as_deref());
    let sources = Sources::of(recording.events(), vendor, &samples, &metadata, None);
    match sources.lbr {
        Some(source) => Ok(source.events),
        None => bail!(
            "the recording has no stacks of taken branches: leave out --stacks-only, or record with branches (`hbbp record`)"
        ),
    }
}
