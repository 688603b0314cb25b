"""The picture of the first page: one map of two organisations, by department and by role."""

from typing import Any

import numpy as np
from drawing import plt, save
from numpy.typing import NDArray
from paper.palette import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY

import spinegraph as sg
from spinegraph.analysis.layout import layout

DEPARTMENTS = (BLUE, ORANGE, GREEN, RED, PURPLE, SKY, "#8B6B1F", BLACK)
ROLES = {"leader": RED, "bridge": BLUE, "member": "#CFCFCF", "fringe": GREEN}


def result() -> None:
    """Draw docs/figures/result.png."""
    here, there = sg.made.planted(seed=0), sg.made.planted(seed=1)
    model = sg.SPINE(dim=64, seed=0, threads=1).fit(here.graph)
    unseen = model.transform(there.graph)
    places = layout(np.vstack([model.embeddings_.vectors, unseen.vectors]))
    known = np.arange(len(places)) < len(here.graph)
    community = np.concatenate([here.community, there.community])
    role = np.concatenate([here.role, there.role])

    figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.9), layout="constrained")
    colors = np.array(DEPARTMENTS)[community]
    _dots(axes[0], places, colors, known)
    axes[0].set_title("where people live: eight departments")
    chosen = np.array([ROLES[name] for name in here.role_names])[role]
    order = np.argsort(role != here.role_names.index("member"), kind="stable")  # the rarer on top
    _dots(axes[1], places[order], chosen[order], known[order])
    axes[1].set_title("what role they play: leader, bridge, member, fringe")
    for name, color in ROLES.items():
        axes[1].scatter([], [], s=26, color=color, label=name)
    axes[1].legend(loc="upper center", bbox_to_anchor=(0.5, 0.01), ncols=4, handletextpad=0.1)
    axes[0].scatter([], [], s=26, color=GREY, label="fitted")
    axes[0].scatter(
        [], [], s=26, facecolor="white", edgecolor=GREY, label="never seen, embedded by transform"
    )
    axes[0].legend(loc="upper center", bbox_to_anchor=(0.5, 0.01), ncols=2, handletextpad=0.1)
    save(figure, "result.png")


def _dots(axis: Any, places: NDArray[Any], colors: NDArray[Any], known: NDArray[np.bool_]) -> None:
    axis.scatter(*places[known].T, s=13, c=colors[known], linewidths=0)
    axis.scatter(*places[~known].T, s=13, facecolor="white", edgecolor=colors[~known], linewidths=1)
    axis.axis("off")
    axis.set_aspect("equal")
