//! How far a burst may go, how far it went, and why it ended.

use addresses::Avma;
use iced_x86::Mnemonic;

/// Limits of one burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fuel {
    /// Instructions to execute at most; a repeated string instruction counts once, plus once per 64 repetitions.
    pub instructions: u64,
    /// Taken branches to record at most.
    pub branches: u64,
}

/// What a burst did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// Instructions executed; a repeated string instruction counts once.
    pub instructions: u64,
    /// Taken branches recorded.
    pub branches: u64,
    /// Conditional branches that were not taken.
    pub not_taken: u64,
    /// Why it ended. The registers are those before the instruction that could not be executed, or of the next one.
    pub stop: StopReason,
}

/// Why a burst ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// The fuel of instructions was used up.
    Fuel,
    /// The fuel of branches was used up.
    Branches,
    /// The next instruction enters the kernel (`syscall`, `sysenter`, `int 0x80`).
    SystemCall,
    /// The next instruction reads memory that cannot be read, or writes memory that cannot be written.
    Fault {
        /// The first address that could not be accessed, or the start of its page.
        address: Avma,
    },
    /// The next instruction raises an exception: division, misaligned vector access, `ud2`, or one that only the kernel may use.
    Exception,
    /// The next instruction is a software interrupt (`int3`, `int n`, `int1`).
    Interrupt,
    /// The next instruction is not interpreted.
    Unsupported(UnsupportedInstruction),
    /// The bytes of the next instruction cannot be read.
    UnreadableCode,
    /// The next instruction was written, or would write over code that is cached.
    SelfModifying,
    /// The code repeats itself without effect: it waits for another thread.
    Spinning,
    /// A branch led into one of the forbidden ranges; the branch is recorded.
    Forbidden,
    /// More pages were touched than the overlay may hold.
    OverlayFull,
}

impl StopReason {
    /// What to call it in statistics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fuel => "instruction budget",
            Self::Branches => "branch depth",
            Self::SystemCall => "system call",
            Self::Fault { .. } => "unreadable memory",
            Self::Exception => "exception",
            Self::Interrupt => "software interrupt",
            Self::Unsupported(_) => "unsupported instruction",
            Self::UnreadableCode => "unreadable code",
            Self::SelfModifying => "self-modifying code",
            Self::Spinning => "spinning",
            Self::Forbidden => "forbidden range",
            Self::OverlayFull => "too many pages",
        }
    }
}

/// An instruction that is not interpreted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnsupportedInstruction {
    /// Its name; `INVALID` if the bytes are no instruction.
    pub mnemonic: Mnemonic,
    /// Its bytes, of which the first `length` count.
    pub bytes: [u8; 15],
    /// Number of its bytes.
    pub length: u8,
}
