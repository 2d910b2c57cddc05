//! The values that keys can have.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use iced_x86::Mnemonic;
use instructions::{
    AddressMode, BranchKind, Category, Element, Encoding, MemoryAccess, Packing, Width, isa_names, mnemonic_name,
};
use model::Source;

use crate::mix::Dimension;

/// The values of a key, as far as they are known before anything is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Values {
    /// One of these words.
    Words(Cow<'static, [&'static str]>),
    /// Whole numbers from 0, and these words.
    Numbers(&'static [&'static str]),
    /// Any text.
    Text,
}

impl Dimension {
    /// The values that it can have.
    pub fn values(self) -> Values {
        match self {
            Dimension::Mnemonic => Values::Words(mnemonics().into()),
            Dimension::Category => words(Category::ALL, Category::as_str),
            Dimension::Isa => Values::Words(isa_names().into()),
            Dimension::Encoding => words(Encoding::ALL, Encoding::as_str),
            Dimension::Packing => words(Packing::ALL, Packing::as_str),
            Dimension::Element => words(Element::ALL, Element::as_str),
            Dimension::Width => words(Width::ALL, Width::as_str),
            Dimension::VectorWidth => listed(&[NONE, "64", "128", "256", "512"]),
            Dimension::ImmediateSize => listed(&[NONE, "8", "16", "32", "64"]),
            Dimension::OperandSize => Values::Numbers(&[NONE]),
            Dimension::BytesRead | Dimension::BytesWritten => Values::Numbers(&[UNKNOWN]),
            Dimension::Length | Dimension::BlockLength | Dimension::LoopDepth => Values::Numbers(&[]),
            Dimension::Memory => words(MemoryAccess::ALL, MemoryAccess::as_str),
            Dimension::AddressMode => words(AddressMode::ALL, AddressMode::as_str),
            Dimension::Branch => words(BranchKind::ALL, BranchKind::as_str),
            Dimension::Stack => listed(&[STACK, NONE]),
            Dimension::Lock => listed(&[LOCK, NONE]),
            Dimension::Rep => listed(&[REP, NONE]),
            Dimension::Latency => listed(&[LONG, NORMAL]),
            Dimension::Chosen => words(&[Source::Ebs, Source::Lbr], Source::as_str),
            Dimension::Operands
            | Dimension::Function
            | Dimension::SourceFunction
            | Dimension::File
            | Dimension::Line
            | Dimension::InlinedAt
            | Dimension::Loop
            | Dimension::BranchSite
            | Dimension::Block
            | Dimension::CodeBytes
            | Dimension::Module
            | Dimension::Process
            | Dimension::Thread
            | Dimension::Comm
            | Dimension::Phase
            | Dimension::Cgroup => Values::Text,
        }
    }

    /// Whether its values can be compared as numbers.
    pub fn is_numeric(self) -> bool {
        matches!(self.values(), Values::Numbers(_))
            || matches!(self, Dimension::Width | Dimension::VectorWidth | Dimension::ImmediateSize)
    }
}

pub(super) const NONE: &str = "none";
pub(super) const UNKNOWN: &str = "unknown";
pub(super) const STACK: &str = "stack";
pub(super) const LOCK: &str = "lock";
pub(super) const REP: &str = "rep";
pub(super) const LONG: &str = "long";
pub(super) const NORMAL: &str = "normal";

fn listed(words: &'static [&'static str]) -> Values {
    Values::Words(words.into())
}

fn words<T: Copy>(all: &[T], name: impl Fn(T) -> &'static str) -> Values {
    Values::Words(all.iter().copied().map(name).collect())
}

/// All mnemonics, sorted.
fn mnemonics() -> &'static [&'static str] {
    static NAMES: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
        let names: BTreeSet<&'static str> = Mnemonic::values().map(mnemonic_name).collect();
        names.into_iter().collect()
    });
    &NAMES
}
