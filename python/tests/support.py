"""Fixtures, and the command whose results the package has, too."""

import json
import os
import pathlib
import subprocess
import tempfile

import zstandard

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
HBBP = os.environ.get("HBBP", str(TARGET / "debug/hbbp"))

_folder = tempfile.TemporaryDirectory(prefix="hbbp-python-")
FOLDER = pathlib.Path(_folder.name)


def fixture(name):
    """A file of tests/fixtures, unpacked."""
    plain = FOLDER / name.replace("/", "-")
    if not plain.exists():
        packed = (ROOT / "tests/fixtures" / f"{name}.zst").read_bytes()
        plain.write_bytes(zstandard.ZstdDecompressor().decompressobj().decompress(packed))
    return plain


def binary(program):
    """The value of --binary for a program of the fixtures."""
    return f"{program}={ROOT / 'tests/fixtures/binaries' / program}"


def run(*words, expected=0):
    """What the command printed: standard output, standard error."""
    words = [HBBP, *map(str, words)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == expected, f"{words}: {done.returncode}: {done.stderr}"
    return done.stdout, done.stderr


def document(*words):
    """What the command printed with --format json."""
    return json.loads(run(*words, "--format", "json")[0])


def archived(program, name):
    """An archive of a recording of a program, which needs no other file."""
    file = FOLDER / name
    if not file.exists():
        run("archive", fixture(f"bursts/{program}.data"), "--binary", binary(program), "-o", file)
    return file
