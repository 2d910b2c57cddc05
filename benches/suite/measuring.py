"""Runs: clean, counted exactly, recorded and compared."""

import collections
import functools
import json
import mmap
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

import programs
from programs import Failed

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# The programs of each set.
MANIFESTS = {"suite": ROOT / "benches/suite/programs.toml", "training": ROOT / "training-data/programs.toml"}
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "hbbp-suite"

Usage = collections.namedtuple("Usage", "wall cpu")
# How a command is recorded: options of `hbbp record`, and how often it runs in a row, if asked with data at the same addresses each time.
Way = collections.namedtuple("Way", "options times same_addresses")
# As users record.
ONCE = Way([], 1, False)


def timed(command, environment, folder, success=(0,)):
    """Wall-clock and CPU seconds of a command and everything it starts; its output is thrown away."""
    with tempfile.TemporaryFile() as errors:
        begin = time.perf_counter()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, env=environment, cwd=folder)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in success:
            errors.seek(0)
            said = errors.read().decode(errors="replace").strip()[-600:]
            raise Failed(f"{' '.join(map(str, command))[:200]}: exit code {process.returncode}: {said}")
    return Usage(wall, usage.ru_utime + usage.ru_stime)


def clean(run, way=ONCE):
    """What the command takes if it runs as often as in a recording of this way."""
    return timed(run.again(way.times, way.same_addresses), run.environment, run.folder, run.success)._asdict()


def pinned(hbbp):
    """Variables under which libraries choose the same code natively and under instrumentation."""
    lines = subprocess.run([hbbp, "truth", "--environment"], capture_output=True, text=True, check=True).stdout.splitlines()
    return dict(line.split("=", 1) for line in lines)


def exact_counts(hbbp, run):
    """Exact counts of a run, made if they are not in the cache: the file, what it took, and what a clean run takes."""
    file, cost, key = run.file("truth.json"), run.file("cost.json"), run.key()
    known = json.loads(cost.read_text()) if cost.exists() and file.exists() else {}
    if known.get("key") != key:
        progress(f"{run.program.name}: counting exactly")
        clean(run)
        alone = clean(run)
        counted = timed([hbbp, "truth", "-o", file, "--", *run.command], run.environment, run.folder, run.success)
        known = {"key": key, "clean": alone, "instrumented": counted._asdict()}
        cost.write_text(json.dumps(known, indent=1) + "\n")
    return {"file": str(file), "clean": known["clean"], "instrumented": known["instrumented"]}


def known(name, cache, hbbp):
    """The programs of the set of this name."""
    return programs.read(MANIFESTS[name], cache.resolve() / name, pinned(hbbp))


def of_set(name, hbbp, cache, only, small):
    """Runs of the programs of a set, all or those of these names, with the files of their exact counts."""
    wanted = [program for program in known(name, cache, hbbp) if not only or program.name in only]
    programs.install(wanted)
    for program in wanted:
        try:
            program.prepare()
            run = programs.Run(program, small)
            truth = exact_counts(hbbp, run)
        except Failed as error:
            print(f"{program.name}: left out: {error}", file=sys.stderr)
            continue
        yield run, truth["file"]


def in_turns(hbbp, run, ways, rounds):
    """Rounds of a run recorded in each way and a clean one of each length, every round in another order."""
    turns = {name_of_clean(way): functools.partial(clean, run, way) for way in ways.values()}
    turns |= {name: functools.partial(recorded, hbbp, run, way) for name, way in ways.items()}
    names, result = list(turns), []
    clean(run)
    for number in range(rounds):
        progress(f"{run.program.name}: round {number + 1} of {rounds}")
        turn = number % len(names)
        result.append({name: turns[name]() for name in names[turn:] + names[:turn]})
    return result


def name_of_clean(way):
    """The clean run that a recorded one is compared with."""
    return f"clean x{way.times}"


def recorded(hbbp, run, way):
    """A recorded run, analysed and compared with the exact counts. Those are of one time: shares are compared."""
    with tempfile.TemporaryDirectory(prefix="hbbp-suite-") as folder:
        recording, blocks = os.path.join(folder, "hbbp.data"), os.path.join(folder, "blocks.json")
        record = [hbbp, "record", "-q", "-o", recording, *way.options, "--", *run.again(way.times, way.same_addresses)]
        usage = timed(record, run.environment, run.folder, run.success)
        analysis = timed([hbbp, "blocks", "--no-cache", "-i", recording, "--format", "json", "-o", blocks], None, run.folder)
        compare = [hbbp, "validate", "-i", recording, "--truth", run.file("truth.json"), "--format", "json", "--top", "20"]
        done = subprocess.run(compare, capture_output=True, text=True)
        if done.returncode != 0:
            raise Failed(f"hbbp validate: {done.stderr.strip()[-600:]}")
        quality = json.loads(done.stdout)
        tracer = metadata(recording).get("tracer") or {}
    return {
        **usage._asdict(),
        "analysis": analysis._asdict(),
        "claimed": tracer.get("overhead"),
        "bursts": tracer.get("bursts"),
        "sources": quality["sources"],
        "left_out": quality["left_out"],
        "warnings": done.stderr.splitlines(),
    }


def metadata(recording):
    """What a recording says of itself: the JSON in its feature 250."""
    with open(recording, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at = data.rfind(b'{"schema":"hbbp-recording/1"')
        if at < 0:
            raise Failed("the recording has no metadata")
        return json.JSONDecoder().raw_decode(data[at : at + 1_000_000].decode(errors="replace"))[0]


def machine(hbbp):
    """On what it was measured."""
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    version = subprocess.run([hbbp, "--version"], capture_output=True, text=True).stdout.strip()
    load = f"{os.getloadavg()[0]:.1f}"
    return {"hbbp": version, "cpu": model, "cpus": os.cpu_count(), "linux": platform.release(), "load_at_the_beginning": load}


def progress(text):
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
