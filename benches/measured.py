"""What several benches of this folder share: commands that are run once and measured, what recordings say, and how figures are printed."""

import collections
import json
import socket
import statistics
import subprocess
import sys

# Wall and CPU seconds of a command and everything it starts, and the peak of its resident memory in MiB.
Usage = collections.namedtuple("Usage", "wall cpu resident")

# Linux counts to the peak of a program what the process had in memory that started it (`ru_maxrss` of getrusage(2) outlives exec). So a
# process that has little starts it, and not the bench.
STARTER = """
import os, sys, time
null = [(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)]
begin = time.perf_counter()
pid = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=null)
_, status, usage = os.wait4(pid, 0)
wall = time.perf_counter() - begin
print(os.waitstatus_to_exitcode(status), wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
"""


def run(command, environment=None):
    """Runs a command to its end; its output is thrown away. Where it fails, the bench ends with what it said."""
    command = [str(word) for word in command]
    started = subprocess.run([sys.executable, "-I", "-S", "-c", STARTER, *command], capture_output=True, text=True, errors="replace", env=environment)
    code, *figures = started.stdout.split() or [started.returncode]
    if int(code) != 0:
        sys.exit(f"{' '.join(command)[:200]}: exit code {code}: {started.stderr[-500:]}")
    return Usage(*map(float, figures))


def free_port():
    """A port of 127.0.0.1 that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def tracer(recording):
    """What the tracer says of itself, at the end of the recording."""
    text = recording.read_bytes().rpartition(b'"tracer":')[2].decode(errors="replace")
    return json.JSONDecoder().raw_decode(text)[0]


def in_turn(ways, number):
    """The ways in the order of the round with this number: each is first once in as many rounds, so that none is always before another."""
    ways = list(ways)
    first = number % len(ways)
    return ways[first:] + ways[:first]


def quartiles(values, digits):
    """The median with the quartiles in brackets."""
    low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else values * 3
    return f"{middle:,.{digits}f} [{low:,.{digits}f} {high:,.{digits}f}]"
