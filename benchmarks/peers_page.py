"""The results of ``benchmarks.peers`` as docs/peers.md: tables, sentences, and a figure."""

from pathlib import Path
from statistics import mean, median

from benchmarks.peers import NETWORKS, OURS, PEERS
from matplotlib.transforms import Bbox

PAGE = Path(__file__).parents[1] / "docs" / "peers.md"
_MARKS = "<!-- peers results -->", "<!-- end of peers results -->"
TITLES = {
    "cora": "Cora, 2,708 nodes, 5,278 edges, 1,433 features; public split",
    "amazon_photo": "amazon_photo, 7,650 nodes, 119,081 edges, 745 features; 20 nodes per class",
    "ego_twitter": "ego_twitter, 81,306 nodes, 1,342,296 edges, no features",
    "made_10k": "made, 10,000 nodes, 10 edges per node, 100 features",
    "made_100k": "made, 100,000 nodes, 10 edges per node, 100 features",
}
_ALIKE = 0.005  # accuracies closer than half a point are called level
FIGURES = Path(__file__).parents[1] / "docs" / "figures"
# Okabe and Ito's colours: apart for every kind of colour vision; markers say it again.
STYLES = {
    "spinegraph": ("#0072B2", "o"),
    "spinegraph, graph alone": ("#56B4E9", "o"),
    "GraphSAGE (PyG)": ("#D55E00", "s"),
    "pycleora, features": ("#E69F00", "^"),
    "pycleora": ("#E69F00", "v"),
    "ProNE (nodevectors)": ("#009E73", "D"),
    "spectral (scikit-network)": ("#CC79A7", "P"),
    "GSVD (scikit-network)": ("#CC79A7", "X"),
    "fastnode2vec": ("#000000", "<"),
    "PecanPy": ("#000000", ">"),
}
_AROUND = (
    ((9, 0), "left", "center"),
    ((-9, 0), "right", "center"),
    ((0, 8), "center", "bottom"),
    ((0, -8), "center", "top"),
    ((8, 10), "left", "bottom"),
    ((8, -10), "left", "top"),
    ((-8, -10), "right", "top"),
    ((8, -22), "left", "top"),
)
SHORT = {"cora": "Cora", "made_10k": "made, 10,000 nodes", "made_100k": "made, 100,000 nodes"}


def cells_of(found):
    """Return {(peer, network): one row}, several seeds made into one: median seconds, mean accuracy."""
    gathered = {}
    for row in found["rows"]:
        gathered.setdefault((row["peer"], row["network"]), []).append(row)
    cells = {}
    for key, rows in gathered.items():
        done = [row for row in rows if row["status"] == "ok"]
        if len(done) < len(rows):  # one seed that did not come through decides
            cells[key] = next(row for row in rows if row["status"] != "ok")
            continue
        cells[key] = dict(rows[0]) | {
            "seconds": median(row["seconds"] for row in rows),
            "peak_mb": max(row["peak_mb"] for row in rows),
        }
        if "accuracy" in rows[0]:
            cells[key]["accuracy"] = mean(row["accuracy"] for row in rows)
    return cells


def seconds_of(cell):
    """Return a cell's time as text."""
    if cell["status"] == "ok":
        return number(cell["seconds"])
    return {"over": f"over {cell['limit']:,.0f}", "not run": "", "not installed": "not installed"}.get(
        cell["status"], "failed"
    )


def number(value):
    """Return seconds with as many digits as mean something."""
    return f"{value:.2f}" if value < 1 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def block(found):
    """Return everything between the page's marks."""
    lines = [*_machine(found), "", "## Results by network", "", *_standing(found), ""]
    for network in NETWORKS:
        lines += _table(found, network)
    return "\n".join([*lines, *_unseen(found), "", *_versions(found)])


def _machine(found):
    machine, settings = found["machine"], found["settings"]
    loads = [row["load_average"] for row in found["rows"]]
    is_busy = max(loads) > settings["threads"] + 1
    yield (
        f"{settings['threads']} threads on {machine['cores']} {machine['machine']} cores, "
        f"Python {machine['python']}, {settings['dim']} dimensions, "
        f"at most {settings['limit']:.0f} s per fit. "
        f"Load average at the start of a row: {min(loads):.1f} to {max(loads):.1f}"
        f"{'; the machine was busy, so times are indicative' * is_busy}."
    )


def _standing(found):
    """Say for each network which peers are faster, more accurate or need less memory."""
    cells = cells_of(found)
    for network in NETWORKS:
        ours = cells.get((OURS, network), {"status": "not run"})
        others = {peer.name: cells.get((peer.name, network)) for peer in PEERS if OURS not in peer.name}
        if ours["status"] == "ok":
            own = f"{number(ours['seconds'])} s{_accuracy(ours, ', accuracy ')}, {ours['peak_mb']:,.0f} MB"
            yield from (f"**{network}**: spinegraph {own}.", "", *_place(ours, others), "")


def _place(ours, others):
    """Yield one line for each way to be ahead or behind."""
    done = {short(name): cell for name, cell in others.items() if cell and cell["status"] == "ok"}
    yield _listed("Faster", done, lambda cell: cell["seconds"] < ours["seconds"])
    if "accuracy" in ours:
        best = ours["accuracy"]
        yield _listed("More accurate", done, lambda cell: cell["accuracy"] > best + _ALIKE)
        yield _listed("Within half a point", done, lambda cell: abs(cell["accuracy"] - best) <= _ALIKE)
    times = {name: cell["seconds"] / ours["seconds"] for name, cell in done.items()}
    longer = [f"{name} {times[name]:.1f} times" for name in times if times[name] >= 1]
    for name, cell in others.items():
        if cell and cell["status"] == "over":
            longer.append(f"{short(name)} over {cell['limit'] / ours['seconds']:.0f} times")
    yield f"- Same time or longer: {'; '.join(longer) or 'none'}."
    less = [name for name, cell in done.items() if cell["peak_mb"] < ours["peak_mb"]]
    yield f"- Less memory: {'; '.join(less) or 'none'}."


def short(name):
    """Return a peer's name without its package."""
    return name.partition(" (")[0]


def _listed(title, cells, is_so):
    names = [
        f"{name} ({number(cell['seconds'])} s{_accuracy(cell, ', ')})"
        for name, cell in cells.items()
        if is_so(cell)
    ]
    return f"- {title}: {'; '.join(names) or 'none'}."


def _accuracy(cell, before=""):
    return f"{before}{cell['accuracy']:.3f}" if "accuracy" in cell else ""


def _table(found, network):
    """Yield one network's table, the fastest first, and the reasons of rows without a figure."""
    cells = cells_of(found)
    rows = [(peer, cells[peer.name, network]) for peer in PEERS if (peer.name, network) in cells]
    rows = [(peer, cell) for peer, cell in rows if cell["status"] != "not run"]
    if not rows:
        return
    has_labels = any("accuracy" in cell for _, cell in rows)
    yield from (f"## {TITLES[network]}", "")
    yield f"| | sees | seconds | processor, s | peak MB |{' accuracy |' * has_labels} start, s | loading, s |"
    yield f"|---|---|--:|--:|--:|{'--:|' * has_labels}--:|--:|"
    rows.sort(key=lambda item: item[1]["seconds"] if item[1]["status"] == "ok" else item[1]["limit"])
    for peer, cell in rows:
        name = f"**{peer.name}**" if peer.name == OURS else peer.name
        sees = "graph" if peer.sees == "graph" or network == "ego_twitter" else "graph, features"
        start = "import_seconds" in cell
        values = [name, sees, seconds_of(cell), number(cell["processor"]) if cell.get("processor") else ""]
        values += [f"{cell['peak_mb']:,.0f}" if "peak_mb" in cell else ""]
        values += [_accuracy(cell)] * has_labels
        values += [number(cell["import_seconds"] + cell["warm_seconds"]) if start else ""]
        values += [number(cell["load_seconds"]) if start else ""]
        yield f"| {' | '.join(values)} |"
    yield ""
    for peer, cell in rows:
        if cell["status"] != "ok" and cell["reason"] != "stopped":
            yield from (f"{peer.name}: {cell['reason']}.", "")


def _unseen(found):
    yield from ("## New nodes", "")
    yield "| | a vector without a new fit | tried | result |"
    yield "|---|---|---|---|"
    for peer in PEERS:
        answer = next((row["unseen"] for row in found["rows"] if _answers(row, peer)), None)
        if answer is not None:
            came = answer["answer"].replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
            yield f"| {peer.name} | {answer['can']} | {answer['tried']} | {came} |"


def _answers(row, peer):
    return row["peer"] == peer.name and "unseen" in row


def _versions(found):
    yield from ("## Versions", "")
    for peer in PEERS:
        used = next((row["versions"] for row in found["rows"] if _answers(row, peer)), None)
        if used is not None and "," not in peer.name:
            yield f"- {peer.name}: {', '.join(f'{name} {version}' for name, version in used.items())}"


def write_page(found, page=PAGE):
    """Put the results into the page, between its two marks."""
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(_MARKS[0])
    _, _, after = rest.partition(_MARKS[1])
    page.write_text(f"{before}{_MARKS[0]}\n{block(found)}\n{_MARKS[1]}{after}", encoding="utf-8")


def draw(found, folder=FIGURES):
    """Write peers.png and peers.svg."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.rcParams.update({"font.size": 9, "svg.hashsalt": "peers", "svg.fonttype": "none"})
    cells, threads = cells_of(found), found["settings"]["threads"]
    present = [name for name in NETWORKS if any(key[1] == name for key in cells)]
    scored = [name for name in present if any("accuracy" in cells.get((p.name, name), {}) for p in PEERS)]
    timed = [name for name in present if name not in scored]
    figure = pyplot.figure(figsize=(9.6, 4.4 * bool(scored) + 3.3 * bool(timed)))
    parts = iter(figure.subfigures(bool(scored) + bool(timed), 1, squeeze=False)[:, 0])
    if scored:
        part = next(parts)
        panels = part.subplots(1, len(scored), squeeze=False)[0]
        part.subplots_adjust(left=0.07, right=0.985, bottom=0.14, top=0.83, wspace=0.14)
        for name, panel in zip(scored, panels, strict=True):
            _draw_accuracy(panel, name, cells)
        part.suptitle(
            f"Accuracy of one linear probe against time to fit, threads: {threads}. Up and left is better.\n"
            "Filled: gives an unseen node a vector. Hollow: starts over, or cannot.",
            fontsize=9.5,
            y=0.98,
        )
    if timed:
        part = next(parts)
        panels = part.subplots(1, len(timed), sharey=True, squeeze=False)[0]
        for name, panel in zip(timed, panels, strict=True):
            _draw_times(panel, name, cells)
        for label in panels[0].get_yticklabels():  # the other panels share them
            label.set_weight("bold" if label.get_text() == OURS else "normal")
        part.subplots_adjust(left=0.2, right=0.985, bottom=0.16, top=0.9, wspace=0.08)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "peers.png", dpi=110, facecolor="white")
    figure.savefig(folder / "peers.svg", metadata={"Date": None}, facecolor="white")
    pyplot.close(figure)


def _mark(peer, cell, size):
    color, marker = STYLES[peer]
    can = cell.get("unseen", {}).get("can") == "yes"
    return {
        "color": color,
        "marker": marker,
        "markersize": size + 2 * (peer == OURS),
        "markerfacecolor": color if can else "white",
        "markeredgewidth": 1.6,
        "linestyle": "",
        "zorder": 5 if peer == OURS else 3,
    }


def _draw_accuracy(panel, network, cells):
    done = {
        peer.name: cells[peer.name, network]
        for peer in PEERS
        if "accuracy" in cells.get((peer.name, network), {})
    }
    for name, cell in done.items():
        panel.plot(cell["seconds"], cell["accuracy"], **_mark(name, cell, 7))
    panel.set_xscale("log")
    low, high = panel.get_xlim()
    panel.set_xlim(low / 1.3, high * 3)  # room for names
    panel.margins(y=0.09)
    _name_points(panel, done)
    panel.set_title(SHORT.get(network, network), fontsize=10, loc="left")
    panel.set_xlabel("seconds to fit")
    panel.set_ylabel("accuracy")
    _tidy(panel)


def _name_points(panel, done):
    """Write each name right, left, above or below its point, wherever it covers nothing else."""
    renderer = panel.get_figure(root=True).canvas.get_renderer()
    places = [panel.transData.transform((cell["seconds"], cell["accuracy"])) for cell in done.values()]
    taken = [Bbox.from_extents(*(place - 8), *(place + 8)) for place in places]
    for name, cell in done.items():
        label = panel.annotate(
            short(name),
            (cell["seconds"], cell["accuracy"]),
            xytext=(0, 0),
            textcoords="offset points",
            fontsize=8.5,
            weight="bold" if name == OURS else "normal",
            color=STYLES[name][0],
        )
        for offset, across, along in _AROUND:
            label.set(position=offset, ha=across, va=along)
            box = label.get_window_extent(renderer)
            is_inside = panel.bbox.x0 < box.x0 and box.x1 < panel.bbox.x1
            if is_inside and not any(box.overlaps(other) for other in taken):
                break
        taken.append(box)


def _draw_times(panel, network, cells):
    names = [peer.name for peer in reversed(PEERS)]
    panel.set_xscale("log")
    for place, name in enumerate(names):
        cell = cells.get((name, network), {"status": "not run", "reason": ""})
        if cell["status"] == "ok":
            panel.plot(cell["seconds"], place, **_mark(name, cell, 6))
            panel.annotate(
                number(cell["seconds"]),
                (cell["seconds"], place),
                xytext=(8, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
            )
        elif cell["status"] == "over":
            said = f"over {cell['limit']:.0f} →"
            panel.annotate(said, (cell["limit"], place), ha="right", va="center", fontsize=8)
        else:
            said = cell["reason"] if cell["status"] == "not run" else cell["status"]
            place = {"xy": (0.5, place), "xycoords": ("axes fraction", "data")}
            panel.annotate(said, **place, ha="center", va="center", fontsize=8, color="#666666")
    low, high = panel.get_xlim()
    longest = max((cell["limit"] for key, cell in cells.items() if key[1] == network), default=high)
    panel.set_xlim(low, max(high, longest) * 2)
    panel.set_yticks(range(len(names)), [short(name) for name in names])
    panel.set_ylim(-0.6, len(names) - 0.4)
    panel.set_title(SHORT.get(network, network), fontsize=10, loc="left")
    panel.set_xlabel("seconds to fit")
    _tidy(panel)


def _tidy(panel):
    panel.xaxis.set_major_formatter("{x:g}")
    panel.xaxis.set_minor_formatter("")
    panel.grid(color="#dddddd", linewidth=0.6)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)
