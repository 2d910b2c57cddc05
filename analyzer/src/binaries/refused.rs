//! Why no file was found for a module.

use std::path::PathBuf;

use crate::build_id::BuildId;
use crate::code::ImageError;

/// Why the code of a module is not known.
#[derive(Debug, thiserror::Error)]
pub enum NoCode {
    /// It is the kernel's.
    #[error("kernel code is not read")]
    Kernel,
    /// It was made while the program ran.
    #[error("it has no file, and the recording has no code of it")]
    NoFile,
    /// No module has these addresses.
    #[error("no mapping explains these addresses")]
    Unmapped,
    /// It was recorded under a name that is none of a file.
    #[error("its recorded name is not a path")]
    NoPath,
    /// Its files may be found now, but its addresses are those of an unknown one.
    #[error("its code was not read when the flow was made")]
    NotReadBefore,
    /// It was recorded on another machine, where it had no file, or its file was left out of what came from there.
    #[error("{0}")]
    NotPacked(String),
    /// None of the files that were found is it.
    #[error("{}", joined(.0))]
    Refused(Vec<Refused>),
}

/// Why a file is not the binary of a module.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// It does not exist.
    #[error("there is no {}", .0.display())]
    Missing(PathBuf),
    /// It cannot be read.
    #[error(transparent)]
    Unreadable(ImageError),
    /// It is no program and no library.
    #[error("{} has no executable segment: where its code is loaded is not in it", .0.display())]
    NotExecutable(PathBuf),
    /// It was built from something else.
    #[error("{} has build id {}, recorded was {}", file.display(), found.as_ref().map_or("none".to_string(), BuildId::to_string), recorded)]
    OtherBuild {
        /// The file that was looked at.
        file: PathBuf,
        /// Its build id, if it has one.
        found: Option<BuildId>,
        /// That of the binary that ran.
        recorded: BuildId,
    },
}

fn joined(refused: &[Refused]) -> String {
    refused.iter().map(Refused::to_string).collect::<Vec<_>>().join("; ")
}
