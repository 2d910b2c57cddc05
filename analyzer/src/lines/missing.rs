//! Why debug information that is in another file is missing.

use std::path::PathBuf;

use super::sections::SectionError;
use crate::code::{ExpansionError, ImageError};

/// Why debug information that the program's file refers to, or that lies beside it, is not read.
#[derive(Debug, thiserror::Error)]
pub(super) enum Missing {
    /// There is no file of the name and build id that `.gnu_debugaltlink` states.
    #[error("names and functions that dwz moved to {0} are missing: install that file")]
    Alternate(String),
    /// The package beside the program is no file that can be analyzed.
    #[error("{}: {source}", .path.display())]
    Package {
        /// The package, `PROGRAM.dwp`.
        path: PathBuf,
        /// What is wrong with it.
        source: ImageError,
    },
    /// The sections of the package cannot be used.
    #[error("{}: {source}", .path.display())]
    PackageSections {
        /// The package, `PROGRAM.dwp`.
        path: PathBuf,
        /// What is wrong with them.
        source: SectionError,
    },
    /// The package's index contradicts the format, or its own sections.
    #[error("the .dwp file is damaged: {0}")]
    PackageIndex(#[source] gimli::Error),
    /// The package has a part of the unit's id that cannot be opened. The path is that of the `.dwo` file it was made from.
    #[error("{} in the .dwp file is damaged", .0.display())]
    PackagedPart(PathBuf),
    /// Nothing that is looked for has the split part of a unit. The path is the one that the skeleton states.
    #[error("there is no {} (nor beside the program, nor a .dwp file)", .0.display())]
    Part(PathBuf),
    /// The `.dwo` file has no unit of the skeleton's id.
    #[error("{} is of another build, or damaged", .0.display())]
    OtherBuild(PathBuf),
    /// The sections of the other file cannot be expanded.
    #[error(transparent)]
    Compressed(#[from] ExpansionError),
}
