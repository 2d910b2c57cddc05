//! What kind of file somebody named, for those who named another kind than a command reads.

mod text;

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use analyzer::truth::{Callgrind, MixFile};
use anyhow::bail;
use archive::is_archive;
use otlp::{begins_like_otlp, is_otlp};
use serde::Deserialize;
use serde::de::IgnoredAny;

/// As what zstd packed begins.
pub const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// A command that reads files.
#[derive(Clone, Copy, Debug)]
pub struct Reader {
    /// Its name: `hbbp mix`.
    pub name: &'static str,
    /// What it reads.
    pub reads: Reads,
    /// Whether it records a command, too.
    pub records: bool,
}

/// What a command reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// Its report is made of samples.
    Recordings,
    /// Its report is made of a flow.
    Flows,
    /// It compares with them.
    ExactCounts,
    /// It converts them.
    ForeignCounts,
}

impl Reads {
    fn words(self) -> &'static str {
        match self {
            Self::Recordings => "recordings",
            Self::Flows => {
                "recordings, merged files of `hbbp merge`, exact counts of `hbbp truth`, and what `hbbp blocks` or `annotate --format json` printed"
            }
            Self::ExactCounts => "exact counts, of `hbbp truth`, callgrind or SDE's -mix",
            Self::ForeignCounts => "files of callgrind (--dump-instr=yes) and of SDE's -mix",
        }
    }

    /// Whether such files are of that kind.
    fn has(self, kind: &Kind) -> bool {
        match kind {
            Kind::Recording | Kind::Archive | Kind::Otlp => matches!(self, Self::Recordings | Self::Flows),
            Kind::Truth => matches!(self, Self::Flows | Self::ExactCounts),
            Kind::Flow => self == Self::Flows,
            Kind::Report(name) if name == "blocks" || name == "annotate" => self == Self::Flows,
            Kind::ForeignTruth(_) => matches!(self, Self::ExactCounts | Self::ForeignCounts),
            _ => false,
        }
    }
}

/// A kind of file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A directory that is no recording.
    Folder,
    /// A program or a library.
    Program,
    /// A program as text: it begins with `#!`.
    Script,
    /// What `hbbp truth` wrote.
    Truth,
    /// What another tool counted exactly.
    ForeignTruth(&'static str),
    /// What `hbbp merge` wrote.
    Flow,
    /// What another command printed with `--format json`: its name.
    Report(String),
    /// Exact counts of `--pmu simulated`.
    Executions,
    /// A model of `hbbp train`.
    Model,
    /// Another document of hbbp's: its schema.
    Document(String),
    /// JSON of others.
    Json,
    /// Packed, by this tool.
    Packed(&'static str),
    /// A recording of `hbbp record` or `perf record`.
    Recording,
    /// What `hbbp archive` wrote.
    Archive,
    /// Profiles of OpenTelemetry.
    Otlp,
    /// What reports and other tools show people: in which form.
    Shown(&'static str),
    /// Nobody knows.
    Other,
}

/// As documents of ours begin.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Document {
    schema: String,
    source: String,
    /// As files for speedscope say what they are.
    #[serde(rename = "$schema")]
    json_schema: serde_json::Value,
    /// What those for the Firefox Profiler have.
    meta: Option<IgnoredAny>,
    threads: Option<IgnoredAny>,
}

impl Document {
    /// Of what is no document of ours.
    fn kind_of_others(&self) -> Kind {
        match self {
            Document { json_schema, .. } if json_schema.as_str().is_some_and(|text| text.contains("speedscope")) => {
                Kind::Shown("a file for speedscope")
            }
            Document { meta: Some(_), threads: Some(_), .. } => Kind::Shown("a file for the Firefox Profiler"),
            _ => Kind::Json,
        }
    }
}

impl Kind {
    /// What kind of file it is; of what cannot be read, nobody knows.
    pub fn of(file: &Path) -> Self {
        if file.is_dir() {
            // What `perf record --kcore` makes.
            return if file.join("data").is_file() { Self::Recording } else { Self::Folder };
        }
        let begin = begin_of(file);
        let packed = [(&b"\x1f\x8b"[..], "gzip"), (&ZSTD[..], "zstd"), (b"\xfd7zXZ", "xz")];
        match &*begin {
            [0x7f, b'E', b'L', b'F', ..] => Self::Program,
            [b'#', b'!', ..] => Self::Script,
            [b'P', b'E', b'R', b'F', b'I', b'L', b'E', b'2', ..] => Self::Recording,
            packed if packed.starts_with(&ZSTD) && is_archive(file) => Self::Archive,
            _ if is_otlp(file) => Self::Otlp,
            text if is_document(text) => Self::of_document(file),
            text if Callgrind::begins_like(text) => Self::ForeignTruth("callgrind"),
            text if MixFile::begins_like(text) => Self::ForeignTruth("SDE's -mix"),
            bytes => packed
                .iter()
                .find(|(magic, _)| bytes.starts_with(magic))
                .map(|(_, by)| Self::Packed(by))
                .or_else(|| text::form_of(bytes).map(Self::Shown))
                .unwrap_or(Self::Other),
        }
    }

    fn of_document(file: &Path) -> Self {
        let document: Option<Document> =
            File::open(file).ok().and_then(|file| serde_json::from_reader(BufReader::new(file)).ok());
        // Who reads such documents says best what is wrong with a damaged one.
        let Some(document) = document else { return Self::Other };
        let Some(name) = document.schema.strip_prefix("hbbp-").and_then(|name| name.split('/').next()) else {
            return document.kind_of_others();
        };
        let Document { ref schema, ref source, .. } = document;
        match name {
            "blocks" if source == "truth" => Self::Truth,
            "flow" => Self::Flow,
            "executions" => Self::Executions,
            "model" => Self::Model,
            "mix" | "vectorization" | "blocks" | "annotate" | "diff" | "validate" | "doctor" => {
                Self::Report(name.to_owned())
            }
            _ => Self::Document(schema.clone()),
        }
    }

    /// What it is, in words; `None` if nobody knows.
    fn words(&self) -> Option<String> {
        Some(match self {
            Self::Folder => "a directory, and none of `perf record --kcore`".into(),
            Self::Program => "an ELF program".into(),
            Self::Script => "a script".into(),
            Self::Truth => "a truth of `hbbp truth`".into(),
            Self::ForeignTruth(tool) => format!("a file of {tool}"),
            Self::Flow => "a merged file of `hbbp merge`".into(),
            Self::Report(command) => format!("what `hbbp {command} --format json` printed"),
            Self::Executions => "a file of exact counts of `hbbp record --pmu simulated --truth`".into(),
            Self::Model => "a model of `hbbp train`".into(),
            Self::Document(schema) => format!("a document of hbbp's ({schema})"),
            Self::Json => "JSON, but no document of hbbp".into(),
            Self::Packed(by) => format!("packed by {by}"),
            Self::Shown(form) => (*form).to_owned(),
            Self::Recording => "a recording".into(),
            Self::Archive => "an archive of `hbbp archive`".into(),
            Self::Otlp => "profiles of OpenTelemetry".into(),
            Self::Other => return None,
        })
    }

    /// What to do with one of that name that a command does not read.
    fn advice(&self, name: &str, reader: &Reader) -> Option<String> {
        Some(match self {
            Self::Packed(_) => "unpack it first".into(),
            _ if reader.reads == Reads::ForeignCounts && *self != Self::Truth => return None,
            _ if reader.reads == Reads::ExactCounts => "make them with `hbbp truth -o FILE -- COMMAND`".into(),
            Self::Program | Self::Script => "make one with `hbbp record -- COMMAND`".into(),
            Self::Truth => {
                format!("use `hbbp validate RECORDING --truth {name}`, `hbbp export --truth {name}` or `hbbp diff`")
            }
            Self::ForeignTruth(_) => format!(
                "use `hbbp validate RECORDING --truth {name}` or `hbbp export --truth {name}`, or convert it with `hbbp truth --from {name}`"
            ),
            Self::Flow => "use `hbbp mix`, `blocks`, `annotate`, `report`, `export`, `diff` or `merge`".into(),
            Self::Report(_) | Self::Shown(_) => "name the recording that it was made from".into(),
            Self::Model => format!("use `hbbp mix --model {name} -i RECORDING`, or `hbbp model show {name}`"),
            Self::Folder
            | Self::Executions
            | Self::Document(_)
            | Self::Json
            | Self::Recording
            | Self::Otlp
            | Self::Archive
            | Self::Other => {
                return None;
            }
        })
    }

    /// What it is, what a command reads, and what to do; `None` if it is what the command reads, or nobody knows.
    fn sentence(&self, file: &Path, reader: &Reader) -> Option<String> {
        if reader.reads.has(self) {
            return None;
        }
        let (what, name) = (self.words()?, file.display().to_string());
        if reader.records && matches!(self, Self::Program | Self::Script) {
            let run = if file.components().count() == 1 { format!("./{name}") } else { name.clone() };
            return Some(format!("{name} is {what}: did you mean `{} -- {run}`?", reader.name));
        }
        let advice = self.advice(&name, reader).map_or(String::new(), |advice| format!(": {advice}"));
        Some(format!("{name} is {what}; {} reads {}{advice}", reader.name, reader.reads.words()))
    }
}

impl Reader {
    /// Fails with what kind of file it is, where that can be told: one that this command does not read.
    ///
    /// # Errors
    /// It is one.
    pub fn refuse(&self, file: &Path) -> anyhow::Result<()> {
        match Kind::of(file).sentence(file, self) {
            Some(sentence) => bail!(sentence),
            None => Ok(()),
        }
    }

    /// The same of what standard input had, which is in this file for a moment.
    ///
    /// # Errors
    /// It is one.
    pub fn refuse_standard_input(&self, kept: &Path) -> anyhow::Result<()> {
        let kind = Kind::of(kept);
        match kind.words().filter(|_| !self.reads.has(&kind)) {
            Some(what) => bail!("it is {what}; {} reads {}", self.name, self.reads.words()),
            None => Ok(()),
        }
    }
}

/// Whether a file that begins so is a document of ours.
pub fn is_document(begin: &[u8]) -> bool {
    begin.trim_ascii_start().starts_with(b"{") && !begins_like_otlp(begin)
}

/// The first bytes of a file, in which documents of ours say what they are; none where it cannot be read.
pub fn begin_of(file: &Path) -> Vec<u8> {
    let mut begin = Vec::new();
    if file.is_file() {
        let _ = File::open(file).and_then(|file| file.take(256).read_to_end(&mut begin));
    }
    begin
}
