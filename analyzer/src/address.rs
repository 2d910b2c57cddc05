//! The address spaces of the analysis: [`Avma`] in a running process, [`Svma`] as stated in an ELF file, [`FileOffset`] in the
//! file. They never mix: the only way from one to another is through a mapping or a segment.

pub use addresses::{Avma, FileOffset, Svma};
