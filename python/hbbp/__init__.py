"""Recordings of hbbp, a basic-block profiler, as data frames.

    import hbbp, polars

    run = hbbp.open("run.data")
    polars.DataFrame(run.mix(rows=["function", "mnemonic"], filter="packing=scalar"))
"""

from hbbp._hbbp import Diff, HbbpError, Recording, Report, Stream, Table, __version__, diff, open, read_report

__all__ = ["Diff", "HbbpError", "Recording", "Report", "Stream", "Table", "__version__", "diff", "open", "read_report"]
