"""The picture of the first page: two organisations on one map, by content and by role."""

import numpy as np
from drawing import plt, save
from paper.figures import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY

import spinegraph as sg
from spinegraph.analysis.layout import layout

DEPARTMENTS = (BLUE, ORANGE, GREEN, RED, PURPLE, SKY, "#8B6B1F", BLACK)
ROLES = {"leader": RED, "bridge": BLUE, "member": "#CFCFCF", "fringe": GREEN}


def result() -> None:
    """Draw docs/figures/result.png."""
    here, there = sg.made.planted(seed=0), sg.made.planted(seed=1)
    model = sg.SPINE(seed=0, threads=1).fit(here.graph)
    both = model.embeddings_, model.transform(there.graph)
    is_known = np.arange(len(here.graph) + len(there.graph)) < len(here.graph)
    community = np.array(DEPARTMENTS)[np.concatenate([here.community, there.community])]
    role = np.array([*ROLES.values()])[np.concatenate([here.role, there.role])]
    assert [*ROLES] == list(here.role_names)

    figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.9), layout="constrained")
    for axis, part, colors in ((axes[0], "content", community), (axes[1], "role", role)):
        places = layout(np.vstack([vectors.part(part).vectors for vectors in both]))
        axis.scatter(*places[is_known].T, s=13, c=colors[is_known], linewidths=0)
        axis.scatter(*places[~is_known].T, s=13, facecolor="white", edgecolor=colors[~is_known], linewidths=1)
        axis.axis("off")
        axis.set_aspect("equal", adjustable="datalim")
    axes[0].set_title("by content: eight departments")
    axes[1].set_title("by role: leader, bridge, member, fringe")
    axes[0].scatter([], [], s=26, color=GREY, label="fitted")
    axes[0].scatter([], [], s=26, facecolor="white", edgecolor=GREY, label="never seen")
    for name, color in ROLES.items():
        axes[1].scatter([], [], s=26, color=color, label=name)
    figure.legend(loc="outside lower center", ncols=6, handletextpad=0.1)
    save(figure, "result.png")
