"""Programs of programs.toml: their sources, builds and runs."""

import functools
import os
import pathlib
import resource
import shutil
import subprocess
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
SUITE = HERE.parent / "suite"
DEBUG = ["-gdwarf-4", "-gline-tables-only", "-fdebug-info-for-profiling", "-funique-internal-linkage-names"]
FLAGS = {"clang": ["-O2", "-w", *DEBUG], "gcc": ["-O2", "-w", "-gdwarf-4", "-g1"]}
# Optimization and debug information as those of C; RUSTC_BOOTSTRAP=1 lets a stable rustc take options of nightly ones.
RUST_PROFILE = "[profile.release]\nopt-level = 2\ndebug = 1\ncodegen-units = 1\n"
RUST_LINK = "-Clink-arg=-Wl,--emit-relocs"

# Programs that state the day on which they were built are the same on any day.
os.environ["SOURCE_DATE_EPOCH"] = "0"


class Failed(Exception):
    """A step that did not work, and what the tool said."""


def said(command, **options):
    """Runs a tool; its output."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, errors="replace", **options)
    if done.returncode != 0:
        raise Failed(f"{pathlib.Path(str(command[0])).name}: {complaint(done.stderr or done.stdout)}")
    return done.stdout + done.stderr


@functools.cache
def rustc_option(*names):
    """How this rustc spells an option, with its newest name first: `-C` where it is stable, or else `-Z`."""
    environment = {**os.environ, "RUSTC_BOOTSTRAP": "1"}
    for name in names:
        for letter in ("-C", "-Z"):
            words = said(["rustc", letter, "help"], env=environment).split()
            if any(word.split("=")[0].lstrip("-") == name for word in words):
                return letter + name
    raise Failed(f"this rustc knows no option {' or '.join(names)}")


def debug_info_for_profiling():
    """rustc's option for what clang calls -fdebug-info-for-profiling."""
    return rustc_option("debuginfo-for-profiling", "debug-info-for-profiling")


def complaint(output):
    """The first error of what a tool said, or else the end of it."""
    lines = output.strip().splitlines()
    return next((line for line in lines if "error:" in line.lower()), "\n".join(lines[-3:]))[:300]


def programs(cache):
    """All programs, with their sources."""
    entries = tomllib.loads((HERE / "programs.toml").read_text())["program"]
    vendor = vendored(cache, entries)
    return [(RustProgram if entry.get("language") == "rust" else CProgram)(entry, vendor, cache) for entry in entries]


def vendored(cache, entries):
    """The crates with the sources."""
    project = cache / "sources"
    listed = project / "Cargo.toml"
    wanted = manifest("sources", [dependency(entry) for entry in entries]) + '[lib]\npath = "lib.rs"\n'
    if not ((project / "vendor").exists() and listed.exists() and listed.read_text() == wanted):
        project.mkdir(parents=True, exist_ok=True)
        (project / "lib.rs").touch()
        listed.write_text(wanted)
        said(["cargo", "vendor", "vendor"], cwd=project)
    return project / "vendor"


def manifest(name, dependencies):
    return f'[package]\nname = "{name}"\nversion = "0.0.0"\nedition = "2024"\n[workspace]\n[dependencies]\n{"".join(dependencies)}'


def dependency(entry):
    features = ", ".join(f'"{feature}"' for feature in entry.get("features", []))
    only = f", default-features = false, features = [{features}]" if features else ""
    return f'{entry["crate"]} = {{ version = "={entry["version"]}"{only} }}\n'


class Program:
    """One entry of programs.toml."""

    def __init__(self, entry, vendor, cache):
        self.entry, self.vendor, self.name = entry, vendor, entry["name"]
        self.folder = cache / self.name
        self.times, self.success = entry["times"], entry.get("success", 0)
        self.values = {"here": HERE, "suite": SUITE / "sources", "input": self.folder / "input"}

    def prepare(self):
        """Makes its input."""
        self.folder.mkdir(parents=True, exist_ok=True)
        words, target = self.entry.get("input"), self.values["input"]
        made_of = self.folder / "input.words"
        if words and not (made_of.exists() and made_of.read_text() == " ".join(words)):
            target.write_bytes(subprocess.run([SUITE / "generate", *words], stdout=subprocess.PIPE, check=True).stdout)
            made_of.write_text(" ".join(words))

    def command(self, binary, times):
        """The program with its arguments, to do its work so many times in one process."""
        return [str(binary), *(word.format(times=times, **self.values) for word in self.entry["command"])]

    def run(self, binary, cpu=None):
        """Runs it once, on that CPU; user CPU seconds."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        pin = None if cpu is None else lambda: os.sched_setaffinity(0, {cpu})
        done = subprocess.run(self.command(binary, self.times), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=pin, cwd=self.folder)
        if done.returncode != self.success:
            raise Failed(f"{binary.name}: exit code {done.returncode}: {complaint(done.stderr.decode(errors='replace'))}")
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


class CProgram(Program):
    """In C or C++."""

    compilers = ("clang", "gcc")

    def __init__(self, entry, vendor, cache):
        super().__init__(entry, vendor, cache)
        crate, without = vendor / entry["crate"], entry.get("without", [])
        found = [path for pattern in entry["sources"] for path in sorted(crate.glob(pattern)) if path.name not in without]
        if not found:
            raise Failed(f"{entry['crate']} has no {entry['sources'][0]}")
        # Of several versions in a crate the first.
        top = found[0].relative_to(crate).parts[0]
        found = [path for path in found if path.relative_to(crate).parts[0] == top]
        self.sources = [*found, HERE / entry["main"]]
        folders = {path.parent for path in found} | {found[0].parent.parent} | {crate / name for name in entry.get("includes", [])}
        self.includes = [f"-I{folder}" for folder in sorted(folders)]

    def build(self, compiler, variant, flags):
        """Builds all files of it; the program."""
        plain, linker = {"clang": ("clang-19", "clang++-19"), "gcc": ("gcc", "g++")}[compiler]
        target, objects = self.folder / f"{compiler}-{variant}", self.folder / f"{compiler}-{variant}.objects"
        shutil.rmtree(objects, ignore_errors=True)
        objects.mkdir()
        flags = [*FLAGS[compiler], *flags]
        jobs = []
        for number, source in enumerate(self.sources):
            if len(jobs) >= (os.cpu_count() or 1):
                finish(jobs.pop(0))
            command = [plain if source.suffix == ".c" else linker, "-c", *flags, *self.includes, *self.entry.get("flags", [])]
            jobs.append(subprocess.Popen([*command, "-o", objects / f"{number}.o", source], stderr=subprocess.PIPE, text=True, cwd=objects))
        for job in jobs:
            finish(job)
        lld = ["-fuse-ld=lld-19"] if compiler == "clang" and shutil.which("ld.lld-19") else []
        said([linker, *flags, "-Wl,--emit-relocs", *lld, "-o", target, *sorted(objects.iterdir()), *self.entry.get("libraries", [])], cwd=objects)
        return target


class RustProgram(Program):
    """In Rust: a file of this folder that uses a crate."""

    compilers = ("rustc",)

    def build(self, _, variant, flags):
        """Builds it and the crates; the program."""
        project, objects = self.folder / "project", self.folder / f"rustc-{variant}.objects"
        (project / ".cargo").mkdir(parents=True, exist_ok=True)
        (project / ".cargo/config.toml").write_text(
            f'[source.crates-io]\nreplace-with = "vendored"\n[source.vendored]\ndirectory = "{self.vendor}"\n'
        )
        binary = f'[[bin]]\nname = "{self.name}"\npath = "{HERE / self.entry["main"]}"\n'
        (project / "Cargo.toml").write_text(manifest(self.name, [dependency(self.entry)]) + binary + RUST_PROFILE)
        environment = {**os.environ, "RUSTC_BOOTSTRAP": "1", "RUSTFLAGS": " ".join([debug_info_for_profiling(), RUST_LINK, *flags]), "CARGO_INCREMENTAL": "0"}
        said(["cargo", "build", "--release", "--offline", "--target-dir", objects], cwd=project, env=environment)
        return pathlib.Path(shutil.copy(objects / "release" / self.name, self.folder / f"rustc-{variant}"))


def finish(job):
    _, errors = job.communicate()
    if job.returncode != 0:
        raise Failed(f"{job.args[0]}: {complaint(errors)}")
