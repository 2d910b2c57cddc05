//! What every analysis command reads: a recording, or a command that is recorded first.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufReader, IsTerminal, Read};
use std::path::{Path, PathBuf};

use analyzer::counting::{Detail, GroupBy};
use analyzer::flow::{AnalysedFlow, Flow, SCHEMA};
use analyzer::recording::{Subset, notes};
use analyzer::truth::{DocumentError, Truth};
use analyzer::uncertainty::{Rows, Side};
use analyzer::{Analysis, BinaryOverride, BinarySearch, Microarchitecture, Options, analyze};
use anyhow::{Context, bail};
use perfdata::Recording;

use crate::commands::record::{self, Wanted};
use crate::models::{self, Chosen};
use crate::output;
use crate::output::Head;
use crate::progress::Progress;

/// Where binaries are found.
#[derive(clap::Args)]
pub struct BinaryArgs {
    /// Look for binaries under this directory instead of under /
    #[arg(long, value_name = "DIR")]
    symfs: Option<PathBuf>,

    /// Read this binary instead of the recorded one; it is matched by build id or name, or stands for RECORDED (a path or name), even if
    /// that was another build
    #[arg(long = "binary", value_name = "[RECORDED=]FILE")]
    binaries: Vec<String>,
}

/// How recordings are analysed.
#[derive(clap::Args)]
pub struct AnalysisArgs {
    #[command(flatten)]
    binaries: BinaryArgs,

    /// How to choose between the sources: the file of a model, `published` (the paper's rule), or the kind of sources that a model
    /// is for (hardware, software, simulated) [default: the model for the recording's sources]
    #[arg(long, value_name = "FILE|NAME")]
    model: Option<String>,

    /// Take code to cost what it does on this core instead of the recorded CPU's (only bursts that a clock started are weighed by it):
    /// zen-2 to zen-5, skylake, ice-lake, golden-cove, gracemont, generic
    #[arg(long, value_name = "NAME", value_parser = core_by_word)]
    core: Option<Microarchitecture>,

    /// Threads to work with; the result is the same for any number [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

/// Where the recording comes from, and how it is analysed.
#[derive(clap::Args)]
pub struct InputArgs {
    /// Recording to read; `-` for standard input
    #[arg(short, long, value_name = "FILE", default_value = "hbbp.data", conflicts_with = "command")]
    input: PathBuf,

    #[command(flatten)]
    pub analysis: AnalysisArgs,

    /// Command to record and analyse in one go; its standard output goes to standard error
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl InputArgs {
    /// Records if there is a command, opens the recording and analyses it.
    pub fn analyze(&self, group_by: GroupBy) -> anyhow::Result<Analysis> {
        self.analyze_until(None, group_by)
    }

    /// The same; a command is recorded until its numbers are good enough, in the rows that these options of `mix` ask for.
    pub fn analyze_until(
        &self,
        precision: Option<(Wanted, Vec<OsString>)>,
        group_by: GroupBy,
    ) -> anyhow::Result<Analysis> {
        let chosen = self.analysis.rules()?; // Before a command runs for nothing.
        let recording = match self.command.is_empty() {
            true => self.open()?,
            false => record::record_for_analysis(&self.command, precision)?,
        };
        self.analysis.analyze(&chosen, &recording, group_by, Detail::Blocks, Subset::Whole)
    }

    /// The flow of a file, or of a command that is recorded first, and what is weaker in it than it could be, in sentences.
    pub fn flow(&self) -> anyhow::Result<(AnalysedFlow, Vec<String>)> {
        let chosen = self.analysis.rules()?;
        if let Some(file) = self.file() {
            return self.analysis.flow_of_file(&chosen, file);
        }
        self.analysis.flow(&chosen, &self.recording()?)
    }

    /// The recording that was named, or that of the command.
    pub fn recording(&self) -> anyhow::Result<Recording> {
        if self.command.is_empty() { self.open() } else { record::record_for_analysis(&self.command, None) }
    }

    /// The file that is read, if it is one.
    pub fn file(&self) -> Option<&Path> {
        (self.command.is_empty() && !is_standard_input(&self.input)).then_some(&*self.input)
    }

    /// The command to record, if it was given.
    pub fn command(&self) -> &[OsString] {
        &self.command
    }

    /// Opens the recording that was named.
    pub fn open(&self) -> anyhow::Result<Recording> {
        if is_standard_input(&self.input) {
            return Recording::from_stream(standard_input()?).context("standard input");
        }
        open_recording(&self.input)
    }
}

fn core_by_word(word: &str) -> Result<Microarchitecture, String> {
    let words = || Microarchitecture::ALL.map(Microarchitecture::word).join(", ");
    Microarchitecture::by_word(word).ok_or_else(|| format!("there are {}", words()))
}

impl AnalysisArgs {
    /// Where binaries are found.
    pub fn search(&self) -> BinarySearch {
        self.binaries.search()
    }

    /// One of the options, if there are any.
    pub fn given(&self) -> Option<&'static str> {
        let BinaryArgs { symfs, binaries } = &self.binaries;
        let options = [
            ("--symfs", symfs.is_some()),
            ("--binary", !binaries.is_empty()),
            ("--model", self.model.is_some()),
            ("--core", self.core.is_some()),
            ("--threads", self.threads.is_some()),
        ];
        options.into_iter().find(|(_, is_given)| *is_given).map(|(option, _)| option)
    }

    /// They as words, but for the number of threads.
    pub fn words(&self) -> Vec<OsString> {
        let symfs = self.binaries.symfs.iter().flat_map(|folder| ["--symfs".into(), folder.into()]);
        let binaries = self.binaries.binaries.iter().flat_map(|binary| ["--binary".into(), binary.into()]);
        let model = self.model.iter().flat_map(|model| ["--model".into(), model.into()]);
        let core = self.core.iter().flat_map(|core| ["--core".into(), core.word().into()]);
        symfs.chain(binaries).chain(model).chain(core).collect()
    }

    /// Whether it was said how to choose between the sources.
    pub fn chooses(&self) -> bool {
        self.model.is_some()
    }

    /// What decides between the sources.
    pub fn rules(&self) -> anyhow::Result<Chosen> {
        models::rules(self.model.as_deref())
    }

    /// How many threads to work with.
    pub fn threads(&self) -> usize {
        match self.threads {
            Some(threads) => usize::from(threads),
            None => std::thread::available_parallelism().map_or(1, usize::from),
        }
    }

    /// Analyses a recording, or a part of one. One without samples is said to be so, and has nothing to show.
    pub fn analyze(
        &self,
        Chosen { rules, pair }: &Chosen,
        recording: &Recording,
        group_by: GroupBy,
        detail: Detail,
        subset: Subset,
    ) -> anyhow::Result<Analysis> {
        if subset == Subset::Whole {
            notes(recording).for_each(output::say);
        }
        let threads = self.threads();
        let options = Options { search: self.search(), subset, group_by, detail, core: self.core, threads, rules };
        let progress = Progress::new();
        let mut analysis = analyze(recording, &options, &|step| progress.step(step))?;
        drop(progress);
        if let Some(nothing) = without_samples(&analysis) {
            analysis.summary.degradations.push(nothing);
            return Ok(analysis);
        }
        if let (Subset::Whole, Some(model), Some(made_for)) = (subset, &self.model, pair)
            && analysis.sources.pair() != Some(*made_for)
        {
            let sources = match analysis.sources.pair() {
                Some(pair) => format!("has {pair} sources"),
                None => "has no pair of sources to choose from".into(),
            };
            bail!("{model} is a model for {made_for} sources, and the recording {sources}: leave out --model");
        }
        Ok(analysis)
    }

    /// The flow of a recording, of a file of `hbbp merge`, or of exact counts; `-` is standard input.
    pub fn flow_of_file(&self, chosen: &Chosen, file: &Path) -> anyhow::Result<(AnalysedFlow, Vec<String>)> {
        let (flow, notes, _) = self.side_of_file(chosen, file, false)?;
        Ok((flow, notes))
    }

    /// The same, with what is known of its uncertainty where that is wanted.
    pub fn side_of_file(
        &self,
        chosen: &Chosen,
        file: &Path,
        with_errors: bool,
    ) -> anyhow::Result<(AnalysedFlow, Vec<String>, Side)> {
        if is_standard_input(file) {
            // What it is can be told by its beginning only.
            let mut kept = tempfile::NamedTempFile::new().context("a file for what standard input has")?;
            std::io::copy(&mut standard_input()?, &mut kept).context("standard input")?;
            return self.side_of_file(chosen, kept.path(), with_errors).context("standard input");
        }
        let name = || file.display().to_string();
        let begin = begin_of(file);
        if !is_document(&begin) {
            let recording = open_recording(file)?;
            return self.side(chosen, &recording, with_errors).with_context(name);
        }
        let text = || Ok::<_, anyhow::Error>(BufReader::new(File::open(file).with_context(name)?));
        let merged = || -> anyhow::Result<_> {
            Ok((Flow::read_json(text()?).with_context(name)?.placed(&self.search()).into(), Vec::new(), Side::Unknown))
        };
        if String::from_utf8_lossy(&begin).contains("\"hbbp-flow/") {
            return merged();
        }
        match Truth::read_json(text()?) {
            // Its members were put in another order.
            Err(DocumentError::Schema(schema)) if schema == SCHEMA => merged(),
            truth => {
                let (flow, notes) = Flow::of_truth(&truth.with_context(name)?, &self.search());
                Ok((flow.into(), notes, Side::Exact))
            }
        }
    }

    /// The flow of a recording, and what is weaker in it than it could be, in sentences. Its blocks are counted by a choice of source where one
    /// was asked for.
    pub fn flow(&self, chosen: &Chosen, recording: &Recording) -> anyhow::Result<(AnalysedFlow, Vec<String>)> {
        let (flow, notes, _) = self.side(chosen, recording, false)?;
        Ok((flow, notes))
    }

    fn side(
        &self,
        chosen: &Chosen,
        recording: &Recording,
        with_errors: bool,
    ) -> anyhow::Result<(AnalysedFlow, Vec<String>, Side)> {
        let analysis = self.analyze(chosen, recording, GroupBy::default(), Detail::Branches, Subset::Whole)?;
        require_samples(&analysis)?;
        let degraded = Head::of(&analysis).degraded;
        let side = if with_errors { Side::Sampled(Rows::of(&analysis).into()) } else { Side::Unknown };
        let flow = if self.chooses() { analysis.into_flow_by_choice() } else { analysis.flow.unwrap_or_default() };
        Ok((flow, degraded, side))
    }
}

/// Whether the name stands for standard input.
pub fn is_standard_input(file: &Path) -> bool {
    file == Path::new("-")
}

fn standard_input() -> anyhow::Result<impl Read> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        bail!("standard input is a terminal: pipe a recording into it, or name a file");
    }
    Ok(stdin.lock())
}

/// Whether it is none of our documents: a file of `hbbp merge`, or exact counts.
pub fn is_recording(file: &Path) -> bool {
    !is_document(&begin_of(file))
}

fn is_document(begin: &[u8]) -> bool {
    begin.trim_ascii_start().starts_with(b"{")
}

/// The first bytes of a file, in which documents of ours say what they are; none where it cannot be read.
fn begin_of(file: &Path) -> Vec<u8> {
    let mut begin = Vec::new();
    if file.is_file() {
        let _ = File::open(file).and_then(|file| file.take(256).read_to_end(&mut begin));
    }
    begin
}

fn open_recording(file: &Path) -> anyhow::Result<Recording> {
    Recording::open(file).with_context(|| {
        let hint = if file == Path::new("hbbp.data") && !file.exists() {
            " (make one with `hbbp record -- COMMAND`, or name another with -i)"
        } else {
            ""
        };
        format!("{}{hint}", file.display())
    })
}

impl BinaryArgs {
    /// Which files to take for recorded ones: those named, and folders to look in.
    pub fn search(&self) -> BinarySearch {
        let overrides = self
            .binaries
            .iter()
            .map(|text| match text.split_once('=') {
                Some((recorded, file)) if !Path::new(text).exists() => {
                    BinaryOverride::new(Some(recorded.to_string()), PathBuf::from(file))
                }
                _ => BinaryOverride::new(None, PathBuf::from(text)),
            })
            .collect();
        BinarySearch { symfs: self.symfs.clone(), overrides }
    }
}

/// Says so where nothing can be made of a recording without samples.
pub fn require_samples(analysis: &Analysis) -> anyhow::Result<()> {
    match without_samples(analysis) {
        None => Ok(()),
        Some(nothing) => bail!(nothing),
    }
}

/// What is to be said of a recording without samples.
pub fn without_samples(analysis: &Analysis) -> Option<String> {
    let records = &analysis.summary.records;
    records.samples.iter().all(|&samples| samples == 0).then(|| {
        format!(
            "the recording has no samples: {}; record something that runs longer, or sample more often",
            describe_records(records)
        )
    })
}

fn describe_records(records: &analyzer::recording::RecordCounts) -> String {
    if records.by_type.is_empty() {
        return "it has no records at all".into();
    }
    let counts: Vec<String> = records.by_type.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    format!("it has {}", counts.join(", "))
}
