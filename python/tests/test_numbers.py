"""Tables have the numbers of the command, to the last digit."""

import json
import unittest
import warnings

import hbbp
from support import ROOT, binary, document, fixture, run


def quietly(ask):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ask()


class Numbers(unittest.TestCase):
    maxDiff = 2000

    def check_mix(self, file, program, words, **arguments):
        options = ["--binary", binary(program)]
        expected = document("mix", file, "--no-cache", *options, *words)
        run_ = hbbp.open(file, binaries=binary(program))
        table = quietly(lambda: run_.mix(**arguments))
        rows = table.to_dicts()
        with self.subTest(file=file, words=words):
            self.assertEqual(len(rows), len(expected["rows"]))
            self.assertGreater(len(rows), 0)
            for got, wanted in zip(rows, expected["rows"]):
                self.assertEqual(got, wanted)
            self.assertEqual(table.instructions, expected["instructions"])
            self.assertEqual(table.quality, expected["head"].get("precision", {}).get("text"))
        return run_, expected

    def test_mixes_are_those_of_the_command(self):
        numbers = "executions,share,error,per-call,taken,mispredicted,mispredict-rate,per-taken,samples,flops,bytes,intensity,flops-per-call"
        asked = [
            ([], {}),
            (["--rows", "function,mnemonic"], {"rows": ["function", "mnemonic"]}),
            (["--rows", "isa", "--columns", "packing"], {"rows": "isa", "columns": "packing"}),
            (
                ["--rows", "isa", "--columns", "packing", "--values", "executions,row-share"],
                {"rows": "isa", "columns": ["packing"], "values": ["executions", "row-share"]},
            ),
            (
                ["--rows", "function", "--values", numbers, "--sort", "flops"],
                {"rows": "function", "values": numbers.split(","), "sort": "flops"},
            ),
            (["--per", "function", "--rows", "vectorization"], {"per": "function", "rows": ["vectorization"]}),
            (
                ["--rows", "process,thread,comm", "--filter", "packing=scalar", "--filter", "element!=none"],
                {"rows": "process,thread,comm", "filter": ["packing=scalar", "element!=none"]},
            ),
            (
                ["--rows", "loop,loop-depth,length", "--sort", "name"],
                {"rows": ["loop", "loop-depth", "length"], "sort": "name"},
            ),
            (["--rows", "function,loop", "--values", "cycles,ipc"], {"rows": "function,loop", "values": "cycles,ipc"}),
        ]
        for words, arguments in asked:
            self.check_mix(fixture("bursts/threads.data"), "threads", words, **arguments)

    def test_lines_and_hardware_like_sources(self):
        self.check_mix(fixture("bursts/objects.data"), "objects", ["--rows", "line,source-function"], rows="line,source-function")
        self.check_mix(fixture("simulated/ivy-bridge.data"), "compress", ["--rows", "branch-site", "--values", "taken"],
                       rows="branch-site", values="taken")
        run_, expected = self.check_mix(fixture("simulated/westmere.data"), "compress", [])
        self.assertEqual(run_.head, expected["head"])
        self.assertEqual(run_.source, expected["source"])
        self.assertEqual(run_.unit, expected["head"]["unit"])
        self.assertEqual(run_.weaker, expected["head"]["degraded"])
        self.assertEqual(run_.quality, expected["head"]["precision"]["text"])

    def test_a_chosen_rule_and_core(self):
        file, option = fixture("simulated/ivy-bridge.data"), binary("compress")
        expected = document("blocks", file, "--binary", option, "--no-cache", "--model", "published")
        rows = hbbp.open(file, binaries=[option], model="published").blocks().to_dicts()
        self.assertEqual([row["count"] for row in rows], [row["count"] for row in expected["blocks"]])
        file, option = fixture("bursts/parse.data"), binary("parse")
        expected = document("mix", file, "--binary", option, "--no-cache", "--core", "zen-2")
        rows = hbbp.open(file, binaries=[option], core="zen-2", threads=1).mix().to_dicts()
        self.assertEqual(rows, expected["rows"])

    def test_counts_that_were_made_before(self):
        merged = fixture("bursts/parse.data").with_name("merged.flow")
        run("merge", "-o", merged, fixture("bursts/parse.data"), "--binary", binary("parse"))
        for file in [merged, fixture("bursts/parse.truth.json")]:
            run_, expected = self.check_mix(file, "parse", ["--rows", "function"], rows="function")
            self.assertEqual(run_.source, expected["source"])
            self.assertEqual(len(quietly(run_.functions)), len(expected["rows"]))
            with self.assertRaisesRegex(hbbp.HbbpError, "has counts and no samples: name a recording"):
                run_.samples()

    def test_blocks_are_those_of_the_command(self):
        for words, arguments in [([], {}), (["--filter", "loop-depth>=1"], {"filter": "loop-depth>=1"})]:
            file, option = fixture("bursts/compress.data"), binary("compress")
            expected = document("blocks", file, "--binary", option, "--no-cache", *words)
            table = hbbp.open(file, binaries=option).blocks(**arguments)
            rows = table.to_dicts()
            self.assertEqual(len(rows), len(expected["blocks"]))
            for got, wanted in zip(rows, expected["blocks"]):
                module = expected["modules"][wanted.pop("module")]
                self.assertEqual((got.pop("module"), got.pop("build_id")), (module["path"], module["build_id"]))
                self.assertEqual(got, wanted)
            self.assertEqual(table.instructions, expected["instructions"])

    def test_functions_are_a_mix(self):
        file, option = fixture("bursts/objects.data"), binary("objects")
        expected = document("mix", file, "--binary", option, "--no-cache", "--rows", "function,module", "--values", "per-call,samples")
        self.assertEqual(hbbp.open(file, binaries=option).functions().to_dicts(), expected["rows"])

    def test_what_makes_a_comparison_weaker_is_said(self):
        files = [fixture("bursts/compress.data"), fixture("bursts/parse.data")]
        degraded = document("diff", *files)["degraded"]
        notes = hbbp.diff(*map(hbbp.open, files)).notes
        self.assertGreater(len(degraded), 0)
        self.assertEqual([sentence for sentence in degraded if sentence not in notes], [])

    def test_differences_are_those_of_the_command(self):
        files = [fixture("bursts/compress.data"), fixture("simulated/ivy-bridge.data")]
        option = binary("compress")
        for rows in [None, "isa,packing"]:
            words = ["--rows", rows] if rows else []
            expected = document("diff", *files, "--binary", option, "--no-cache", *words)
            sides = [hbbp.open(file, binaries=option) for file in files]
            diff = quietly(lambda: hbbp.diff(*sides, rows=rows))
            for table in ["functions", "blocks", "lines", "mix"]:
                got = diff.table("kinds" if table == "mix" else table).to_dicts()
                wanted = expected[table]
                for row in wanted:
                    row.pop("names", None)
                self.assertGreater(len(wanted), 0)
                self.assertEqual(got, wanted)
            self.assertEqual(diff.overlap, expected["overlap"])
            self.assertEqual(diff.work, expected["work"])
            self.assertEqual(diff.sides, [expected["before"], expected["after"]])
            if rows:
                self.assertEqual(diff.table("rows").to_dicts(), expected["rows"])
            else:
                with self.assertRaisesRegex(KeyError, "there is no table .*rows.*; there are functions, blocks, lines, kinds"):
                    diff.table("rows")

    def test_a_choice_of_sources_counts_differences(self):
        files, option = [fixture("simulated/ivy-bridge.data")] * 2, binary("compress")
        truth = fixture("simulated/compress.truth.json")
        sides = [hbbp.open(files[0], binaries=option, model="published"), hbbp.open(files[1], binaries=option)]
        by_choice = quietly(lambda: hbbp.diff(sides[0], hbbp.open(truth, binaries=option))).table("functions").to_dicts()
        by_branches = quietly(lambda: hbbp.diff(sides[1], hbbp.open(truth, binaries=option))).table("functions").to_dicts()
        self.assertNotEqual(by_choice, by_branches)

    def test_paths_are_tables(self):
        file, option = fixture("bursts/threads.data"), binary("threads")
        for words, name in [([], "hot.paths"), (["--to", "divisor"], "history.paths")]:
            printed, _ = run("paths", file, "--binary", option, "--format", "json", *words)
            path = file.with_name("paths.json")
            path.write_text(printed)
            expected, report = json.loads(printed), hbbp.read_report(path)
            outer, inner = name.split(".")
            self.assertIn(name, report.tables)
            self.assertEqual([row["share"] for row in report.table(name)], [row["share"] for row in expected[outer][inner]])
            self.assertNotIn(inner, report.facts[outer])
            self.assertEqual(report.facts["head"], expected["head"])

    def test_files_are_paths_too(self):
        file = fixture("bursts/threads.data")
        program = ROOT / "tests/fixtures/binaries/threads"
        taxonomy = file.with_name("own.toml")
        taxonomy.write_text('name = "own"\ndescription = "x"\n')
        wanted = hbbp.open(file, binaries=str(program)).mix(rows="own", taxonomies=[taxonomy]).to_dicts()
        for binaries in [program, [program], (str(program),)]:
            run_ = hbbp.open(file, binaries=binaries)
            for taxonomies in [taxonomy, str(taxonomy), (taxonomy,)]:
                self.assertEqual(run_.mix(rows="own", taxonomies=taxonomies).to_dicts(), wanted)
        with self.assertRaises(FileNotFoundError):
            hbbp.open(file, model=file.with_name("nobodys.json"))

    def test_numbers_are_asked_for_as_columns_are_called(self):
        run_ = hbbp.open(fixture("bursts/threads.data"), binaries=binary("threads"))
        table = run_.mix(rows="function,module", values="per_call", sort="per_call")
        self.assertIn("per_call", table.columns)
        self.assertEqual(table.to_dicts(), run_.mix(rows="function,module", values="per-call", sort="per-call").to_dicts())

    def test_reports_are_read_as_they_were_printed(self):
        file, option = fixture("bursts/threads.data"), binary("threads")
        asked = {"mix": ("rows", ["--rows", "function,isa"]), "blocks": ("blocks", []), "annotate": ("functions", [])}
        for command, (name, words) in asked.items():
            printed, _ = run(command, file, "--binary", option, "--format", "json", *words)
            path = file.with_name(f"{command}.json")
            path.write_text(printed)
            expected = document(command, file, "--binary", option, *words)
            report = hbbp.read_report(path)
            self.assertEqual(report.schema, expected["schema"])
            self.assertIn(name, report.tables)
            self.assertEqual(report.facts["head"], expected["head"])
            rows = report.table(name).to_dicts()
            self.assertEqual(len(rows), len(expected[name]))
            for got, wanted in zip(rows, expected[name]):
                for field, value in wanted.items():
                    if not isinstance(value, (dict, list)):
                        self.assertEqual(got[field], value)


if __name__ == "__main__":
    unittest.main()
