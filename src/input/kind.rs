//! What kind of file somebody named, for those who named another kind than a command reads.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use analyzer::truth::{Callgrind, MixFile};
use anyhow::bail;
use collector::find_program;
use serde::Deserialize;

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
    /// It compares with them, or converts them.
    ExactCounts,
}

impl Reads {
    fn words(self) -> &'static str {
        match self {
            Self::Recordings => "recordings",
            Self::Flows => "recordings, merged files of `hbbp merge` and exact counts of `hbbp truth`",
            Self::ExactCounts => "exact counts, of `hbbp truth`, callgrind or SDE's -mix",
        }
    }

    /// The command that makes such a file.
    fn made_by(self) -> &'static str {
        match self {
            Self::Recordings | Self::Flows => "hbbp record",
            Self::ExactCounts => "hbbp truth",
        }
    }

    /// Whether such files are of that kind.
    fn has(self, kind: &Kind) -> bool {
        match kind {
            Kind::Recording => self != Self::ExactCounts,
            Kind::Truth => self != Self::Recordings,
            Kind::Flow => self == Self::Flows,
            Kind::ForeignTruth(_) => self == Self::ExactCounts,
            _ => false,
        }
    }
}

/// A kind of file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A directory.
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
    /// JSON of others.
    Json,
    /// Packed, by this tool.
    Packed(&'static str),
    /// A recording of `hbbp record` or `perf record`.
    Recording,
    /// Nobody knows.
    Other,
}

/// As documents of ours begin.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Document {
    schema: String,
    source: String,
}

impl Kind {
    /// What kind of file it is; of what cannot be read, nobody knows.
    pub fn of(file: &Path) -> Self {
        if file.is_dir() {
            return Self::Folder;
        }
        let begin = begin_of(file);
        let packed = [(&b"\x1f\x8b"[..], "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"\xfd7zXZ", "xz")];
        match &*begin {
            [0x7f, b'E', b'L', b'F', ..] => Self::Program,
            [b'#', b'!', ..] => Self::Script,
            [b'P', b'E', b'R', b'F', b'I', b'L', b'E', b'2', ..] => Self::Recording,
            text if is_document(text) => Self::of_document(file),
            text if Callgrind::begins_like(text) => Self::ForeignTruth("callgrind"),
            text if MixFile::begins_like(text) => Self::ForeignTruth("SDE's -mix"),
            bytes => packed
                .iter()
                .find(|(magic, _)| bytes.starts_with(magic))
                .map_or(Self::Other, |(_, by)| Self::Packed(by)),
        }
    }

    fn of_document(file: &Path) -> Self {
        let document = File::open(file).ok().and_then(|file| serde_json::from_reader(BufReader::new(file)).ok());
        // Who reads such documents says best what is wrong with a damaged one.
        let Some(Document { schema, source }) = document else { return Self::Other };
        let Some(name) = schema.strip_prefix("hbbp-").and_then(|name| name.split('/').next()) else {
            return Self::Json;
        };
        match name {
            "blocks" if source == "truth" => Self::Truth,
            "flow" => Self::Flow,
            "executions" => Self::Executions,
            "model" => Self::Model,
            report => Self::Report(report.to_owned()),
        }
    }

    /// What it is, and what to do with it, in a sentence without its subject; `None` if nobody knows.
    fn sentence(&self, file: &Path, reader: &Reader) -> Option<String> {
        if reader.reads.has(self) {
            return None;
        }
        let (name, Reader { name: command, reads, records }) = (file.display(), *reader);
        let but = format!("{command} reads {}", reads.words());
        let run = if file.components().count() == 1 { format!("./{name}") } else { name.to_string() };
        let mean = match records {
            true => format!("did you mean `{command} -- {run}`?"),
            false => format!("{but}, such as `{} -- {run}` makes", reads.made_by()),
        };
        Some(match self {
            Self::Folder => format!("is a directory; {but}"),
            Self::Program => format!("is an ELF program: {mean}"),
            Self::Script => format!("is a script: {mean}"),
            Self::Truth => format!(
                "is a truth of `hbbp truth`; {but}: use `hbbp validate RECORDING --truth {name}`, `hbbp export --truth {name}` or \
                 `hbbp diff`"
            ),
            Self::ForeignTruth(tool) => format!(
                "is a file of {tool}; {but}: use `hbbp validate RECORDING --truth {name}` or `hbbp export --truth {name}`, or convert it \
                 with `hbbp truth --from {name}`"
            ),
            Self::Flow => {
                format!("is a merged file of `hbbp merge`; {but}: use `hbbp export`, `hbbp diff` or `hbbp merge`")
            }
            Self::Report(report) => {
                format!(
                    "is what `hbbp {report} --format json` printed; {but}: name the recording that it was made from"
                )
            }
            Self::Executions => format!("has exact counts of `hbbp record --pmu simulated --truth`; {but}"),
            Self::Model => {
                format!("is a model; {but}: use `--model {name}` beside a recording, or `hbbp model show {name}`")
            }
            Self::Json => format!("is JSON, but no document of hbbp; {but}"),
            Self::Packed(by) => format!("is packed by {by}: unpack it first; {but}"),
            Self::Recording => format!("is a recording; {but}"),
            Self::Other => return None,
        })
    }
}

impl Reader {
    /// Fails with what kind of file it is, where that can be told: one that this command does not read.
    pub fn refuse(&self, file: &Path) -> anyhow::Result<()> {
        match Kind::of(file).sentence(file, self) {
            Some(sentence) => bail!("{} {sentence}", file.display()),
            None => Ok(()),
        }
    }

    /// What to do about a file that cannot be opened, to be put behind its name; empty if nothing comes to mind.
    pub fn hint(&self, file: &Path) -> String {
        if file.exists() {
            return String::new();
        }
        let is_name = file.components().count() == 1;
        let name = self.name;
        if file == Path::new(DEFAULT_RECORDING) {
            format!(" (make one with `hbbp record -- COMMAND`, or name another: `{name} FILE`)")
        } else if self.records && is_name && find_program(&file.as_os_str().to_owned()).is_ok() {
            format!(" (to record the program of that name: `{name} -- {}`)", file.display())
        } else {
            String::new()
        }
    }
}

/// The recording that is read where none is named.
pub const DEFAULT_RECORDING: &str = "hbbp.data";

/// Whether a file that begins so is a document.
pub fn is_document(begin: &[u8]) -> bool {
    begin.trim_ascii_start().starts_with(b"{")
}

/// The first bytes of a file, in which documents of ours say what they are; none where it cannot be read.
pub fn begin_of(file: &Path) -> Vec<u8> {
    let mut begin = Vec::new();
    if file.is_file() {
        let _ = File::open(file).and_then(|file| file.take(256).read_to_end(&mut begin));
    }
    begin
}
