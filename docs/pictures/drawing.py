"""What the pictures share: style, the karate club's places on paper, arrows."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from numpy.typing import NDArray
from paper.figures import BLUE, GREY, ORANGE, plotting

from spinegraph import made

FOLDER = Path(__file__).parents[1] / "figures"
INSTRUCTOR, PRESIDENT, PUPIL = 0, 33, 11
CLUB = made.karate()
# Which of the two clubs a member joined when Zachary's split.
STAYED = np.isin(np.arange(34), [0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 16, 17, 19, 21])
HEAT = LinearSegmentedColormap.from_list("heat", ["#ffffff", "#cfe5f2", BLUE, "#00273f"])
INK, PALE = "#222222", "#c8c8c8"
plt = plotting()
plt.rcParams.update({"font.size": 10, "axes.titlesize": 11, "svg.fonttype": "path", "text.color": INK})


@cache
def places() -> NDArray[np.float64]:
    """Return where the club's members are drawn (34, 2)."""
    import networkx as nx

    drawn = nx.kamada_kawai_layout(CLUB.to_networkx())
    found = np.array([drawn[node] for node in range(34)])
    across = found[PRESIDENT] - found[INSTRUCTOR]
    angle = -np.arctan2(across[1], across[0])  # instructor left, president right
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return found @ turn.T


def club(axis: Any, colors: Any, title: str = "", sizes: Any = 90, rings: Any = (), labels: Any = ()) -> None:
    """Draw the club; ``rings`` names the nodes that are ringed, ``labels`` {node: words beside it}."""
    at = places()
    for node in range(34):
        for other in CLUB.neighbors(node):
            if node < other:
                axis.plot(*at[[node, other]].T, color=PALE, lw=0.7, zorder=1)
    widths = [1.8 if node in rings else 0.6 for node in range(34)]
    edges = [INK if node in rings else GREY for node in range(34)]
    axis.scatter(*at.T, s=sizes, c=colors, edgecolor=edges, linewidths=widths, zorder=2)
    for node, words in dict(labels).items():
        axis.annotate(words, at[node], (0, 9), textcoords="offset points", ha="center", fontsize=9, zorder=4)
    axis.set_title(title)
    axis.set_aspect("equal")
    axis.axis("off")
    axis.margins(0.07)


def save(figure: Any, name: str) -> None:
    """Write a picture into docs/figures; the same picture is the same file."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / name
    about = {"Date": None} if path.suffix == ".svg" else {"Software": None}
    figure.savefig(path, metadata=about, facecolor="white")
    plt.close(figure)
    if path.suffix == ".svg":  # matplotlib ends lines of paths with blanks
        path.write_text("".join(f"{line.rstrip()}\n" for line in path.read_text().splitlines()))


SIDES = np.where(STAYED, BLUE, ORANGE)
