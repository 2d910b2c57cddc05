"""One program and one compiler: its variants, profiles and times."""

import json
import math
import pathlib
import re
import shutil
import subprocess

from building import Failed, complaint, rustc_option, said

# Seconds of one recording, in one process: short ones have too few bursts, and too few of them use the same memory.
RECORDED = 60
# Of a sample profile, with the flow inference that the manual of clang proposes, and with the weighing of what inlining costs and saves that LLVM does by itself
# with instrumentation only.
SAMPLE_USE = {
    "clang": ["-fprofile-sample-use={}", "-fsample-profile-use-profi", "-mllvm", "-inline-enable-cost-benefit-analysis=true"],
    "rustc": ["{option}={}", "-Cllvm-args=-sample-profile-use-profi", "-Cllvm-args=-inline-enable-cost-benefit-analysis=true"],
    "gcc": ["-fauto-profile={}"],
}
# BOLT's own, with what its authors recommend.
LAYOUT = ["-reorder-blocks=ext-tsp", "-reorder-functions=cdsort", "-split-functions", "-split-all-cold"]


class Experiment:
    """Builds of one program by one compiler, and what was left out."""

    def __init__(self, program, compiler, given):
        self.program, self.compiler, self.given = program, compiler, given
        self.llvm = compiler != "gcc"
        self.variants, self.left_out, self.similar = {}, {}, {}

    def prepare(self):
        """Builds all variants."""
        self.program.prepare()
        self.base = self.program.build(self.compiler, "O2", [])
        self.variants["-O2"] = self.base
        self.attempt("instrumented PGO", self.instrumented)
        self.recording = self.known("O2.data") or self.recorded("O2", self.base)
        truth = (self.known("O2.truth") or self.truth()) if self.given.exact else None
        exact = self.exported("exact", ["--truth", truth]) if truth else None
        if exact:
            self.attempt("AutoFDO, exact", lambda: self.sampled("exact", ["--truth", truth]))
        self.attempt("AutoFDO, hbbp", lambda: self.sampled("hbbp", ["-i", self.recording]))
        if self.llvm and "AutoFDO, hbbp" in self.variants:
            self.prepare_again(self.variants["AutoFDO, hbbp"])
        self.attempt("AutoFDO, usual tool", self.sampled_by_others)
        if self.llvm:
            self.attempt("BOLT, hbbp", lambda: self.bolted("hbbp", self.base, self.exported("O2", ["-i", self.recording], "bolt")))
            self.attempt("BOLT, perf2bolt", lambda: self.bolted("perf2bolt", self.base, self.usual_fdata()))
        if exact:
            self.similar["AutoFDO, hbbp"] = similarity(exact, self.exported("hbbp", ["-i", self.recording]))
            if self.llvm and "AutoFDO, usual tool" in self.variants:
                self.similar["AutoFDO, usual tool"] = similarity(exact, self.file("usual.prof"))
        self.state().write_text(json.dumps({"variants": self.variants, "left_out": self.left_out, "similar": self.similar}, default=str))
        return self

    def prepare_again(self, build):
        """Builds what a recording of an optimized build makes of it."""
        source = ["-i", self.recorded("autofdo-hbbp", build)]
        self.attempt("AutoFDO twice, hbbp", lambda: self.with_samples("twice", self.exported("twice", source, of=build)))
        self.attempt("AutoFDO + BOLT, hbbp", lambda: self.bolted("autofdo-hbbp", build, self.exported("autofdo-hbbp", source, "bolt", build)))

    def restore(self):
        """What `prepare` built before."""
        if not self.state().exists():
            raise Failed("it was not built before")
        known = json.loads(self.state().read_text())
        self.variants = {name: pathlib.Path(path) for name, path in known["variants"].items()}
        self.left_out, self.similar = known["left_out"], known["similar"]
        return self

    def state(self):
        return self.file("experiment.json")

    def attempt(self, name, step):
        try:
            self.variants[name] = step()
        except Failed as error:
            self.left_out[name] = str(error)

    def file(self, name):
        return self.program.folder / f"{self.compiler}-{name}"

    def known(self, name):
        """The file of that name, if those that were made before are to be used."""
        file = self.file(name)
        return file if self.given.recorded and file.exists() else None

    def build(self, variant, flags):
        return self.program.build(self.compiler, variant, flags)

    def instrumented(self):
        folder = self.file("counts")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        if not self.llvm:
            # Names of counts follow those of objects: both builds have the same.
            self.program.run(self.build("pgo", [f"-fprofile-generate={folder}"]))
            return self.build("pgo", [f"-fprofile-use={folder}", "-Werror=missing-profile"])
        prefix = {"clang": "-f", "rustc": "-C"}[self.compiler]
        self.program.run(self.build("counting", [f"{prefix}profile-generate={folder}"]))
        profile = folder / "merged"
        said(["llvm-profdata-19", "merge", "-o", profile, *folder.glob("*.profraw")])
        return self.build("pgo", [f"{prefix}profile-use={profile}"])

    def recorded(self, name, build):
        """A recording of a minute."""
        times = self.program.times * math.ceil(RECORDED / max(self.program.run(build), 0.1))
        recording = self.file(f"{name}.data")
        command = [self.given.hbbp, "record", "-q", "--overhead", self.given.overhead, "-o", recording, "--", *self.program.command(build, times)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=self.program.folder)
        if done.returncode != self.program.success:
            raise Failed(f"hbbp record: {complaint(done.stderr)}")
        return recording

    def truth(self):
        """Exact counts of the same build."""
        truth = self.file("O2.truth")
        said([self.given.hbbp, "truth", "-o", truth, "--", *self.program.command(self.base, self.program.times)], cwd=self.program.folder, stdin=subprocess.DEVNULL)
        return truth

    def exported(self, name, source, kind="llvm-extbin", of=None):
        """A profile by `hbbp export`, of the -O2 build unless another one is named."""
        profile = self.file(f"{name}.{kind}")
        said([self.given.hbbp, "export", "--format", kind, *source, "--binary", of or self.base, "-o", profile])
        return profile

    def sampled(self, name, source):
        profile = self.exported(name, source, "llvm-extbin" if self.llvm else "gcov")
        return self.with_samples(name, profile)

    def with_samples(self, name, profile):
        option = rustc_option("profile-sample-use") if self.compiler == "rustc" else None
        return self.build(f"autofdo-{name}", [word.format(profile, option=option) for word in SAMPLE_USE[self.compiler]])

    def sampled_by_others(self):
        """With a profile that llvm-profgen or create_gcov makes of the same recording."""
        profile = self.file("usual.prof")
        if self.llvm:
            script = self.file("O2.perf-script")
            said([self.given.hbbp, "export", "--format", "perf-script", "-i", self.recording, "-o", script])
            said(["llvm-profgen-19", f"--binary={self.base}", f"--perfscript={script}", f"--output={profile}", "--format=extbinary"])
        else:
            said(["create_gcov", f"--binary={self.base}", f"--profile={self.recording}", f"--gcov={profile}", "-gcov_version=2"])
        return self.with_samples("usual", profile)

    def usual_fdata(self):
        fdata = self.file("O2.perf2bolt")
        said(["/usr/lib/llvm-19/bin/perf2bolt", "-p", self.recording, "-o", fdata, self.base])
        return fdata

    def bolted(self, name, build, fdata):
        target = self.file(f"bolt-{name}")
        said(["llvm-bolt-19", build, "-o", target, f"-data={fdata}", *LAYOUT])
        return target

    def measured(self):
        """The result, with CPU seconds of each variant by round: every round in another order, and one before the first, for nothing."""
        names, times = list(self.variants), {name: [] for name in self.variants}
        for number in range(-1, self.given.rounds):
            turn = number % len(names)
            for name in names[turn:] + names[:turn]:
                seconds = self.program.run(self.variants[name], self.given.cpu)
                if number >= 0:
                    times[name].append(seconds)
        return {"program": self.program.name, "compiler": self.compiler, "times": times, "similar": self.similar, "left_out": self.left_out}


def similarity(exact, other):
    """In percent."""
    text = said(["llvm-profdata-19", "overlap", "--sample", exact, other])
    found = re.search(r"program profile similarity: *([\d.]+)%", text)
    if not found:
        raise Failed(f"llvm-profdata overlap: {text[:300]}")
    return float(found[1])
