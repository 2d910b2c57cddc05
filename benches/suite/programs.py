"""The programs of a manifest: their packages, their inputs, the commands to run."""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tomllib

FOLDER = pathlib.Path(__file__).resolve().parent
GENERATE = FOLDER / "generate"
OWN_PROGRAMS = FOLDER.parent / "programs"
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/games"


class Failed(Exception):
    """A program that cannot be measured, and why."""


def read(manifest, cache, pinned):
    """The programs of a manifest, with their folders in the cache."""
    document = tomllib.loads(manifest.read_text())
    common = {**pinned, **document["environment"]}
    return [Program(entry, manifest.parent / "sources", cache / entry["name"], common) for entry in document["program"]]


def install(wanted):
    """Installs what is missing, as root; otherwise says what is missing."""
    names = sorted({name for program in wanted for name in program.packages} | {"valgrind"})
    missing = [name for name in names if not installed(name)]
    if not missing:
        return
    install_command = ["apt-get", "install", "-y", "--no-install-recommends", *missing]
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        print(f"missing packages: {' '.join(install_command)}", file=sys.stderr)
    elif subprocess.run(install_command, stdout=sys.stderr, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}).returncode != 0:
        print(f"not all of these can be installed: {' '.join(missing)}", file=sys.stderr)


def installed(package):
    if not shutil.which("dpkg-query"):
        return True
    query = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status}", package], capture_output=True, text=True)
    return query.stdout == "installed"


class Program:
    """One entry of a manifest."""

    def __init__(self, entry, sources, folder, common):
        self.name, self.kind, self.packages = entry["name"], entry["kind"], entry["packages"]
        self.commands = {False: entry["command"], True: entry.get("small", entry["command"])}
        self.success = entry.get("success", [0])
        self.preparation = entry.get("prepare", "")
        self.sources, self.folder, self.inputs = sources, folder, folder / "inputs"
        self.environment = {"PATH": PATH, "HOME": str(folder / "home"), **common, **entry.get("environment", {})}

    def prepare(self):
        """Makes the inputs, where they were not made from the same yet."""
        recipe = digest([self.preparation.encode(), *map(contents, [GENERATE, *self.own_sources()])])
        made = self.folder / "prepared"
        if made.exists() and made.read_text() == recipe:
            return
        shutil.rmtree(self.inputs, ignore_errors=True)
        self.inputs.mkdir(parents=True)
        (self.folder / "home").mkdir(exist_ok=True)
        (self.inputs / "sources").symlink_to(self.sources)
        environment = {**os.environ, "generate": str(GENERATE), "programs": str(OWN_PROGRAMS), "LC_ALL": "C"}
        done = subprocess.run(["sh", "-ec", self.preparation], cwd=self.inputs, env=environment, stdout=sys.stderr)
        if done.returncode != 0:
            raise Failed(f"its inputs cannot be made (exit code {done.returncode})")
        made.write_text(recipe)

    def own_sources(self):
        """Sources of this project that the program is made of or reads."""
        text = "\n".join([self.preparation, *(word for command in self.commands.values() for word in command)])
        named = [path for path in self.sources.iterdir() if f"sources/{path.name}" in text]
        named += [path for path in OWN_PROGRAMS.iterdir() if f"programs/{path.name}" in text]
        return sorted(path for root in named for path in ([root] if root.is_file() else root.rglob("*")) if path.is_file())


class Run:
    """A command of a program: the full one, or the small one."""

    def __init__(self, program, small):
        self.program, self.small = program, small
        self.environment, self.folder, self.success = program.environment, program.inputs, program.success
        name, *words = program.commands[small]
        self.binary = shutil.which(name, path=PATH) if "/" not in name else str((program.inputs / name).absolute())
        if not self.binary or not os.path.exists(self.binary):
            raise Failed(f"{name} is not there; packages: {' '.join(program.packages)}")
        self.command = [self.binary, *words]

    def again(self, times, same_addresses=True):
        """A command that runs this one so often, and, if asked, with data at the same addresses each time."""
        loop = 'left=$1; shift; while [ "$left" -gt 0 ]; do "$@"; code=$?; left=$((left - 1)); done; exit $code'
        row = ["/bin/sh", "-c", loop, "sh", str(times), *self.command]
        return self.command if times == 1 else ["setarch", "-R", *row] if same_addresses else row

    def file(self, name):
        """A file of this run beside the inputs."""
        return self.program.folder / (f"small.{name}" if self.small else name)

    def key(self):
        """What the exact counts depend on: the program, the command, the environment, all inputs and sources."""
        inputs = sorted(path for path in self.folder.rglob("*") if path.is_file() and "sources" not in path.parts)
        written = {name: value for name, value in self.environment.items() if name != "HOME"}
        words = json.dumps([self.program.commands[self.small], written], sort_keys=True).encode()
        return digest([words, contents(self.binary), *map(contents, [*inputs, *self.program.own_sources()])])


def contents(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def digest(parts):
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()
