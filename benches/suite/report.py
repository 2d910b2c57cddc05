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
    for name, options in results["record"].items():
        if measured := [(one, [r[name] for r in one["rounds"]], [r["clean"] for r in one["rounds"]]) for one in done if "rounds" in one]:
            parts += [costs(options, measured), errors(f"hbbp record {options}", [(one["name"], runs) for one, runs, _ in measured])]
    if simulated := [(one["name"], [one["simulated"]]) for one in done if "simulated" in one]:
        parts.append(errors("hbbp record --pmu simulated", simulated))
    if results["left_out"]:
        parts.append("## Left out\n\n" + "".join(f"- {name}: {why}\n" for name, why in results["left_out"].items()))
    return "\n".join(parts)


def costs_of_instrumentation(done):
    rows = []
    for one in done:
        clean, counted = (one["truth"][what]["cpu"] for what in ("clean", "instrumented"))
        rows.append([one["name"], one["kind"], f"{clean:.1f}", f"{counted:.0f}", f"{counted / clean:.0f}x"])
    head = ["program", "kind", "clean, CPU s", "instrumented, CPU s", "slowdown"]
    return "## Instrumentation (callgrind)\n\n" + table(head, rows)


def costs(options, measured):
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
            f"{one['truth']['instrumented']['cpu'] / gathered:.1f}x",
        ])
    head = ["program", "clean, s", "wall, %", "CPU, %", "claimed, %", "bursts", "analysis, s", "faster than instrumentation"]
    rounds = max(len(runs) for _, runs, _ in measured)
    return (
        f"## Costs: hbbp record {options}\n\n{rounds} rounds, medians [quartiles]. wall, CPU: beyond the clean run of the same round, the "
        "collector's time included; claimed: by the recording; faster: CPU time of instrumentation over that of recording and analysis.\n\n"
        + table(head, rows)
    )


def errors(title, measured):
    """Figure 2 of HBBP: average weighted errors by source."""
    measures = [("mnemonic", "mnemonic_error"), ("block", "block_error"), ("function", "function_error")]
    value = lambda run, source, key: (run["sources"].get(source) or {}).get(key)
    noise = lambda run, source, key: ((run["sources"].get(source) or {}).get("noise") or {}).get(key)
    middle = lambda values: statistics.median(known) if (known := [v for v in values if v is not None]) else None
    rows, columns = [], []
    for name, runs in measured:
        found = [middle(value(run, source, key) for run in runs) for _, key in measures for source in SOURCES]
        found += [middle(value(run, "hybrid", key) for run in runs) for key in ("block_overlap", "function_overlap")]
        found += [middle(noise(run, "hybrid", key) for run in runs) for _, key in measures]
        found += [middle(sum(left["share"] for left in run["left_out"] if left["side"] == "truth") for run in runs)]
        columns.append(found)
        rows.append([name, *map(percent, found)])
    means = [statistics.fmean(known) if (known := [v for v in column if v is not None]) else None for column in zip(*columns)]
    rows.append(["**mean**", *map(percent, means)])
    head = ["program", *(f"{what} {source}" for what, _ in measures for source in SOURCES), "block overlap", "function overlap"]
    head += [*(f"{what} noise" for what, _ in measures), "not compared"]
    return (
        f"## Errors: {title}\n\nPercent, medians over the rounds. Average weighted error by mnemonic, block and function of each source; "
        "overlap and noise (from two halves of the recording) of the hybrid; not compared: share of the truth left out.\n\n"
        + table(head, rows)
    )


def percent(value):
    return "" if value is None else f"{100 * value:.2f}"


def spread(values):
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return f"{middle:+.2f} [{low:+.2f} {high:+.2f}]"


def table(head, rows):
    cells = [head, [":--", *["--:"] * (len(head) - 1)], *rows]
    return "".join(f"| {' | '.join(map(str, row))} |\n" for row in cells)
