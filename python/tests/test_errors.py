"""What is wrong is said in the words of the command, with the names of arguments, and nothing ends the process."""

import errno
import os
import random
import re
import struct
import tempfile
import threading
import unittest
import warnings
from unittest import mock

import hbbp
from support import FOLDER, ROOT, archived, binary, fixture, run


def with_arguments(said):
    """A sentence of the command, with arguments in place of its options."""
    said = re.sub(r"hbbp mix --rows ([\w-]+)", r"mix(rows='\1')", said)
    return re.sub(r"--(rows|columns|filter|per|values|sort|model)\b", r"\1", said)


def sentence(*words):
    """What the command says is wrong, as the package words it."""
    said = run(*words, expected=1)[1].strip().splitlines()[-1]
    return with_arguments(said.removeprefix("hbbp: ").replace("hbbp mix reads", "hbbp.open reads"))


def sample_of(recording):
    """Where the tenth sample (record type 9) of a recording is."""
    at, size = struct.unpack_from("<QQ", recording, 40)
    end, seen = at + size, 0
    while at < end:
        kind, _, length = struct.unpack_from("<IHH", recording, at)
        seen += kind == 9
        if seen == 10:
            return at
        at += length
    raise AssertionError("there are fewer samples")


class Errors(unittest.TestCase):
    def file(self, name, content):
        path = FOLDER / name
        path.write_bytes(content)
        return path

    def test_files_of_other_kinds_are_named(self):
        recording = fixture("bursts/parse.data").read_bytes()
        report = run("mix", fixture("bursts/parse.data"), "--binary", binary("parse"), "--format", "json")[0]
        files = [
            self.file("empty.data", b""),
            self.file("text.data", b"no recording at all"),
            self.file("short.data", recording[:50]),
            self.file("header.data", b"PERFILE2" + b"\xff" * 96),
            self.file("other.json", b'{"schema": "x"}'),
            self.file("broken.json", b'{"schema": "hbbp-flow/1", "modules": [}'),
            self.file("truth.json", b'{"schema": "hbbp-blocks/1", "source": "truth", "blocks": 7}'),
            self.file("report.json", report.encode()),
            self.file("packed.gz", b"\x1f\x8b\x08\x00" + b"\x00" * 20),
            FOLDER,
        ]
        for file in files:
            with self.subTest(file=file), self.assertRaises(hbbp.HbbpError) as raised:
                hbbp.open(file)
            self.assertEqual(str(raised.exception), sentence("mix", file))

    def test_a_program_is_no_recording(self):
        with self.assertRaisesRegex(hbbp.HbbpError, "parse is an ELF program; hbbp.open reads recordings.*: make one with `hbbp record"):
            hbbp.open(ROOT / "tests/fixtures/binaries/parse")

    def test_a_file_that_is_not_there_is_pythons_own_error(self):
        missing = FOLDER / "nowhere.data"
        with self.assertRaises(FileNotFoundError) as raised:
            hbbp.open(missing)
        self.check_missing(raised.exception, missing, sentence("mix", missing))
        with self.assertRaises(FileNotFoundError) as raised:
            hbbp.read_report(missing)
        self.check_missing(raised.exception, missing)
        present = hbbp.open(fixture("bursts/parse.data"), binaries=binary("parse"))
        with self.assertRaises(FileNotFoundError) as raised:
            present.mix(taxonomies=missing)
        self.check_missing(raised.exception, missing)

    def check_missing(self, error, file, said=None):
        self.assertEqual((error.errno, error.filename), (errno.ENOENT, str(file)))
        self.assertTrue(error.strerror)
        if said is not None:
            self.assertEqual(error.strerror, said)

    def test_names_are_asked_for_once(self):
        file, option = fixture("bursts/threads.data"), binary("threads")
        run_ = hbbp.open(file, binaries=option)
        twice = [
            (["--rows", "isa,isa"], {"rows": "isa,isa"}),
            (["--rows", "isa", "--columns", "isa"], {"rows": "isa", "columns": "isa"}),
            (["--per", "isa,isa"], {"per": ["isa", "isa"]}),
            (["--values", "flops,flops"], {"values": ["flops", "flops"]}),
        ]
        for words, arguments in twice:
            said = run("mix", file, "--binary", option, *words, expected=2)[1]
            with self.subTest(words=words), self.assertRaisesRegex(ValueError, "is asked for twice") as raised:
                run_.mix(**arguments)
            self.assertIn(str(raised.exception), with_arguments(said.splitlines()[0]))
        # What groups have is no key of the rows once more.
        self.assertEqual(run_.mix(rows="isa,mnemonic", per="isa").columns[:2], ["isa", "mnemonic"])

    def test_what_changes_nothing_for_counts_is_said(self):
        file = fixture("bursts/parse.truth.json")
        options = ["--binary", binary("parse"), "--model", "published", "--core", "zen-2"]
        said = [line for line in run("mix", file, *options)[1].splitlines() if "changes nothing" in line]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            counts = hbbp.open(file, binaries=binary("parse"), model="published", core="zen-2")
        words = [str(warning.message) for warning in caught]
        self.assertEqual([f"hbbp: --{sentence}" for sentence in words], said)
        self.assertEqual(len(words), 2)
        with self.assertRaisesRegex(ValueError, "model chooses between the sources of recordings: .* is none"):
            hbbp.diff(counts, hbbp.open(fixture("bursts/parse.data"), binaries=binary("parse")))

    def test_a_question_without_an_answer_says_why(self):
        file, option = fixture("bursts/threads.data"), binary("threads")
        run_ = hbbp.open(file, binaries=option)
        for filters in [["function=nobody"], ["function=multipl"], ["mnemonic=vaddpd", "isa=base"], ["length>=15"]]:
            words = [word for text in filters for word in ("--filter", text)]
            for ask, command in [(run_.mix, "mix"), (run_.blocks, "blocks")]:
                with self.subTest(filters=filters), self.assertRaises(hbbp.HbbpError) as raised:
                    ask(filter=filters)
                self.assertEqual(str(raised.exception), sentence(command, file, "--binary", option, *words))
        advice = 'there is no mix by mnemonic: name the binaries with binaries or symfs of hbbp.open, or ask for rows="module"'
        with self.assertRaisesRegex(hbbp.HbbpError, re.escape(advice)):
            hbbp.open(file, symfs=FOLDER / "nowhere").mix()

    def test_arguments_that_mean_nothing_are_values(self):
        file, option = fixture("bursts/threads.data"), binary("threads")
        run_ = hbbp.open(file, binaries=option)
        wrong = [
            (["--rows", "vectorisation"], {"rows": "vectorisation"}),
            (["--columns", "colour"], {"columns": ["colour"]}),
            (["--filter", "mnemonic"], {"filter": "mnemonic"}),
            (["--filter", "packing>=2"], {"filter": ["isa=sse2", "packing>=2"]}),
            (["--per", "mnemonic"], {"per": "mnemonic"}),
            (["--values", "per-call"], {"values": "per-call"}),
            (["--rows", "function,thread", "--values", "per-call"], {"rows": "function,thread", "values": "per-call"}),
            (["--values", "row-share"], {"values": "row-share"}),
            (["--sort", "cont"], {"sort": "cont"}),
        ]
        for words, arguments in wrong:
            said = run("mix", file, "--binary", option, *words, expected=2)[1]
            with self.subTest(words=words), self.assertRaises(ValueError) as raised:
                run_.mix(**arguments)
            self.assertIn(str(raised.exception), with_arguments(said.splitlines()[0]))
        with self.assertRaisesRegex(ValueError, "^filter: blocks add up .*threads and phases; mix tells them apart by thread$"):
            run_.blocks(filter="thread=7")
        with self.assertRaisesRegex(ValueError, 'there is no number "speed"; the numbers are executions, share, '):
            run_.mix(values="speed")
        with self.assertRaisesRegex(ValueError, "there is no \"zen-1\"; there are .*zen-5"):
            hbbp.open(file, core="zen-1")
        for threads in [0, 65536, 2**40]:
            with self.assertRaisesRegex(ValueError, f"threads: it is {threads}, expected at least 1 and at most 65535"):
                hbbp.open(file, threads=threads)
        with self.assertRaises(OverflowError):
            hbbp.open(file, threads=-1)
        # Others than the machine has are no harm.
        hbbp.open(file, binaries=option, threads=65535).mix()
        with self.assertRaisesRegex(ValueError, "different `symfs`"):
            hbbp.diff(run_, hbbp.open(file, symfs="/elsewhere"))
        with self.assertRaises(TypeError):
            run_.mix(rows=7)
        for rows in ([], ""):
            with self.assertRaisesRegex(ValueError, "a mix needs at least one row key"):
                run_.mix(rows=rows)
        with self.assertRaises(FileNotFoundError) as raised:
            hbbp.open(file, model="nobodys.json")
        self.check_missing(raised.exception, "nobodys.json", sentence("mix", file, "--model", "nobodys.json"))
        with self.assertRaises(hbbp.HbbpError) as raised:
            hbbp.open(file, binaries=option, model="hardware").mix()
        self.assertEqual(str(raised.exception), sentence("mix", file, "--binary", option, "--model", "hardware"))
        simulated, program = fixture("simulated/ivy-bridge.data"), binary("compress")
        with self.assertRaisesRegex(ValueError, "software is a model for software sources") as raised:
            hbbp.open(simulated, binaries=program, model="software").mix()
        self.assertEqual(str(raised.exception), sentence("mix", simulated, "--binary", program, "--model", "software"))
        with self.assertRaisesRegex(ValueError, "^sort nosuch: there is neither such a number nor such a column"):
            run_.mix(rows="isa", columns="packing", sort="nosuch")
        taxonomy = self.file("wrong.toml", b"name = 7")
        with self.assertRaises(hbbp.HbbpError) as raised:
            run_.mix(taxonomies=[taxonomy])
        self.assertEqual(str(raised.exception), sentence("mix", file, "--taxonomy", taxonomy))

    def test_damaged_recordings_are_told_or_read(self):
        whole = fixture("simulated/westmere.data").read_bytes()
        chance = random.Random(7)
        for number in range(150):
            damaged = bytearray(whole)
            for _ in range(chance.choice([1, 8, 64])):
                damaged[chance.randrange(min(len(whole), chance.choice([200, 4096, len(whole)])))] = chance.randrange(256)
            if number % 3 == 0:
                del damaged[chance.randrange(len(damaged)) :]
            file = self.file("damaged.data", damaged)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    run_ = hbbp.open(file, binaries=binary("compress"))
                    run_.samples().to_polars()
                    run_.branches().to_polars()
                    run_.mix()
                except hbbp.HbbpError as error:
                    self.assertTrue(str(error))
                except Exception as error:  # polars' own, of what a stream says
                    self.assertIn("polars", type(error).__module__)

    def test_malformed_records_are_told(self):
        damaged = bytearray(fixture("containers/file.data").read_bytes())
        at = sample_of(damaged)
        # Its stack has more branches than the record has room for.
        damaged[at + 8 : at + struct.unpack_from("<H", damaged, at + 6)[0]] = b"\xff" * (struct.unpack_from("<H", damaged, at + 6)[0] - 8)
        file = self.file("malformed.data", damaged)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run_ = hbbp.open(file)
            table = run_.mix(rows="module")
        self.assertGreater(run_.head["malformed"], 0)
        told = [note for note in table.notes if "malformed" in note]
        self.assertEqual(len(told), 1, table.notes)
        self.assertIn(told[0], [str(warning.message) for warning in caught])

    def test_documents_that_are_no_reports(self):
        wrong = {
            b"": "is no report",
            b"[1, 2": "is no report",
            b"[" * 100_000: "is no report",
            b'{"schema": 7}': "its schema is",
            b'{"a": 1}': "its schema is",
        }
        for content, why in wrong.items():
            with self.subTest(content=content[:20]), self.assertRaisesRegex(hbbp.HbbpError, why):
                hbbp.read_report(self.file("wrong.json", content))
        with self.assertRaisesRegex(hbbp.HbbpError, "use hbbp.open"):
            hbbp.read_report(fixture("bursts/parse.data"))
        many = ", ".join(f'{{"f{at}": 1}}' for at in range(10_000))
        report = hbbp.read_report(self.file("many.json", f'{{"schema": "hbbp-x/1", "rows": [{many}]}}'.encode()))
        with self.assertRaisesRegex(hbbp.HbbpError, "has a field .* that others have not"):
            report.table("rows")
        mixed = b'{"schema": "hbbp-x/1", "rows": [{"a": 1, "b": "x", "c": null, "d": {"e": [1]}}, {"a": -2, "b": 3}], "n": []}'
        report = hbbp.read_report(self.file("mixed.json", mixed))
        rows = [{"a": 1, "b": "x", "c": None, "d.e": "[1]"}, {"a": -2, "b": "3", "c": None, "d.e": None}]
        self.assertEqual(report.table("rows").to_dicts(), rows)
        self.assertEqual((report.tables, report.facts["n"]), (["rows"], []))
        self.assertEqual(report.table("n").to_dicts(), [])
        for name in ["x", "rows.x", "schema.x", "", "."]:
            with self.subTest(name=name), self.assertRaisesRegex(KeyError, "there is no table .*; there are rows"):
                report.table(name)

    def test_what_an_archive_was_unpacked_to_goes_with_the_recording(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, TMPDIR=folder):
            run_ = hbbp.open(archived("parse", "parse.data"))
            self.assertEqual(len(os.listdir(folder)), 1)
            whole = run_.mix().to_dicts()
            self.assertEqual(whole, hbbp.open(fixture("bursts/parse.data"), binaries=binary("parse")).mix().to_dicts())
            del run_
            self.assertEqual(os.listdir(folder), [])

    def test_several_threads_ask_at_once(self):
        run_ = hbbp.open(fixture("bursts/threads.data"), binaries=binary("threads"))
        answers = []

        def ask():
            answers.append((run_.mix(rows="function").to_dicts(), run_.blocks().to_dicts()))

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(answers), 4)
        self.assertTrue(all(answer == answers[0] for answer in answers))


if __name__ == "__main__":
    unittest.main()
