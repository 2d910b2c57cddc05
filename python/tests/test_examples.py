"""The examples, and the code in the pages, run and find what is there."""

import contextlib
import io
import os
import re
import runpy
import sys
import unittest
import warnings
from unittest import mock

from support import FOLDER, ROOT, archived, binary, fixture, run


def executed(words, cwd=FOLDER):
    """The globals and the output of a program of Python."""
    out = io.StringIO()
    with mock.patch.object(sys, "argv", [str(word) for word in words]), contextlib.redirect_stdout(out):
        return runpy.run_path(str(words[0])), out.getvalue()


class Examples(unittest.TestCase):
    def test_the_scalar_loop_is_that_of_the_polygons(self):
        example = ROOT / "python/examples/scalar_loop.py"
        found, said = executed([example, fixture("bursts/objects.data"), binary("objects")])
        self.assertTrue(found["worst"]["function"].endswith("Polygon::area() const"), found["worst"])
        self.assertEqual(set(found["scalar"]["packing"]), {"scalar"})
        self.assertLessEqual({"mulsd", "subsd", "addsd"}, set(found["instructions"]["mnemonic"]))
        inside, blocks = found["instructions"]["count"].sum(), found["blocks"]
        self.assertAlmostEqual(inside, (blocks["count"] * blocks["instructions"]).sum(), delta=inside * 1e-9)
        self.assertGreater(found["part"], 0.05)
        self.assertLess(found["part"], 1.0)
        self.assertIn("Polygon::area() const:", said)
        self.assertIn("fewer.", said)

    def test_code_without_such_loops_is_said(self):
        example = ROOT / "python/examples/scalar_loop.py"
        with self.assertRaisesRegex(SystemExit, "no loop computes one number at a time"):
            executed([example, fixture("bursts/threads.data"), binary("threads")])

    def test_the_code_in_the_pages_runs(self):
        archived("threads", "run.data")
        archived("compress", "before.data")
        archived("compress", "after.data")
        printed, _ = run("mix", FOLDER / "run.data", "--format", "json")
        (FOLDER / "mix.json").write_text(printed)
        before = os.getcwd()
        for page in ["python/README.md", "docs/guide/python.md"]:
            code = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.S | re.M)
            self.assertGreater(len(code), 0, page)
            try:
                os.chdir(FOLDER)
                with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
                    warnings.simplefilter("ignore")
                    exec(compile("\n".join(code), page, "exec"), {})
            finally:
                os.chdir(before)


if __name__ == "__main__":
    unittest.main()
