"""The results as Markdown tables."""

import re
import statistics

# Programs that gain less by instrumentation say nothing of a profile.
WORTHWHILE = 5


def markdown(results):
    """All results: gains, what there is of them in the mean, and what was left out."""
    return "\n".join([gains(results), means(results), *left_out(results)])


def gains(results):
    lines = ["| program | compiler | variant | CPU, s | gain over -O2, % | similar to exact, % |", "|:--|:--|:--|--:|--:|--:|"]
    for one in results:
        for name, times in one["times"].items():
            similar = one["similar"].get(name)
            lines.append(
                f"| {one['program']} | {one['compiler']} | {name} | {statistics.median(times):.2f} | "
                f"{'' if name == '-O2' else spread(gain(one, name))} | {'' if similar is None else f'{similar:.1f}'} |"
            )
    return "\n".join(lines) + "\n"


def means(results):
    """Of the programs that are worth it, what each variant has of the gain of instrumentation."""
    lines = ["| compiler | programs | variant | mean gain, % | of instrumentation's, % |", "|:--|:--|:--|--:|--:|"]
    compilers = sorted({one["compiler"] for one in results})
    for title, chosen in [*((name, [one for one in results if one["compiler"] == name]) for name in compilers), ("all", results)]:
        worth = [one for one in chosen if median(one, "instrumented PGO") >= WORTHWHILE]
        names = ", ".join(dict.fromkeys(one["program"] for one in worth))
        for variant in dict.fromkeys(name for one in worth for name in one["times"] if name != "-O2"):
            # Compared with the same programs only.
            both = [one for one in worth if variant in one["times"]]
            mine, instrumented = (statistics.fmean(median(one, name) for one in both) for name in (variant, "instrumented PGO"))
            lines.append(f"| {title} | {names if len(both) == len(worth) else len(both)} | {variant} | {mine:+.1f} | {100 * mine / instrumented:.0f} |")
    return "\n".join(lines) + "\n"


def left_out(results):
    # What a tool said, without the folders of this machine.
    short = lambda why: re.sub(r"/\S+/", "", " ".join(why.split()))
    return [f"- {one['program']}, {one['compiler']}: {name} left out: {short(why)}" for one in results for name, why in one["left_out"].items()]


def gain(one, name):
    """In percent, by round."""
    return [100 * (base / mine - 1) for base, mine in zip(one["times"]["-O2"], one["times"][name])]


def median(one, name):
    return statistics.median(gain(one, name)) if name in one["times"] else 0.0


def spread(values):
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return f"{middle:+.1f} [{low:+.1f} {high:+.1f}]"
