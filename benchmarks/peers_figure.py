"""The results of ``benchmarks.peers`` as a figure: accuracy against time; without labels, time alone."""

from pathlib import Path

from benchmarks.peers_cells import NETWORKS, OURS, PEERS
from benchmarks.peers_page import cells_of, number, short
from matplotlib.transforms import Bbox

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
