# %% [markdown]
# # Which loop computes one number at a time?
#
# A processor with AVX2 adds four numbers of double precision in one instruction. This notebook finds the loop with the most
# floating-point operations that are not vectorized, looks at its instructions, and says what there is to win.
#
# Each `# %%` is a cell: VS Code, Spyder and Jupytext open this file as a notebook. As a program:
# `python scalar_loop.py run.data [[RECORDED=]BINARY ...]`.

# %%
import sys

import hbbp
import polars as pl

recording, *binaries = sys.argv[1:] or ["run.data"]
run = hbbp.open(recording, binaries=binaries)
print(run.machine["cpu"])
print(run.quality)

# %% [markdown]
# ## Floating-point operations by loop
#
# `flops` are operations, not instructions: one for each element of a vector. `flops_error` is half the width of the interval that
# holds the truth in 95 % of all recordings.

# %%
loops = pl.DataFrame(
    run.mix(rows=["function", "loop"], columns="packing", filter="flops>=1", values=["flops"], sort="flops")
)
scalar = loops.filter(pl.col("packing") == "scalar", pl.col("loop") != "[no loop]").sort("flops", descending=True)
if scalar.is_empty():
    sys.exit("no loop computes one number at a time")
all_flops = loops["flops"].sum()
print(scalar.select("function", "loop", pl.col("flops") / all_flops, pl.col("flops_error") / all_flops))

# %% [markdown]
# ## The instructions of the worst one

# %%
worst = scalar.row(0, named=True)
of_loop = [f"function={worst['function']}", f"loop={worst['loop']}"]
instructions = pl.DataFrame(run.mix(rows=["mnemonic", "packing", "operands"], filter=of_loop))
print(f"{worst['loop']} in {worst['function']}:")
print(instructions.select("mnemonic", "packing", "operands", "share", "share_error"))

# %% [markdown]
# ## Where it is, and how often it runs

# %%
blocks = pl.DataFrame(run.blocks(filter=of_loop)).sort("count", descending=True)
print(blocks.select(pl.col("start").map_elements(hex, pl.String), "instructions", "count", "count_error"))

# %% [markdown]
# ## What there is to win
#
# If this loop worked on four numbers at a time, it would execute about a quarter of its instructions.

# %%
everything = run.mix(rows="module").instructions
part = instructions["count"].sum() / everything
saved = part * 3 / 4
print(f"The loop is {part:.1%} of all instructions. Vectorized, the program would execute about {saved:.0%} fewer.")
