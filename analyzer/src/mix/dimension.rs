//! What a mix can be broken down by.

use std::fmt;

/// Defines the keys: what each is of, its name, and what it is, in words.
macro_rules! dimensions {
    ($(#[doc = $about:literal] $variant:ident: $subject:ident = $name:literal,)*) => {
        /// A key of rows, columns and filters.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Dimension {
            $(#[doc = $about] $variant,)*
        }

        impl Dimension {
            /// All, in the order of the help text.
            pub const ALL: &'static [Dimension] = &[$(Dimension::$variant),*];

            /// The name on the command line and in JSON.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Dimension::$variant => $name,)*
                }
            }

            /// What it is, in a sentence.
            pub fn about(self) -> &'static str {
                let about = match self {
                    $(Dimension::$variant => $about,)*
                };
                about.trim()
            }

            fn subject(self) -> Subject {
                match self {
                    $(Dimension::$variant => Subject::$subject,)*
                }
            }
        }
    };
}

/// What has the values of a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Subject {
    Task,
    Block,
    /// An instruction wherever it is.
    Instruction,
    /// A place that debug information tells the source of.
    Source,
    /// An instruction where it is.
    Place,
}

dimensions! {
    /// Name of the function, demangled.
    Function: Block = "function",
    /// Name of the function in the source, which may be inlined into another.
    SourceFunction: Source = "source-function",
    /// Name of the file of the source: as much of the end of its path as no other file has.
    File: Source = "file",
    /// The line of the source, as `file:line`.
    Line: Source = "line",
    /// The call that inlined the code, as `file:line`; `none` of what was not inlined.
    InlinedAt: Source = "inlined-at",
    /// The innermost loop, as `function:line`, or `function@address` without debug information.
    Loop: Block = "loop",
    /// How many loops it is in.
    LoopDepth: Block = "loop-depth",
    /// The branch instruction, by its place: `main+0x2a`; `none` of what is no branch.
    BranchSite: Place = "branch-site",
    /// Path of the module, as recorded.
    Module: Block = "module",
    /// The process, as `pid:name`.
    Process: Task = "process",
    /// The thread, as `tid:name`.
    Thread: Task = "thread",
    /// Name of the process: one key for all processes of a name.
    Comm: Task = "comm",
    /// The phase that the program was in, as it marked it.
    Phase: Task = "phase",
    /// The control group of the process, as a path: `/system.slice/nginx.service`.
    Cgroup: Task = "cgroup",
    /// The mnemonic in lower case: `mov`, `jne`.
    Mnemonic: Instruction = "mnemonic",
    /// What the instruction is for.
    Category: Instruction = "category",
    /// The instruction set extension that the instruction came with.
    Isa: Instruction = "isa",
    /// How it is encoded.
    Encoding: Instruction = "encoding",
    /// Whether it works on one element or on a vector of them.
    Packing: Instruction = "packing",
    /// Element type of vector and floating-point instructions.
    Element: Instruction = "element",
    /// Bits that it works with: of the vector if packed, of the element if scalar.
    Width: Instruction = "width",
    /// Bits of the widest vector register or packed operand in memory.
    VectorWidth: Instruction = "vector-width",
    /// Kinds of its operands, the destination first: `reg-mem`, `mem-imm`, `target`, `none`.
    Operands: Instruction = "operands",
    /// Bits of its largest register or operand in memory.
    OperandSize: Instruction = "operand-size",
    /// Bits of its largest immediate, as encoded.
    ImmediateSize: Instruction = "immediate-size",
    /// Whether it reads or writes memory, the stack included.
    Memory: Instruction = "memory",
    /// Bytes that it reads from memory, at most; `unknown` if registers decide.
    BytesRead: Instruction = "bytes-read",
    /// Bytes that it writes to memory, at most; `unknown` if registers decide.
    BytesWritten: Instruction = "bytes-written",
    /// How it states the address of its operand in memory.
    AddressMode: Instruction = "address-mode",
    /// Whether it accesses the stack without naming it: `push`, `call`.
    Stack: Instruction = "stack",
    /// What it does to the flow of control.
    Branch: Instruction = "branch",
    /// With a `lock` prefix, or locked without one.
    Lock: Instruction = "lock",
    /// With a repeat prefix.
    Rep: Instruction = "rep",
    /// Long latency: division, square root, and the like.
    Latency: Instruction = "latency",
    /// Bytes of the instruction.
    Length: Instruction = "length",
    /// The bytes of the instruction, as disassemblers show them: `48 89 e5`.
    CodeBytes: Place = "code-bytes",
    /// The basic block: its function, and where it begins in it.
    Block: Block = "block",
    /// Instructions of the basic block.
    BlockLength: Block = "block-length",
    /// The source chosen for the block.
    Chosen: Block = "chosen",
}

impl Dimension {
    /// The names of all, separated by commas.
    pub(super) fn names() -> String {
        Dimension::ALL.iter().map(|key| key.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// The dimension of a name, or of another name for it.
    pub fn named(name: &str) -> Option<Self> {
        let lower = name.trim().to_ascii_lowercase();
        Some(match lower.as_str() {
            "branch-kind" | "branchkind" => Dimension::Branch,
            "source" | "chosen-source" => Dimension::Chosen,
            "srcline" => Dimension::Line,
            "srcfile" => Dimension::File,
            "inlined" => Dimension::SourceFunction,
            "symbol" | "sym" => Dimension::Function,
            "dso" => Dimension::Module,
            "pid" => Dimension::Process,
            "tid" => Dimension::Thread,
            _ => return Dimension::ALL.iter().copied().find(|key| key.as_str() == lower),
        })
    }

    /// Whether debug information tells it.
    pub fn is_of_source(self) -> bool {
        self.subject() == Subject::Source
    }

    /// Whether it tells instructions of one block apart.
    pub fn is_of_instruction(self) -> bool {
        matches!(self.subject(), Subject::Instruction | Subject::Source | Subject::Place)
    }

    /// Whether loops tell it.
    pub fn is_of_loops(self) -> bool {
        matches!(self, Dimension::Loop | Dimension::LoopDepth)
    }

    /// Whether it tells processes, threads or phases apart.
    pub fn is_of_task(self) -> bool {
        self.subject() == Subject::Task
    }

    /// Whether an instruction has it wherever it is.
    pub fn is_attribute(self) -> bool {
        self.subject() == Subject::Instruction
    }
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
