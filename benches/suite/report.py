"""The results as Markdown tables."""

import statistics

SOURCES = ["ebs", "lbr", "hybrid"]


def markdown(results):
    machine, done = results["machine"], results["programs"]
    title = f"{'Training programs' if results['set'] == 'training' else 'Benchmark suite'}{', small inputs' if results['small'] else ''}"
    parts = [
        f"# {title}\n\n{machine['hbbp']}, {machine['cpu']}, {machine['cpus']} CPUs, Linux {machine['linux']}; "
        f"load at the beginning {machine['load_at_the_beginning']}.\n"
    ]
    if done:
        parts.append(costs_of_instrumentation(done))
    for name, way in results["record"].items():
        if measured := [(one, [r[name] for r in one["rounds"]], [r[way["clean"]] for r in one["rounds"]]) for one in done if "rounds" in one]:
            title = f"hbbp record {way['options']}".strip() + how_often(way["times"], results["same_addresses"])
            parts += [costs(title, measured, way["times"]), errors(title, [(one["name"], runs) for one, runs, _ in measured])]
    if simulated := [(one["name"], [one["simulated"]]) for one in done if "simulated" in one]:
        parts.append(errors("hbbp record --pmu simulated", simulated))
    if results["left_out"]:
        parts.append("## Left out\n\n" + "".join(f"- {name}: {why}\n" for name, why in results["left_out"].items()))
    return "\n".join(parts)


def how_often(times, same_addresses):
    return ", once" if times == 1 else f", {times} times in a row{', data at the same addresses' if same_addresses else ''}"


def costs_of_instrumentation(done):
    rows = []
    for one in done:
        clean, counted = (one["truth"][what]["cpu"] for what in ("clean", "instrumented"))
        rows.append([one["name"], one["kind"], f"{clean:.1f}", f"{counted:.0f}", f"{counted / clean:.0f}x"])
    head = ["program", "kind", "clean, CPU s", "instrumented, CPU s", "slowdown"]
    return "## Instrumentation (callgrind)\n\n" + table(head, rows)


def costs(title, measured, times):
    """Table 1 of HBBP: times beside the clean run and beside instrumentation."""
    rows = []
    for one, runs, clean in measured:
        ratios = lambda what: [100 * (r[what] / c[what] - 1) for r, c in zip(runs, clean)]
        gathered = statistics.median(r["cpu"] + r["analysis"]["cpu"] for r in runs)
        known = [r for r in runs if r["claimed"] is not None]
        rows.append([
            one["name"],
            f"{statistics.median(c['wall'] for c in clean):.2f}",
            spread(ratios("wall")),
            spread(ratios("cpu")),
            f"{statistics.median(r['claimed'] for r in known):.2f}" if known else "",
            f"{statistics.median(r['bursts'] for r in known):.0f}" if known else "",
            f"{statistics.median(r['analysis']['wall'] for r in runs):.2f}",
            f"{times * one['truth']['instrumented']['cpu'] / gathered:.1f}x",
        ])
    mean = lambda what: statistics.fmean(statistics.median(r[what] / c[what] - 1 for r, c in zip(runs, clean)) for _, runs, clean in measured)
    rows.append(["**mean**", "", percent(mean("wall")), percent(mean("cpu")), "", "", "", ""])
    head = ["program", "clean, s", "wall, %", "CPU, %", "claimed, %", "bursts", "analysis, s", "faster than instrumentation"]
    rounds = max(len(runs) for _, runs, _ in measured)
    return (
        f"## Costs: {title}\n\n{rounds} rounds; medians [quartiles]. wall, CPU: beyond the clean run of the same round, the "
        "collector's time included; claimed: by the recording; faster: CPU time of instrumentation (of as many times) over that of recording and analysis.\n\n"
        + table(head, rows)
    )


def errors(title, measured):
    """Figure 2 of HBBP, average weighted errors of mnemonics by source; and those of blocks and functions, which it does not have."""
    mnemonics = [(source, [source, "mnemonic_error"]) for source in SOURCES]
    mnemonics += [("noise of hybrid", ["hybrid", "noise", "mnemonic_error"])]
    code = [(f"{what} {source}", [source, f"{what}_error"]) for what in ("block", "function") for source in SOURCES]
    code += [(f"{what} noise", ["hybrid", "noise", f"{what}_error"]) for what in ("block", "function")]
    code += [(f"{what} overlap", ["hybrid", f"{what}_overlap"]) for what in ("block", "function")]
    return (
        f"## Errors by mnemonic: {title}\n\nAverage weighted error in percent, medians over the rounds [quartiles]. Noise: from two halves of "
        "a recording; not compared: share of the truth left out.\n\n"
        + by_program(measured, mnemonics, spread_of_percent, [("not compared", not_compared)])
        + "\n## Errors by block and function\n\nAverage weighted error, noise and overlap of the hybrid, in percent, medians over the rounds.\n\n"
        + by_program(measured, code, lambda values: percent(statistics.median(values)), [])
    )


def by_program(measured, columns, shown, more):
    """A row for each program with the values found under the columns' paths, and the means of their medians."""
    wanted = [(head, lambda run, path=path: value_at(run["sources"], path)) for head, path in columns] + more
    rows, medians = [], []
    for name, runs in measured:
        values = [[value for run in runs if (value := get(run)) is not None] for _, get in wanted]
        rows.append([name, *(shown(column) if column else "" for column in values)])
        medians.append([statistics.median(column) if column else None for column in values])
    known = [[value for value in column if value is not None] for column in zip(*medians)]
    rows.append(["**mean**", *(percent(statistics.fmean(column)) if column else "" for column in known)])
    return table(["program", *(head for head, _ in wanted)], rows)


def value_at(document, path):
    for key in path:
        document = (document or {}).get(key)
    return document


def not_compared(run):
    return sum(left["share"] for left in run["left_out"] if left["side"] == "truth")


def percent(value):
    return f"{100 * value:.2f}"


def quartiles(values):
    return statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3


def spread(values):
    low, middle, high = quartiles(values)
    return f"{middle:+.2f} [{low:+.2f} {high:+.2f}]"


def spread_of_percent(values):
    low, middle, high = map(percent, quartiles(values))
    return f"{middle} [{low} {high}]"


def table(head, rows):
    cells = [head, [":--" if name in ("program", "kind") else "--:" for name in head], *rows]
    return "".join(f"| {' | '.join(map(str, row))} |\n" for row in cells)
