use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use crate::{Skip, skip};

/// Programs of which a recording of traced bursts is in the repository, with exact counts.
pub const BURSTS: [&str; 5] = ["compress", "interpret", "objects", "parse", "threads"];

/// Recordings by the simulated PMU, all of `compress 10`.
pub const SIMULATED: [&str; 2] = ["ivy-bridge", "westmere"];

/// A recording, and the binary that most of it is of.
#[derive(Clone, Debug)]
pub struct Fixture {
    /// What tests call it.
    pub name: &'static str,
    /// The recording, a `perf.data` file.
    pub recording: PathBuf,
    /// The program it is of; another path was recorded.
    pub binary: PathBuf,
    /// Name of the program where it was recorded.
    pub recorded_as: &'static str,
}

impl Fixture {
    /// Bursts and a clock of one of [`BURSTS`].
    pub fn bursts(program: &'static str) -> Self {
        assert!(BURSTS.contains(&program), "there are no bursts of {program}");
        Self::of(program, &format!("bursts/{program}.data"), program)
    }

    /// One of [`SIMULATED`].
    pub fn simulated(name: &'static str) -> Self {
        assert!(SIMULATED.contains(&name), "there is no simulated {name}");
        Self::of(name, &format!("simulated/{name}.data"), "compress")
    }

    /// Branch stacks alone, as `perf record -b` writes them: those of the simulated Ivy Bridge.
    pub fn stacks() -> Self {
        Self::of("stacks", "containers/file.data", "compress")
    }

    /// Branch stacks of a Westmere, and the `gzip` they are of; where they are not, that is said.
    pub fn westmere() -> Option<Self> {
        let file = |name| hardware_recording(name);
        Some(Fixture {
            name: "hardware-westmere",
            recording: file("westmere-lbr.perf.data")?,
            binary: file("westmere-lbr.binary")?,
            recorded_as: "test.binary",
        })
    }

    /// Recordings of nothing but branch stacks (simulated ones, and hardware's where those are): what all tools read alike.
    pub fn all_stacks() -> Vec<Self> {
        [Some(Self::stacks()), Self::westmere()].into_iter().flatten().collect()
    }

    fn of(name: &'static str, recording: &str, program: &'static str) -> Self {
        let binary = repository().join("tests/fixtures/binaries").join(program);
        Fixture { name, recording: fixture_file(recording), binary, recorded_as: program }
    }

    /// The exact counts of the run, or of one like it.
    pub fn truth(&self) -> PathBuf {
        match self.recorded_as == self.name {
            true => fixture_file(&format!("bursts/{}.truth.json", self.name)),
            false => fixture_file(&format!("simulated/{}.truth.json", self.recorded_as)),
        }
    }

    /// The value of `--binary`.
    pub fn binary_option(&self) -> String {
        format!("{}={}", self.recorded_as, self.binary.display())
    }

    /// `-i` and `--binary`, for any command that reads a recording.
    pub fn input(&self) -> [String; 4] {
        let recording = self.recording.to_str().expect("the path is UTF-8").to_owned();
        ["-i".into(), recording, "--binary".into(), self.binary_option()]
    }

    /// The binary under its recorded name in `folder`, for tools that insist on it.
    pub fn copy_binary(&self, folder: &Path) -> PathBuf {
        let copy = folder.join(self.recorded_as);
        std::fs::copy(&self.binary, &copy).expect("the binary can be copied");
        copy
    }
}

/// A file of `tests/fixtures`, decompressed if it is stored compressed.
pub fn fixture_file(name: &str) -> PathBuf {
    let plain = repository().join("tests/fixtures").join(name);
    if plain.exists() {
        return plain;
    }
    let packed = plain.with_file_name(format!("{}.zst", plain.file_name().unwrap_or_default().to_string_lossy()));
    let bytes = std::fs::read(&packed).unwrap_or_else(|error| panic!("{}: {error}", packed.display()));
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    // Tests of several programs may come at once: a file appears under its name when it is whole.
    let folder = target().join(format!("fixtures/{:016x}", hasher.finish()));
    let file = folder.join(plain.file_name().unwrap_or_default());
    if file.exists() {
        return file;
    }
    std::fs::create_dir_all(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let content = zstd::decode_all(&bytes[..]).unwrap_or_else(|error| panic!("{}: {error}", packed.display()));
    let thread = format!("{:?}", std::thread::current().id());
    let partial = folder.join(format!("{}-{thread}.partial", std::process::id()));
    std::fs::write(&partial, content).and_then(|()| std::fs::rename(&partial, &file)).expect("the file can be written");
    file
}

/// A recording made on real hardware, or what belongs to one; where it is not, that is said.
pub fn hardware_recording(name: &str) -> Option<PathBuf> {
    if let Some(file) = hardware_folder().map(|folder| folder.join(name)).filter(|file| file.exists()) {
        return Some(file);
    }
    skip(Skip::HardwareRecordings, format_args!("{name} is not there; set HBBP_RECORDINGS"));
    None
}

/// All recordings made on real hardware, by name; none where they are not, and that is said.
pub fn hardware_recordings() -> Vec<PathBuf> {
    let Some(folder) = hardware_folder() else {
        skip(Skip::HardwareRecordings, "there are none; set HBBP_RECORDINGS");
        return Vec::new();
    };
    let entries =
        std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("HBBP_RECORDINGS={}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("the folder can be read").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "data"));
    paths.sort();
    assert!(!paths.is_empty(), "no recording in {}", folder.display());
    paths
}

fn hardware_folder() -> Option<PathBuf> {
    std::env::var_os("HBBP_RECORDINGS").map(PathBuf::from)
}

pub(crate) fn repository() -> PathBuf {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_folder.parent().expect("this crate is in a folder of the repository").to_path_buf()
}

/// Where cargo builds: the test's own program is in it.
fn target() -> PathBuf {
    let program = std::env::current_exe().expect("this program has a path");
    let built = program.ancestors().find(|folder| folder.ends_with("debug") || folder.ends_with("release"));
    built.map_or_else(std::env::temp_dir, |folder| folder.join("tmp"))
}
