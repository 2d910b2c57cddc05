//! What every analysis command reads: a recording, or a command that is recorded first.

use std::cell::OnceCell;
use std::ffi::OsString;
use std::io::{self, BufRead, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use analyzer::calls::Calls;
use analyzer::counting::{Detail, GroupBy};
use analyzer::flow::{AnalysedFlow, Counted};
use analyzer::mix::{Mix, Query, mix};
use analyzer::paths::PathQuery;
use analyzer::recording::{ModuleTable, Subset, notes};
use analyzer::uncertainty::{Rows, Side};
use analyzer::{Analysis, BinaryOverride, BinarySearch, Microarchitecture, Options, Origin, Step, analyze_paths};
use anyhow::{Context, anyhow, bail};
use archive::Archives;
use collector::find_program;
use otlp::begins_like_otlp;
use perfdata::{Features, Recording};
use reports::Head;
use reports::kind::{ZSTD, begin_of, is_document};
pub use reports::lacks::require_samples;
use reports::left_out::left_out;
use reports::mix::group_by;
use reports::models::{self, Chosen};
pub use reports::{Reader, Reads, is_recording, recording_of};

use crate::cache::{Cache, PlaceOfPage};
use crate::commands::record::{self, CommandOutput, Manner, Recorded, SAMPLING, SamplingArgs, Wanted};
use crate::debuginfod;
use crate::output;
use crate::progress::Progress;
use crate::usage::wrong_usage;

/// What to do where code was asked for, and none is known.
pub const WITHOUT_CODE: &str =
    "the code of no module could be read: name the binaries with --binary [RECORDED=]FILE or --symfs DIR";

/// The help of FILE, of reports that are made of samples.
pub const FILE_OF_SAMPLES: &str = "\
A recording of hbbp or perf (also the directory of `perf record --kcore`), an archive of one, or profiles of OpenTelemetry (OTLP); \
`-` for standard input [default: hbbp.data]";

/// The recording that is read where none is named.
pub const DEFAULT_RECORDING: &str = "hbbp.data";

/// Bytes by which profiles of OpenTelemetry are told from others.
const PROFILES_BEGIN: u64 = 4096;

/// Where binaries are found.
#[derive(clap::Args)]
pub struct BinaryArgs {
    /// Look for binaries under this directory instead of under /
    #[arg(long, value_name = "DIR")]
    symfs: Option<PathBuf>,

    /// Read this binary instead of the recorded one; it is matched by build id or name, or stands for RECORDED (a path or name), even if
    /// that was another build; the kernel's file must be of the recorded build
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
    #[arg(long, value_name = "NAME", value_parser = reports::cores::named)]
    core: Option<Microarchitecture>,

    /// Threads to work with; the result is the same for any number [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,

    /// Analyse anew, and keep nothing: else what an analysis of a large recording found is kept in ~/.cache/hbbp for the next report
    #[arg(long)]
    no_cache: bool,

    /// Those that were read so far.
    #[arg(skip)]
    archives: Archives,
}

/// Where the recording comes from, and how it is analysed.
#[derive(clap::Args)]
pub struct InputArgs {
    /// A recording of hbbp or perf (also the directory of `perf record --kcore`), an archive of one, profiles of OpenTelemetry (OTLP), a file of
    /// `hbbp merge`, exact counts of `hbbp truth`, or what `hbbp blocks` or `annotate --format json` printed; `-` for standard input [default: hbbp.data]
    #[arg(index = 1, value_name = "FILE", conflicts_with_all = ["input", "command"])]
    recording: Option<PathBuf>,

    /// The same as FILE
    #[arg(short, long, value_name = "FILE", conflicts_with = "command")]
    input: Option<PathBuf>,

    #[command(flatten)]
    pub analysis: AnalysisArgs,

    /// Where the standard output of the command goes: a file, stderr (standard error), or hidden (it is read and forgotten) [default: hidden
    /// if standard error is a terminal, else stderr]
    #[arg(long, value_name = "FILE|WHERE", help_heading = SAMPLING)]
    stdout: Option<CommandOutput>,

    #[command(flatten)]
    sampling: SamplingArgs,

    /// Print only errors of recording
    #[arg(short, long, help_heading = SAMPLING)]
    quiet: bool,

    /// Command to record and analyse in one go, with the options under "Sampling and tracing"; its exit status is passed on
    #[arg(index = 2, last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// What is wanted of a side of a comparison beside its flow.
#[derive(Clone, Copy, Default)]
pub struct Asked<'a> {
    /// How uncertain it is.
    pub errors: bool,
    /// Its mix.
    pub mix: Option<&'a Query>,
    /// Its calling contexts.
    pub contexts: bool,
    /// Among the notes, which options change nothing.
    pub options: bool,
}

/// A side of a comparison: a recording, a merged file, or exact counts.
pub struct SideOfFile {
    pub flow: AnalysedFlow,
    /// What is weaker in it than it could be, in sentences.
    pub notes: Vec<String>,
    /// How many of these, the first, are of what is missing or damaged; the others are of how it was recorded.
    pub shortcomings: usize,
    /// What is known of its uncertainty, if that is asked for.
    pub side: Side,
    /// If it is asked for.
    pub mix: Option<Mix>,
    /// If they are asked for, and branch records show any: calling contexts, and the modules of their functions.
    pub contexts: Option<(Calls, ModuleTable)>,
}

/// What a report is made of: a file, or a command that was recorded.
pub struct Input<'a> {
    args: &'a InputArgs,
    reader: &'static Reader,
    chosen: Chosen,
    file: Option<&'a Path>,
    recording: OnceCell<Recording>,
    status: u8,
}

impl InputArgs {
    /// Records if there is a command: until its numbers are good enough, in the rows that these options of `mix` ask for, if that is wanted.
    pub fn begin(
        &self,
        reader: &'static Reader,
        precision: Option<(Wanted, Vec<OsString>)>,
    ) -> anyhow::Result<Input<'_>> {
        let option = precision.is_some().then_some("--precision");
        option.into_iter().for_each(|option| self.require_command(reader, option));
        self.begin_with(reader, || {
            let manner = Manner { stdout: self.stdout.as_ref(), quiet: self.quiet, no_cache: self.keeps_nothing() };
            record::record_for_analysis(&self.command, &self.sampling, manner, precision)
        })
    }

    /// The same; a command is recorded in another way.
    pub fn begin_with(
        &self,
        reader: &'static Reader,
        record: impl FnOnce() -> anyhow::Result<Recorded>,
    ) -> anyhow::Result<Input<'_>> {
        self.check(reader);
        let chosen = self.analysis.rules()?; // Before a command runs for nothing.
        let (recording, status) = match self.command.is_empty() {
            true => (OnceCell::new(), 0),
            false => record().map(|recorded| (OnceCell::from(recorded.recording), recorded.status))?,
        };
        Ok(Input { args: self, reader, chosen, file: self.file(), recording, status })
    }

    /// Another file, which is read as the first one is.
    ///
    /// # Errors
    /// It is a recording that cannot be opened, or no file of those that are read.
    pub fn other<'a>(&'a self, file: &'a Path, reader: &'static Reader) -> anyhow::Result<Input<'a>> {
        let chosen = self.analysis.rules()?;
        let input = Input { args: self, reader, chosen, file: Some(file), recording: OnceCell::new(), status: 0 };
        if input.document()?.is_none() {
            input.recording()?; // Before another is analysed for nothing.
        }
        Ok(input)
    }

    /// What the report is about: the name of the file, or the command.
    pub fn title(&self) -> String {
        let words: Vec<_> = self.command.iter().map(|word| word.to_string_lossy()).collect();
        match self.file() {
            Some(file) => title_of(file),
            None if words.is_empty() => "standard input".to_owned(),
            None => words.join(" "),
        }
    }

    /// Ends the process if there are options for a command, and there is none.
    pub fn check(&self, reader: &Reader) {
        let others = [("--stdout", self.stdout.is_some()), ("--quiet", self.quiet)];
        let other = others.into_iter().find(|(_, is_given)| *is_given).map(|(option, _)| option.to_owned());
        let option = self.sampling.given().or(other);
        option.iter().for_each(|option| self.require_command(reader, option));
    }

    /// Ends the process if there is no command that this option could be for.
    fn require_command(&self, reader: &Reader, option: &str) {
        if self.command.is_empty() {
            let name = reader.name;
            let why = format!(
                "{option} is for recording a command: `{name} {option} .. -- COMMAND`; a recording stays as it is"
            );
            wrong_usage::<Self>(name, why);
        }
    }

    /// The file that is read, if it is one.
    pub fn file(&self) -> Option<&Path> {
        (self.command.is_empty() && !is_standard_input(self.named())).then(|| self.named())
    }

    /// What alone was named by position, if that is no file and the recording is there that is read by default: that is what will be read then.
    pub fn take_name_of_no_file(&mut self) -> Option<String> {
        let is_file = |file: &Path| is_standard_input(file) || file.components().count() != 1 || file.exists();
        let is_name =
            self.recording.as_deref().is_some_and(|file| !is_file(file)) && Path::new(DEFAULT_RECORDING).exists();
        self.recording.take_if(|_| is_name).map(|name| name.to_string_lossy().into_owned())
    }

    /// The command to record, if it was given.
    pub fn command(&self) -> &[OsString] {
        &self.command
    }

    /// How to record it.
    pub fn sampling(&self) -> &SamplingArgs {
        &self.sampling
    }

    /// Whether nothing is to be kept for later.
    pub fn keeps_nothing(&self) -> bool {
        self.analysis.no_cache
    }

    /// Whether only errors of recording are printed.
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Where its standard output goes.
    pub fn stdout(&self) -> Option<&CommandOutput> {
        self.stdout.as_ref()
    }

    fn named(&self) -> &Path {
        self.recording.as_deref().or(self.input.as_deref()).unwrap_or(Path::new(DEFAULT_RECORDING))
    }
}

impl Input<'_> {
    /// Analyses the recording, or the flow.
    pub fn analyze(&self, group_by: GroupBy) -> anyhow::Result<Analysis> {
        self.analyze_in_detail(group_by, Detail::Blocks)
    }

    /// What is read, if it is a document and this command makes its report of flows: a file, or `-`.
    fn document(&self) -> anyhow::Result<Option<&Path>> {
        if self.reader.reads != Reads::Flows || self.recording.get().is_some() {
            return Ok(None);
        }
        if let Some(file) = self.file {
            return Ok((!is_recording(file)).then_some(file));
        }
        // What comes next is looked at and not taken.
        let is_one = is_document(standard_input()?.fill_buf().context("standard input")?);
        Ok(is_one.then(|| self.args.named()))
    }

    /// What the recording says of itself; nothing of a flow.
    pub fn features(&self) -> anyhow::Result<Option<&Features>> {
        if self.document()?.is_some() { Ok(None) } else { Ok(Some(self.recording()?.features())) }
    }

    /// Analyses the recording, its branches, too.
    pub fn analyze_with_branches(&self) -> anyhow::Result<Analysis> {
        self.analyze_in_detail(GroupBy::default(), Detail::Branches)
    }

    /// Analyses the recording, with so much of it.
    pub fn analyze_in_detail(&self, group_by: GroupBy, detail: Detail) -> anyhow::Result<Analysis> {
        if let Some(document) = self.document()? {
            let analysis = self.args.analysis.analyze_flow(&self.chosen, document, self.reader, group_by)?;
            self.args.analysis.not_for_counts().for_each(output::say);
            return Ok(analysis);
        }
        self.args.analysis.analyze(&self.chosen, self.recording()?, group_by, detail, Subset::Whole)
    }

    /// Analyses the recording, or the flow, once more, told apart in another way and in such detail, without a word: what there is to say was said before.
    pub fn analyze_again(&self, group_by: GroupBy, detail: Detail) -> anyhow::Result<Analysis> {
        if let Some(document) = self.document()? {
            return self.args.analysis.analyze_flow(&self.chosen, document, self.reader, group_by);
        }
        self.args.analysis.analyze_quietly(
            &self.chosen,
            self.recording()?,
            group_by,
            (detail, &PathQuery::default()),
            Subset::Whole,
            &|_| (),
        )
    }

    /// Analyses the recording, its branches, too, and their order. There is none in a flow.
    pub fn analyze_with_paths(&self, group_by: GroupBy, paths: &PathQuery) -> anyhow::Result<Analysis> {
        if self.document()?.is_some() {
            return self.analyze_in_detail(group_by, Detail::Branches);
        }
        let args = &self.args.analysis;
        args.analyze_paths(&self.chosen, self.recording()?, group_by, (Detail::Branches, paths), Subset::Whole)
    }

    /// Where the page of the recording is kept that is made with calling contexts, and with what `of` says. `None` of what is read once, and where
    /// a model is asked for, of which there may be something to say.
    pub fn place_of_page(&self, of: &str) -> anyhow::Result<Option<PlaceOfPage<'_>>> {
        let args = &self.args.analysis;
        if self.document()?.is_some() || args.chooses() {
            return Ok(None);
        }
        let recording = self.recording()?;
        let options = args.options(&self.chosen, recording, GroupBy::default(), Detail::Calls, Subset::Whole);
        Ok(args.cache(recording).and_then(|cache| cache.place_of_page(options, &self.chosen.made_of, of)))
    }

    /// Analyses the recording, with calling contexts; one without samples is refused.
    pub fn analyze_with_calls(&self) -> anyhow::Result<Analysis> {
        let (recording, group_by) = (self.recording()?, GroupBy::default());
        let analysis = self.args.analysis.analyze(&self.chosen, recording, group_by, Detail::Calls, Subset::Whole)?;
        require_samples(&analysis)?;
        Ok(analysis)
    }

    /// Analyses a part of the recording.
    pub fn analyze_part(&self, group_by: GroupBy, subset: Subset) -> anyhow::Result<Analysis> {
        self.args.analysis.analyze(&self.chosen, self.recording()?, group_by, Detail::Blocks, subset)
    }

    /// The flow of a file, of standard input, or of a command that was recorded, with its calling contexts if they are asked for.
    pub fn flow(&self, contexts: bool) -> anyhow::Result<SideOfFile> {
        let (args, asked) = (&self.args.analysis, Asked { contexts, options: true, ..Asked::default() });
        if let Some(document) = self.document()? {
            return args.side_of_file(&self.chosen, document, self.reader, asked);
        }
        let side = args.side(&self.chosen, self.recording()?, asked);
        match self.file {
            Some(file) => side.with_context(|| file.display().to_string()),
            None => side,
        }
    }

    /// The recording that was named, or that of the command.
    pub fn recording(&self) -> anyhow::Result<&Recording> {
        if let Some(recording) = self.recording.get() {
            return Ok(recording);
        }
        let recording = match self.file {
            Some(file) => self.args.analysis.open(file, self.reader)?,
            None => {
                let mut stream = standard_input()?;
                // What comes first may be less than tells profiles from others.
                let mut begin = Vec::new();
                (&mut stream).take(PROFILES_BEGIN).read_to_end(&mut begin).context("standard input")?;
                let is_kept = begin.starts_with(&ZSTD) || begins_like_otlp(&begin);
                let mut stream = io::Cursor::new(begin).chain(stream);
                if is_kept {
                    let kept = kept(&mut stream)?;
                    self.reader.refuse_standard_input(kept.path()).context("standard input")?;
                    self.args.analysis.open(kept.path(), self.reader).context("standard input")?
                } else {
                    Recording::from_stream(stream).context("standard input")?
                }
            }
        };
        Ok(self.recording.get_or_init(|| recording))
    }

    /// The recording, if it was opened: a document has none.
    pub fn opened(&self) -> Option<&Recording> {
        self.recording.get()
    }

    /// The report has been made, or not: what the process exits with is the status of a command that was recorded, unless that says
    /// success and there is no report.
    pub fn end(&self, report: anyhow::Result<()>) -> anyhow::Result<ExitCode> {
        match report {
            Err(error) if self.status == 0 => return Err(error),
            Err(error) => crate::complain(&error),
            Ok(()) => {}
        }
        Ok(ExitCode::from(self.status))
    }
}

impl AnalysisArgs {
    /// Where binaries are found.
    pub fn search(&self) -> BinarySearch {
        self.archives.search(self.binaries.search())
    }

    /// Opens a recording, or an archive of one.
    fn open(&self, file: &Path, reader: &Reader) -> anyhow::Result<Recording> {
        let search = self.binaries.search();
        let (recording, notes) = reports::open(file, reader, (&self.archives, search), hint)?;
        notes.iter().for_each(|note| say!("{}: {note}", file.display()));
        Ok(recording)
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

    /// What is said of options that change nothing where counts are read and not made.
    pub fn not_for_counts(&self) -> impl Iterator<Item = String> {
        let given = [("--model", self.model.is_some()), ("--core", self.core.is_some())].into_iter();
        given.filter(|(_, is_given)| *is_given).map(|(option, _)| reports::not_for_counts(option))
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
        chosen: &Chosen,
        recording: &Recording,
        group_by: GroupBy,
        detail: Detail,
        subset: Subset,
    ) -> anyhow::Result<Analysis> {
        self.analyze_paths(chosen, recording, group_by, (detail, &PathQuery::default()), subset)
    }

    /// The same, with what the order of branches tells.
    fn analyze_paths(
        &self,
        chosen: &Chosen,
        recording: &Recording,
        group_by: GroupBy,
        detail: (Detail, &PathQuery),
        subset: Subset,
    ) -> anyhow::Result<Analysis> {
        if subset == Subset::Whole {
            notes(recording).for_each(output::say);
        }
        let progress = Progress::new();
        let mut analysis =
            self.analyze_quietly(chosen, recording, group_by, detail, subset, &|step| progress.step(step))?;
        drop(progress);
        let asked = self.model.as_deref().filter(|_| subset == Subset::Whole);
        chosen.check_analysis(asked, &mut analysis).map_err(|others| anyhow!("{others}: leave out --model"))?;
        Ok(analysis)
    }

    fn analyze_quietly(
        &self,
        chosen: &Chosen,
        recording: &Recording,
        group_by: GroupBy,
        (detail, paths): (Detail, &PathQuery),
        subset: Subset,
        progress: &(dyn Fn(Step) + Sync),
    ) -> anyhow::Result<Analysis> {
        let options = self.options(chosen, recording, group_by, detail, subset);
        let (cache, made_of) = (self.cache(recording), &chosen.made_of);
        // What is kept has no order of branches.
        let cached = || cache.as_ref().and_then(|cache| cache.find(&options, made_of));
        let wants_order = paths.trips || paths.hot || paths.history.is_some();
        let is_enough = |analysis: &Analysis| !paths.cycles || analysis.summary.stacks.timed == 0;
        if let Some(analysis) = (!wants_order).then(cached).flatten().filter(is_enough) {
            return Ok(analysis);
        }
        let analysis = analyze_paths(recording, &options, paths, progress)?;
        cache.iter().for_each(|cache| cache.keep(&analysis, &options, made_of));
        Ok(analysis)
    }

    fn options<'a>(
        &self,
        chosen: &'a Chosen,
        recording: &Recording,
        group_by: GroupBy,
        detail: Detail,
        subset: Subset,
    ) -> Options<'a> {
        let search = self.archives.search_for(recording, self.binaries.search());
        Options { search, subset, group_by, detail, core: self.core, threads: self.threads(), rules: &chosen.rules }
    }

    /// Where the analysis of a recording is kept, if it is.
    fn cache<'a>(&self, recording: &'a Recording) -> Option<Cache<'a>> {
        // Nobody comes back to the files that an archive was unpacked to.
        let is_kept = !self.no_cache && !self.archives.has(recording);
        is_kept.then(|| Cache::of(recording, self.threads())).flatten()
    }

    /// The flow of a recording, of a file of `hbbp merge`, or of exact counts; `-` is standard input.
    pub fn flow_of_file(
        &self,
        chosen: &Chosen,
        file: &Path,
        reader: &Reader,
    ) -> anyhow::Result<(AnalysedFlow, Vec<String>)> {
        let SideOfFile { flow, notes, .. } =
            self.side_of_file(chosen, file, reader, Asked { options: true, ..Asked::default() })?;
        Ok((flow, notes))
    }

    /// The same, with what else is asked for.
    pub fn side_of_file(
        &self,
        chosen: &Chosen,
        file: &Path,
        reader: &Reader,
        asked: Asked<'_>,
    ) -> anyhow::Result<SideOfFile> {
        if is_standard_input(file) {
            // What it is can be told by its beginning only.
            let kept = kept(&mut standard_input()?)?;
            reader.refuse_standard_input(kept.path()).context("standard input")?;
            if !is_document(&begin_of(kept.path())) {
                let recording = self.open(kept.path(), reader).context("standard input")?;
                // Nobody will come back to it: what has no name is not cached.
                drop(kept);
                return self.side(chosen, &recording, asked).context("standard input");
            }
            return self.side_of_file(chosen, kept.path(), reader, asked).context("standard input");
        }
        let name = || file.display().to_string();
        if !is_document(&begin_of(file)) {
            let recording = self.open(file, reader)?;
            return self.side(chosen, &recording, asked).with_context(name);
        }
        let (mut flow, mut notes, mut side) = self.document(file, reader)?;
        if asked.options {
            notes.extend(self.not_for_counts());
        }
        let wants_errors = asked.errors && !flow.flow().slices().is_empty();
        let mut found = None;
        if wants_errors || asked.mix.is_some() {
            let by = asked.mix.map(group_by).unwrap_or_default();
            let analysis = Analysis::of_flow(flow, origin(&side), &self.search(), by, Vec::new());
            found = asked.mix.map(|query| mix(&analysis, query)).transpose()?;
            if wants_errors {
                side = Side::Sampled(Rows::of(&analysis).into());
            }
            flow = analysis.flow.unwrap_or_default();
        }
        let shortcomings = notes.len();
        Ok(SideOfFile { flow, notes, shortcomings, side, mix: found, contexts: None })
    }

    /// The flow of a file of `hbbp merge`, of exact counts, or of a list of blocks.
    fn document(&self, file: &Path, reader: &Reader) -> anyhow::Result<(AnalysedFlow, Vec<String>, Side)> {
        let Counted { flow, origin, notes } = reports::read_counts(file, reader, &self.search())?;
        Ok((flow.into(), notes, if origin == Origin::Exact { Side::Exact } else { Side::Unknown }))
    }

    /// Analyses a file of `hbbp merge`, or exact counts.
    fn analyze_flow(
        &self,
        chosen: &Chosen,
        file: &Path,
        reader: &Reader,
        group_by: GroupBy,
    ) -> anyhow::Result<Analysis> {
        let SideOfFile { flow, mut notes, side, .. } = self.side_of_file(chosen, file, reader, Asked::default())?;
        notes.extend(left_out(flow.flow()));
        Ok(Analysis::of_flow(flow, origin(&side), &self.search(), group_by, notes))
    }

    /// A recording. The blocks of its flow are counted by a choice of source where one was asked for.
    fn side(&self, chosen: &Chosen, recording: &Recording, asked: Asked<'_>) -> anyhow::Result<SideOfFile> {
        let by = asked.mix.map(group_by).unwrap_or_default();
        let detail = if asked.contexts { Detail::Calls } else { Detail::Branches };
        let mut analysis = self.analyze(chosen, recording, by, detail, Subset::Whole)?;
        require_samples(&analysis)?;
        let Head { degraded: notes, shortcomings, .. } = Head::of(&analysis);
        let side = if asked.errors { Side::Sampled(Rows::of(&analysis).into()) } else { Side::Unknown };
        let mix = asked.mix.map(|query| mix(&analysis, query)).transpose()?;
        // LBR call stacks are samples: they say nothing of how often who called whom.
        let of_branches = |calls: &Calls| asked.contexts && calls.walks > 0 && calls.events.is_none();
        let calls = analysis.calls.take().filter(of_branches);
        let contexts = calls.map(|calls| (calls, analysis.modules.clone()));
        let flow = if self.chooses() { analysis.into_flow_by_choice() } else { analysis.flow.unwrap_or_default() };
        Ok(SideOfFile { flow, notes, shortcomings, side, mix, contexts })
    }
}

/// Where the counts of a document come from.
fn origin(side: &Side) -> Origin {
    if let Side::Exact = side { Origin::Exact } else { Origin::Flow }
}

/// What a file is called in titles: its name.
pub fn title_of(file: &Path) -> String {
    file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned()
}

/// Whether the name stands for standard input.
pub fn is_standard_input(file: &Path) -> bool {
    file == Path::new("-")
}

fn standard_input() -> anyhow::Result<impl BufRead> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        bail!("standard input is a terminal: pipe a recording into it, or name a file");
    }
    Ok(stdin.lock())
}

/// What comes on standard input, in a file.
fn kept(stream: &mut impl BufRead) -> anyhow::Result<tempfile::NamedTempFile> {
    let mut kept = tempfile::NamedTempFile::new().context("a file for what standard input has")?;
    io::copy(stream, &mut kept).context("standard input")?;
    Ok(kept)
}

/// Opens a recording, or says what it is instead: see [`reports::open_recording`].
pub fn open_recording(file: &Path, reader: &Reader, search: &BinarySearch) -> anyhow::Result<Recording> {
    reports::open_recording(file, reader, search, hint)
}

/// What to do about a file that cannot be opened, to be put after its name; empty if nothing comes to mind.
fn hint(reader: &Reader, file: &Path) -> String {
    let is_name = file.components().count() == 1;
    let name = reader.name;
    if file == Path::new(DEFAULT_RECORDING) {
        format!(" (make one with `hbbp record -- COMMAND`, or name another: `{name} FILE`)")
    } else if reader.records && is_name && find_program(&file.as_os_str().to_owned()).is_ok() {
        format!(" (to record the program of that name: `{name} -- {}`)", file.display())
    } else {
        String::new()
    }
}

impl BinaryArgs {
    /// Which files to take for recorded ones: those named, and folders to look in.
    pub fn search(&self) -> BinarySearch {
        let overrides = self.binaries.iter().map(|text| BinaryOverride::of_option(text)).collect();
        BinarySearch {
            symfs: self.symfs.clone(),
            overrides,
            elsewhere: debuginfod::of_environment(),
            ..BinarySearch::default()
        }
    }
}
