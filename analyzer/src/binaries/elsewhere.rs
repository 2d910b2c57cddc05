//! Files that are not on this machine.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::build_id::BuildId;

/// What is wanted of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wanted {
    /// The program or library itself.
    Executable,
    /// Its separate debug file.
    DebugFile,
}

/// Gets files by build id from somewhere else. The analyzer itself reads files only.
pub trait ByBuildId: Send + Sync {
    /// The file, if there is one; it stays where it is while an analysis reads it. Whether it is really of that build is checked by those
    /// who asked.
    fn get(&self, build_id: &BuildId, wanted: Wanted) -> Option<PathBuf>;
}

/// Somewhere else, or nowhere.
#[derive(Clone, Default)]
pub struct Elsewhere(Option<Arc<dyn ByBuildId>>);

impl Elsewhere {
    /// Files are got from there.
    pub fn of(source: Arc<dyn ByBuildId>) -> Self {
        Elsewhere(Some(source))
    }

    pub(super) fn get(&self, build_id: &BuildId, wanted: Wanted) -> Option<PathBuf> {
        self.0.as_ref()?.get(build_id, wanted)
    }
}

impl PartialEq for Elsewhere {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

impl Eq for Elsewhere {}

/// The same in every process: whether there is somewhere else.
impl fmt::Debug for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Elsewhere" } else { "Nowhere" })
    }
}
