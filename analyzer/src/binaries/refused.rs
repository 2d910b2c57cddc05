//! Why no file was found for a module.

use std::path::{Path, PathBuf};

use crate::address::{Avma, Svma};
use crate::build_id::BuildId;
use crate::code::ImageError;

/// The same for the kernel and for its modules.
const KERNEL_HIDDEN: &str =
    "the recording does not say where the kernel was: record as root, or with kernel.kptr_restrict=0";

/// Why the code of a module is not known.
#[derive(Debug, thiserror::Error)]
pub enum NoCode {
    /// It is the kernel's, of which there is no file.
    #[error("the kernel's file was not found; say --binary '[kernel.kallsyms]=VMLINUX'")]
    NoKernel,
    /// It is the kernel's, which is elsewhere after each boot.
    #[error("{KERNEL_HIDDEN}")]
    KernelHidden,
    /// It was made while the program ran.
    #[error("it has no file, and the recording has no code of it")]
    NoFile,
    /// No module has these addresses.
    #[error("no mapping explains these addresses")]
    Unmapped,
    /// It was gone, or not to be read, when the recorder looked at it.
    #[error(
        "nothing tells which file it was: it was gone, or could not be read, when the recorder came to it, or it has no build id and more than 1 GiB; say --binary to name it"
    )]
    Unidentified,
    /// It was recorded under a name that is none of a file.
    #[error("its recorded name is not a path")]
    NoPath,
    /// Its files may be found now, but its addresses are those of an unknown one.
    #[error("its code was not read when it was counted")]
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
    /// It cannot be opened.
    #[error(transparent)]
    Unreadable(ImageError),
    /// What is in it cannot be read.
    #[error("{}: {why}", file.display())]
    Malformed {
        /// The file that was looked at.
        file: PathBuf,
        /// What is wrong with it.
        why: ImageError,
    },
    /// It is no program and no library.
    #[error("{} has no executable segment: where its code is loaded is not in it", .0.display())]
    NotExecutable(PathBuf),
    /// It is the kernel as it is booted, packed in another way than is read.
    #[error(
        "{} is packed in a way that is not read (gzip, xz, LZ4 and Zstandard are): unpack it with scripts/extract-vmlinux of Linux, or install the kernel's debug symbols",
        .0.display()
    )]
    CompressedKernel(PathBuf),
    /// It is a copy of a kernel's memory that nothing identifies.
    #[error("of {} nothing tells that it is the recorded kernel: kallsyms beside it does not say where its code begins", .0.display())]
    UnknownKernel(PathBuf),
    /// It is a copy of a kernel's memory, and where the recorded kernel was is not known.
    #[error("{KERNEL_HIDDEN}")]
    KernelHidden,
    /// It is a copy of a kernel's memory that has nothing of the module.
    #[error("{} has no code of it: it was not loaded when the kernel was copied", .0.display())]
    NotInCopy(PathBuf),
    /// It is a copy of a kernel's memory from when the module was elsewhere.
    #[error("{} has it at {copied}, and it was recorded at {recorded}: it was loaded twice", file.display())]
    OtherLoad {
        /// The copy.
        file: PathBuf,
        /// Where the module was when the kernel was copied.
        copied: Avma,
        /// Where it was in the recording.
        recorded: Avma,
    },
    /// It is a core file with more code than a kernel has.
    #[error("{} has more than 256 MiB of kernel code: only copies of `perf record --kcore` are read", .0.display())]
    TooMuchCode(PathBuf),
    /// It is a core file that ends before its code does.
    #[error("{} is cut off: it has less code than it says", .0.display())]
    CutOff(PathBuf),
    /// It is a kernel whose code was not where the recorded kernel's was.
    #[error("{} is another kernel: its code begins at {linked}, that of the recorded one at {recorded}", file.display())]
    OtherAddresses {
        /// The file that was looked at.
        file: PathBuf,
        /// Where its code begins.
        linked: Svma,
        /// Where the code of the recorded kernel began.
        recorded: Avma,
    },
    /// It has other bytes than the file that was recorded, which has no build id.
    #[error("{} is another file than the recorded one, which has no build id", .0.display())]
    OtherBytes(PathBuf),
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

impl Refused {
    /// Because of what the file is; the path is said once.
    pub(super) fn of_image(file: &Path, why: ImageError) -> Self {
        match why {
            ImageError::Read { .. } | ImageError::NotAFile(_) => Self::Unreadable(why),
            why => Self::Malformed { file: file.to_owned(), why },
        }
    }
}

fn joined(refused: &[Refused]) -> String {
    refused.iter().map(Refused::to_string).collect::<Vec<_>>().join("; ")
}
