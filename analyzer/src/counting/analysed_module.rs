//! The code of a module, made once and handed on: its file, functions, blocks, and the straight lines through them.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use crate::address::Svma;
use crate::binaries::Binary;
use crate::code::{BlockMap, FunctionTable, Image, KeptFunctions, Observed};
use crate::counting::straight_line::{LineBreaks, StraightLines};
use crate::lines::SourceIndex;

/// The code of a module whose file was read. Whatever is counted by block is counted by these blocks.
#[derive(Debug)]
pub struct AnalysedModule {
    /// The file that was read, with its debug file.
    pub binary: Binary,
    /// All functions of the file, those that were not hit included.
    pub functions: FunctionTable,
    /// What was seen of the code.
    pub observed: Observed,
    /// The blocks of the functions that were hit.
    pub blocks: BlockMap,
    pub(crate) breaks: LineBreaks,
    source: Mutex<Option<KeptSource>>,
}

/// The debug information of those ranges.
type KeptSource = (Vec<Range<Svma>>, Arc<SourceIndex>);

impl AnalysedModule {
    /// Cuts the code of a file into blocks where something was observed of it.
    pub fn new(binary: Binary, observe: impl FnOnce(&Image) -> Observed) -> Self {
        let functions = binary.functions();
        let observed = observe(&binary.image);
        let blocks = BlockMap::build(&binary.image, &functions, &observed);
        Self::of_parts(binary, functions, observed, blocks)
    }

    /// The same of functions that were found, and blocks that were cut, before. `None` if they cannot be of this file.
    pub(crate) fn of_kept(
        binary: Binary,
        functions: KeptFunctions<'_>,
        observed: Observed,
        blocks: BlockMap,
    ) -> Option<Self> {
        let debug_file = binary.debug_file.as_ref().map(|debug_file| &debug_file.image);
        let functions = FunctionTable::of_kept(functions, &binary.image, debug_file)?;
        blocks.is_of(&functions).then(|| Self::of_parts(binary, functions, observed, blocks))
    }

    fn of_parts(binary: Binary, functions: FunctionTable, observed: Observed, blocks: BlockMap) -> Self {
        let breaks = LineBreaks::of(&blocks);
        AnalysedModule { binary, functions, observed, blocks, breaks, source: Mutex::default() }
    }

    /// The debug information of some of its code, read by so many threads. What is asked for first is kept for who asks for the same.
    pub(crate) fn source(&self, ranges: Vec<Range<Svma>>, threads: usize) -> Arc<SourceIndex> {
        // Who asks meanwhile waits: as a rule for the same, which is not read twice.
        let mut kept = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, source)) = kept.as_ref().filter(|(known, _)| *known == ranges) {
            return Arc::clone(source);
        }
        let source = Arc::new(SourceIndex::read(&self.binary, &ranges, threads.max(1)));
        // Others are read again.
        kept.get_or_insert_with(|| (ranges, Arc::clone(&source)));
        source
    }

    /// Its code as straight lines.
    pub fn lines(&self) -> StraightLines<'_> {
        StraightLines::new(&self.binary.image, &self.blocks, &self.breaks)
    }
}
