"""Others take the tables and streams without a copy, with the types that the columns have."""

import unittest
import warnings

import duckdb
import hbbp
import pandas
import polars
import pyarrow
from support import binary, document, fixture


class Frames(unittest.TestCase):
    def setUp(self):
        self.run_ = hbbp.open(fixture("simulated/ivy-bridge.data"), binaries=binary("compress"))

    def test_every_library_takes_a_table(self):
        table = self.run_.mix(rows=["function", "isa"])
        rows = table.to_dicts()
        types = [polars.String, polars.String] + [polars.Float64] * 4 + [polars.Boolean]
        frame = polars.DataFrame(table)
        self.assertEqual(frame.dtypes, types)
        self.assertEqual(frame.to_dicts(), rows)
        self.assertEqual(table.to_polars().to_dicts(), rows)
        self.assertEqual(pyarrow.table(table).to_pylist(), rows)
        self.assertEqual(pyarrow.schema(table), pyarrow.table(table).schema)
        self.assertIsInstance(table.to_pandas(), pandas.DataFrame)
        self.assertEqual(list(table.to_pandas()["count"]), [row["count"] for row in rows])
        reader = pyarrow.RecordBatchReader.from_stream(table)
        total = duckdb.sql("select sum(count) from reader").fetchall()[0][0]
        self.assertAlmostEqual(total, table.instructions, delta=table.instructions * 1e-12)
        self.assertEqual(table.columns, frame.columns)
        self.assertEqual(len(table), len(rows))

    def test_pandas_takes_rows(self):
        table = self.run_.mix(rows=["function", "isa"])
        self.assertEqual(list(table), table.to_dicts())
        frame = pandas.DataFrame(table)
        self.assertEqual(list(frame.columns), table.columns)
        self.assertEqual(list(frame["count"]), [row["count"] for row in table])

    def test_events_have_one_dictionary_for_the_stream(self):
        run_ = hbbp.open(fixture("containers/file.data"))
        for of in [run_, self.run_]:
            batches = list(pyarrow.RecordBatchReader.from_stream(of.samples()))
            names = list(dict.fromkeys(of.machine["events"]))
            self.assertGreater(len(batches), 0)
            for batch in batches:
                self.assertEqual(batch.column("event").dictionary.to_pylist(), names)
        counted = pyarrow.table(self.run_.samples()).group_by("event").aggregate([("ip", "count")])
        self.assertEqual(counted.num_rows, len(set(counted["event"].to_pylist())))

    def test_names_that_sql_has_are_quoted(self):
        reader = pyarrow.RecordBatchReader.from_stream(self.run_.branches())
        self.assertGreater(duckdb.sql('select count(*) from reader where "from" > "to"').fetchall()[0][0], 0)

    def test_addresses_are_whole_numbers(self):
        frame = polars.DataFrame(self.run_.blocks())
        self.assertEqual([frame.schema[name] for name in ["start", "end", "instructions"]], [polars.UInt64] * 3)
        self.assertTrue((frame["start"] < frame["end"]).all())

    def test_a_table_is_taken_as_often_as_one_likes(self):
        table = self.run_.mix()
        del self.run_
        frames = [polars.DataFrame(table) for _ in range(3)]
        del table
        self.assertTrue(frames[0].equals(frames[2]))

    def test_what_nobody_takes_is_let_go(self):
        for _ in range(100):
            self.run_.mix().__arrow_c_stream__()
            self.run_.mix().__arrow_c_schema__()
            self.run_.branches().__arrow_c_stream__()

    def test_samples_and_branches_are_all_there(self):
        head = document("mix", fixture("simulated/ivy-bridge.data"), "--binary", binary("compress"))["head"]
        samples = polars.DataFrame(self.run_.samples())
        counted = dict(samples.group_by("event").len().iter_rows())
        self.assertEqual(counted[head["ebs_source"]["event"]], head["ebs_source"]["samples"])
        self.assertEqual(counted[head["lbr_source"]["event"]], head["lbr_source"]["samples"])
        branches = polars.DataFrame(self.run_.branches())
        self.assertEqual(len(branches), samples["branches"].sum())
        of_source = samples.filter(polars.col("event") == head["lbr_source"]["event"])
        self.assertEqual(of_source["branches"].sum(), head["lbr_source"]["branches"])
        lengths = branches.group_by("sample").len().sort("sample")
        with_branches = samples.with_row_index().filter(polars.col("branches") > 0)
        self.assertEqual(lengths["sample"].to_list(), with_branches["index"].to_list())
        self.assertEqual(lengths["len"].to_list(), with_branches["branches"].to_list())
        self.assertEqual(branches.schema["from"], polars.UInt64)
        self.assertEqual(branches.schema["mispredicted"], polars.Boolean)
        self.assertGreater(branches["mispredicted"].sum(), 0)

    def test_periods_that_are_fixed_are_those_of_the_event(self):
        samples = polars.DataFrame(hbbp.open(fixture("containers/file.data")).samples())
        self.assertEqual(samples["period"].null_count(), 0)
        self.assertGreater(samples["period"].min(), 1)

    def test_streams_come_in_batches(self):
        run_ = hbbp.open(fixture("bursts/threads.data"), binaries=binary("threads"))
        reader = pyarrow.RecordBatchReader.from_stream(run_.branches())
        self.assertGreater(reader.read_next_batch().num_rows, 0)
        sizes = [batch.num_rows for batch in reader]
        self.assertGreater(len(sizes), 0)
        with self.assertRaises(StopIteration):
            reader.read_next_batch()

    def test_stacks_of_every_container_are_the_same(self):
        branches = [
            pyarrow.table(hbbp.open(fixture(f"containers/{name}.data")).branches()).select(["from", "to"])
            for name in ["file", "pipe", "compressed"]
        ]
        with self.assertWarnsRegex(UserWarning, "as after a recorder that was killed"):
            killed = hbbp.open(fixture("containers/killed.data"))
        branches.append(pyarrow.table(killed.branches()).select(["from", "to"]))
        for other in branches[1:]:
            self.assertTrue(branches[0].equals(other))

    def test_what_the_machine_was(self):
        machine = self.run_.machine
        self.assertEqual(machine["arch"], "x86_64")
        self.assertTrue(machine["cpu"])
        self.assertIn(self.run_.head["lbr_source"]["event"], machine["events"])

        self.assertIsNone(hbbp.open(fixture("bursts/parse.truth.json")).machine)

    def test_what_there_is_to_say_is_said_as_warnings(self):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            table = hbbp.open(fixture("bursts/threads.data"), binaries=binary("threads")).mix(values="cycles")
        self.assertEqual([str(warning.message) for warning in said], table.notes)
        self.assertTrue(any("cycles" in note for note in table.notes), table.notes)


if __name__ == "__main__":
    unittest.main()
