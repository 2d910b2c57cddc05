//! What a mix can be broken down by.

use std::fmt;
use std::str::FromStr;

/// A key of rows, columns and filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dimension {
    /// Name of the function, demangled.
    Function,
    /// Name of the function in the source, which may be inlined into another.
    SourceFunction,
    /// Name of the file of the source: as much of the end of its path as no other file has.
    File,
    /// The line of the source, as `file:line`.
    Line,
    /// Path of the module, as recorded.
    Module,
    /// The process, as `pid:name`.
    Process,
    /// The thread, as `tid:name`.
    Thread,
    /// Name of the process (`comm`): one key for all processes of a name.
    Comm,
    /// The phase that the program was in, as it marked it.
    Phase,
    /// The mnemonic in lower case: `mov`, `jne`.
    Mnemonic,
    /// What the instruction is for: data transfer, branch, ...
    Category,
    /// The instruction set extension that the instruction came with: `avx2`, `sse4.1`, `base`.
    Isa,
    /// legacy, VEX, EVEX, ...
    Encoding,
    /// Whether it works on one element or on a vector of them: scalar, packed, none.
    Packing,
    /// Element type of vector and floating-point instructions.
    Element,
    /// Operand width in bits.
    Width,
    /// Reads or writes memory.
    Memory,
    /// What it does to the flow of control: conditional, jump, call, return, none, ...
    Branch,
    /// With a `lock` prefix, or locked without one.
    Lock,
    /// With a repeat prefix.
    Rep,
    /// Long latency: division, square root, ...
    Latency,
    /// The source chosen for the block.
    Chosen,
}

impl Dimension {
    /// All, in the order of the help text.
    pub const ALL: [Dimension; 22] = [
        Dimension::Function,
        Dimension::SourceFunction,
        Dimension::File,
        Dimension::Line,
        Dimension::Module,
        Dimension::Process,
        Dimension::Thread,
        Dimension::Comm,
        Dimension::Phase,
        Dimension::Mnemonic,
        Dimension::Category,
        Dimension::Isa,
        Dimension::Encoding,
        Dimension::Packing,
        Dimension::Element,
        Dimension::Width,
        Dimension::Memory,
        Dimension::Branch,
        Dimension::Lock,
        Dimension::Rep,
        Dimension::Latency,
        Dimension::Chosen,
    ];

    /// The name on the command line and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Dimension::Function => "function",
            Dimension::SourceFunction => "source-function",
            Dimension::File => "file",
            Dimension::Line => "line",
            Dimension::Module => "module",
            Dimension::Process => "process",
            Dimension::Thread => "thread",
            Dimension::Comm => "comm",
            Dimension::Phase => "phase",
            Dimension::Mnemonic => "mnemonic",
            Dimension::Category => "category",
            Dimension::Isa => "isa",
            Dimension::Encoding => "encoding",
            Dimension::Packing => "packing",
            Dimension::Element => "element",
            Dimension::Width => "width",
            Dimension::Memory => "memory",
            Dimension::Branch => "branch",
            Dimension::Lock => "lock",
            Dimension::Rep => "rep",
            Dimension::Latency => "latency",
            Dimension::Chosen => "chosen",
        }
    }

    /// Whether debug information tells it.
    pub fn is_of_source(self) -> bool {
        matches!(self, Dimension::SourceFunction | Dimension::File | Dimension::Line)
    }

    /// Whether it tells instructions of one block apart.
    pub fn is_of_instruction(self) -> bool {
        !matches!(
            self,
            Dimension::Function
                | Dimension::Module
                | Dimension::Process
                | Dimension::Thread
                | Dimension::Comm
                | Dimension::Phase
                | Dimension::Chosen
        )
    }
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Not the name of a [`Dimension`].
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no key {0:?}; the keys are {list}", list = Dimension::ALL.map(Dimension::as_str).join(", "))]
pub struct UnknownDimension(pub String);

impl FromStr for Dimension {
    type Err = UnknownDimension;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let lower = name.trim().to_ascii_lowercase();
        match lower.as_str() {
            "branch-kind" | "branchkind" => return Ok(Dimension::Branch),
            "source" | "chosen-source" => return Ok(Dimension::Chosen),
            "srcline" => return Ok(Dimension::Line),
            "srcfile" => return Ok(Dimension::File),
            "inlined" => return Ok(Dimension::SourceFunction),
            "symbol" | "sym" => return Ok(Dimension::Function),
            "dso" => return Ok(Dimension::Module),
            "pid" => return Ok(Dimension::Process),
            "tid" => return Ok(Dimension::Thread),
            _ => {}
        }
        Dimension::ALL.into_iter().find(|key| key.as_str() == lower).ok_or_else(|| UnknownDimension(name.to_string()))
    }
}
