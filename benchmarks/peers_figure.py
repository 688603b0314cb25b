"""The results of ``benchmarks.peers`` as a figure: accuracy against time; without labels, time alone."""

from pathlib import Path

from benchmarks.peers_cells import NETWORKS, OURS, PEERS
from benchmarks.peers_page import cells_of, number

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
SHORT = {"cora": "Cora", "made_10k": "made, 10,000 nodes", "made_100k": "made, 100,000 nodes"}


def draw(found, folder=FIGURES):
    """Write peers.png and peers.svg."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.rcParams.update({"font.size": 9, "svg.hashsalt": "peers", "svg.fonttype": "none"})
    cells = cells_of(found)
    present = [name for name in NETWORKS if any(key[1] == name for key in cells)]
    scored = [name for name in present if any("accuracy" in cells.get((p.name, name), {}) for p in PEERS)]
    timed = [name for name in present if name not in scored]
    figure = pyplot.figure(figsize=(9.6, 4.4 * bool(scored) + 3.3 * bool(timed)))
    parts = iter(figure.subfigures(bool(scored) + bool(timed), 1, squeeze=False)[:, 0])
    if scored:
        part = next(parts)
        for name, panel in zip(scored, part.subplots(1, len(scored), squeeze=False)[0], strict=True):
            _draw_accuracy(panel, name, cells)
        part.subplots_adjust(left=0.07, right=0.985, bottom=0.14, top=0.83, wspace=0.14)
        part.suptitle(
            "Accuracy of one linear probe against time to fit, two threads; up and to the left is better.\n"
            "Filled: gives an unseen node a vector. Hollow: starts over, or cannot.",
            fontsize=9.5,
            y=0.98,
        )
    if timed:
        part = next(parts)
        panels = part.subplots(1, len(timed), sharey=True, squeeze=False)[0]
        for name, panel in zip(timed, panels, strict=True):
            _draw_times(panel, name, cells, found["settings"]["limit"])
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
    panel.set_xlim(low / 1.5, high * 6)  # room for names
    _name_points(panel, done)
    panel.set_title(SHORT.get(network, network), fontsize=10, loc="left")
    panel.set_xlabel("seconds to fit")
    panel.set_ylabel("accuracy")
    _tidy(panel)


def _name_points(panel, done):
    """Write each name right of its point, moved up or down where it would cover another."""
    bottom, top = panel.get_ylim()
    height = (top - bottom) / 20
    taken = []
    for name, cell in sorted(done.items(), key=lambda item: item[1]["accuracy"]):
        at = cell["accuracy"]
        while any(abs(at - other) < height and _meet(cell, seconds) for other, seconds in taken):
            at += height / 4
        taken.append((at, cell["seconds"]))
        weight = "bold" if name == OURS else "normal"
        text = name.split(" (")[0]
        panel.annotate(
            text,
            (cell["seconds"], at),
            xytext=(9, 0),
            textcoords="offset points",
            va="center",
            fontsize=8.5,
            weight=weight,
            color=STYLES[name][0],
        )


def _meet(cell, seconds):
    return max(cell["seconds"], seconds) / min(cell["seconds"], seconds) < 12


def _draw_times(panel, network, cells, limit):
    names = [peer.name for peer in reversed(PEERS)]
    panel.set_xscale("log")
    for place, name in enumerate(names):
        cell = cells.get((name, network), {"status": "not run"})
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
            panel.annotate(f"over {limit:.0f} →", (limit, place), ha="right", va="center", fontsize=8)
        else:
            panel.annotate("–", (0.5, place), xycoords=("axes fraction", "data"), ha="center", va="center")
    low, high = panel.get_xlim()
    panel.set_xlim(low, max(high, limit) * 2)
    panel.set_yticks(range(len(names)), [name.split(" (")[0] for name in names])
    for label, name in zip(panel.get_yticklabels(), names, strict=True):
        label.set_weight("bold" if name == OURS else "normal")
    panel.set_ylim(-0.6, len(names) - 0.4)
    panel.set_title(SHORT.get(network, network), fontsize=10, loc="left")
    panel.set_xlabel("seconds to fit")
    _tidy(panel)


def _tidy(panel):
    panel.grid(color="#dddddd", linewidth=0.6)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)
