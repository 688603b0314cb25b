"""Growth as a figure and tables, written into docs/scale.md."""

from pathlib import Path

FIGURES = Path(__file__).parents[1] / "docs" / "figures"
PAGE = FIGURES.parent / "scale.md"
_MARKS = "<!-- growth results -->", "<!-- end of growth results -->"


def block(found):
    """Return everything between the page's marks."""
    machine, rows = found["machine"], found["rows"]
    lines = [
        f"{found['threads']} threads on {machine['cores']} cores ({machine['machine']}), Python "
        f"{machine['python']}, load {machine['load_average_at_start']} at the start; seconds and MB.",
        "",
        "| nodes | edges | total | fit | embed | peak memory | store | writing it "
        "| profiles a core-second | nodes embedded a core-second |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {row['nodes']:,} | {row['edges']:,} | {row['seconds']:,.1f} | {row['fit_seconds']:,.1f} "
        f"| {row['embed_seconds']:,.1f} | {row['peak_mb']:,.0f} | {row['store_mb']:,.0f} "
        f"| {row['write_seconds']:,.1f} | {row['profiles_per_core_second']:,.0f} "
        f"| {row['embedded_per_core_second']:,.0f} |"
        for row in rows
    ]
    if found["exponent"] is not None:
        later = found["exponent_from_100k"]
        more = f", from 100,000 nodes on {later:.2f}" if later is not None else ""
        lines += ["", f"Seconds grow like nodes to the power of {found['exponent']:.2f}{more}.", ""]
    lines += ["", *_stages(rows[-1]), ""]
    if found["limited"]:
        one = found["limited"]
        lines += [
            f"Beyond memory: a store of {one['store_mb']:,.0f} MB ({one['nodes']:,} nodes, {one['edges']:,} "
            f"edges) embedded within a limit of {one['limit_mb']:,.0f} MB in {one['seconds']:,.1f} s, "
            f"{one['embedded_per_core_second']:,.0f} nodes a core-second.",
            "",
        ]
    return "\n".join([*lines, "![Seconds and memory over nodes](figures/growth.svg)"])


def _stages(row):
    total = row["seconds"]
    shares = sorted(row["stages"].items(), key=lambda item: -item[1])
    listed = ", ".join(
        f"{stage} {seconds / total:.0%}" for stage, seconds in shares if seconds > 0.005 * total
    )
    return [f"Stages at {row['nodes']:,} nodes: {listed}."]


def draw(found):
    """Draw seconds and memory over nodes, both logarithmic, into docs/figures/growth.png and .svg."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.rcParams.update({"font.size": 9, "svg.hashsalt": "growth", "svg.fonttype": "none"})
    nodes = [row["nodes"] for row in found["rows"]]
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(8.4, 3.4), layout="constrained")
    for key, label, style in (
        ("seconds", "total", {"color": "#000000", "marker": "o", "linewidth": 2}),
        ("fit_seconds", "fit", {"color": "#0072B2", "marker": "s", "linestyle": "--"}),
        ("embed_seconds", "embed into shards", {"color": "#D55E00", "marker": "^", "linestyle": "-."}),
    ):
        left.plot(nodes, [row[key] for row in found["rows"]], label=label, **style)
    last = found["rows"][-1]
    line = [last["seconds"] * n / last["nodes"] for n in nodes]
    left.plot(nodes, line, color="#999999", linestyle=":", label="in proportion to nodes")
    left.set_ylabel("seconds")
    peak, store = ([row[key] for row in found["rows"]] for key in ("peak_mb", "store_mb"))
    right.plot(nodes, peak, color="#000000", marker="o", linewidth=2, label="peak memory")
    right.plot(nodes, store, color="#009E73", marker="v", linestyle="--", label="files of the store")
    right.axhline(6000, color="#999999", linestyle=":", label="6 GB")
    right.set_ylabel("MB")
    for panel in (left, right):
        panel.set(xscale="log", yscale="log", xlabel="nodes")
        panel.grid(alpha=0.25, which="major")
        panel.legend(frameon=False, fontsize=8)
        for side in ("top", "right"):
            panel.spines[side].set_visible(False)
    FIGURES.mkdir(exist_ok=True)
    figure.savefig(FIGURES / "growth.png", dpi=160)
    figure.savefig(FIGURES / "growth.svg", metadata={"Date": None})
    pyplot.close(figure)


def write_page(found):
    """Write the figure, and the tables between the page's marks."""
    draw(found)
    text = PAGE.read_text()
    before, rest = text.split(_MARKS[0], 1)
    after = rest.split(_MARKS[1], 1)[1]
    PAGE.write_text(f"{before}{_MARKS[0]}\n{block(found)}\n{_MARKS[1]}{after}")
