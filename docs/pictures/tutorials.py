"""The pictures of the tutorials: roles of an organisation, newcomers on its map."""

from typing import Any

import numpy as np
from drawing import INK, PALE, plt, save
from matplotlib.collections import LineCollection
from numpy.typing import NDArray
from paper.figures import BLUE, GREEN, RED
from result import DEPARTMENTS

import spinegraph as sg
from spinegraph.analysis.layout import layout
from spinegraph.analysis.roles import Roles

FOUND = {"hub": RED, "bridge": BLUE, "member": "#CFCFCF", "periphery": GREEN}


def roles() -> None:
    """Draw the organisation with the roles that were found, and those beside the planted ones."""
    office = sg.made.planted(seed=0)
    model = sg.SPINE(dim=64, seed=0, threads=1).fit(office.graph)
    roles = Roles.find(office.graph, model.generator_, model.embeddings_)
    told = roles.assign(office.graph, model.generator_)
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.6), width_ratios=[1.7, 1], layout="constrained")
    _network(axes[0], office.graph, np.array([FOUND[roles.titles[role]] for role in told.roles]))
    for title in roles.titles:
        axes[0].scatter([], [], s=30, color=FOUND[title], label=title)
    axes[0].legend(loc="lower left")
    axes[0].set_title("599 people and the roles that were found")
    _agreement(axes[1], told.roles, office.role, roles.titles, office.role_names)
    save(figure, "tutorial_roles.png")


def _network(axis: Any, graph: sg.Graph, colors: NDArray[Any]) -> None:
    import networkx as nx

    drawn = nx.spring_layout(graph.to_networkx(), seed=4, iterations=80, k=0.09)
    at = np.array([drawn[name] for name in graph.names])
    row = np.repeat(np.arange(len(graph)), graph.degrees)
    lines = at[np.column_stack([row, graph.indices])[row < graph.indices]]
    axis.add_collection(LineCollection(lines, colors=PALE, linewidths=0.3, zorder=1))
    axis.scatter(*at.T, s=6 + 3 * graph.degrees, c=colors, edgecolor="white", linewidths=0.4, zorder=2)
    # A few loose ends would make everybody else small.
    for low, high, limit in zip(
        *np.quantile(at, [0.01, 0.99], axis=0), (axis.set_xlim, axis.set_ylim), strict=True
    ):
        limit(low - 0.08, high + 0.08)
    axis.axis("off")


def _agreement(axis: Any, found: Any, planted: Any, titles: Any, names: Any) -> None:
    counts = np.zeros((len(titles), len(names)), dtype=int)
    np.add.at(counts, (found, planted), 1)
    axis.imshow(counts / counts.sum(axis=0), cmap="Blues", vmin=0, vmax=1.15)
    for (row, column), count in np.ndenumerate(counts):
        axis.text(column, row, str(count), ha="center", va="center", color="white" if count > 25 else INK)
    axis.set_xticks(range(len(names)), names)
    axis.set_yticks(range(len(titles)), titles)
    axis.set_xlabel("planted")
    axis.set_title("found, in people")
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)


def tomorrow() -> None:
    """Draw today's people by department, and sixty newcomers where they land."""
    office = sg.made.planted(seed=0)
    whole = office.graph
    newcomers = np.sort(np.random.default_rng(0).choice(len(whole), 60, replace=False))
    present = np.setdiff1d(np.arange(len(whole)), newcomers)
    model = sg.SPINE(dim=64, seed=0, threads=1).fit(whole.subgraph(whole.names[present]))
    arrived = model.transform(whole, nodes=whole.names[newcomers])
    places = layout(np.vstack([model.embeddings_.vectors, arrived.vectors]))
    colors = np.array(DEPARTMENTS)[office.community[np.concatenate([present, newcomers])]]
    old, new = slice(0, len(present)), slice(len(present), None)
    figure, axis = plt.subplots(figsize=(8.4, 4.6), layout="constrained")
    axis.scatter(*places[old].T, s=14, c=colors[old], alpha=0.35, linewidths=0)
    axis.scatter(*places[new].T, s=110, c=colors[new], marker="*", edgecolor=INK, linewidths=0.6)
    for place, department in enumerate(office.community_names):
        axis.scatter([], [], s=30, color=DEPARTMENTS[place], label=department)
    axis.scatter([], [], s=110, marker="*", color="white", edgecolor=INK, label="arrived after the fit")
    figure.legend(loc="outside right center")
    axis.axis("off")
    axis.set_aspect("equal")
    save(figure, "tutorial_tomorrow.png")
