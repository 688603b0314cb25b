"""The pictures of "How it works": the paper's idea and each stage, on Zachary's karate club."""

from typing import Any

import numpy as np
from drawing import CLUB, HEAT, INK, INSTRUCTOR, PALE, PRESIDENT, PUPIL, SIDES, club, places, plt, save
from numpy.typing import NDArray
from paper.palette import BLUE, GREEN, GREY, ORANGE, RED

import spinegraph as sg
from spinegraph.structure.similarity import candidates, similar_nodes, warping

K, CONTINUATION = 20, sg.Config().continuation
RATE = sg.Config().structural_rate
PROFILE = sg.rooted_pagerank(CLUB, k=K, continuation=CONTINUATION, tolerance=1e-6)
TITLES = {INSTRUCTOR: "instructor", PRESIDENT: "president", PUPIL: "pupil"}


def idea() -> None:
    """Near is not alike: the club by side, and by number of ties."""
    figure, axes = plt.subplots(1, 2, figsize=(9.6, 3.7), layout="constrained")
    named = {INSTRUCTOR: "instructor", PRESIDENT: "president"}
    club(axes[0], SIDES, "who is near whom: the two sides the club split into", labels=named)
    kinds = np.select([CLUB.degrees >= 9, CLUB.degrees >= 4], [RED, "#F2B48A"], "#EDEDED")
    club(axes[1], kinds, "who is alike: hubs, go-betweens, the rim", labels=named)
    save(figure, "how_idea.svg")


def profiles() -> None:
    """Rooted PageRank seen from the instructor and from the president, and the sorted values."""
    figure, axes = plt.subplots(1, 3, figsize=(10.4, 3.3), width_ratios=[1.25, 1.25, 1], layout="constrained")
    whole = sg.rooted_pagerank(CLUB, k=34, continuation=CONTINUATION, tolerance=1e-6)
    for axis, root in zip(axes, (INSTRUCTOR, PRESIDENT), strict=False):
        share = np.zeros(34)
        share[whole.nodes[root][whole.nodes[root] >= 0]] = whole.weights[root][whole.nodes[root] >= 0]
        club(axis, HEAT(np.minimum(6 * share, 0.9)), f"a walk around the {TITLES[root]}", rings=[root])
    for root, color, mark in ((INSTRUCTOR, BLUE, "o"), (PRESIDENT, ORANGE, "s"), (PUPIL, GREEN, "^")):
        axes[2].plot(
            np.arange(1, K + 1), PROFILE.weights[root], color=color, marker=mark, ms=4, label=TITLES[root]
        )
    axes[2].set_yscale("log")
    axes[2].set_title("its time, sorted: the profile")
    axes[2].set_xlabel("place, largest first")
    axes[2].set_ylabel("share of time")
    axes[2].legend()
    save(figure, "how_profile.svg")


def smoothing() -> None:
    """Show one feature before and after T: what few hold becomes what a surrounding holds."""
    held = np.zeros(34, dtype=np.float32)
    held[[4, 5, 10, 16, 24, 25]] = 1
    around = PROFILE.smooth(held[:, None])[:, 0]
    figure, axes = plt.subplots(1, 2, figsize=(9.6, 3.7), layout="constrained")
    club(axes[0], HEAT(0.8 * held), "F: six members have a word in their profile")
    club(axes[1], HEAT(0.8 * around / around.max()), "T F: how much of it is around each member")
    save(figure, "how_smoothing.svg")


def warped() -> None:
    """Match the instructor's profile to the president's and to a pupil's."""
    figure, axes = plt.subplots(1, 2, figsize=(9.6, 3.7), layout="constrained", sharey=True)
    for axis, other, color in zip(axes, (PRESIDENT, PUPIL), (ORANGE, GREEN), strict=True):
        _match(axis, INSTRUCTOR, other, color)
    axes[0].set_ylabel("logarithm of the share")
    save(figure, "how_warping.svg")


def _match(axis: Any, one: int, other: int, color: str) -> None:
    found = warping(PROFILE.weights[one], PROFILE.weights[other])
    upper, lower = (np.log10(PROFILE.weights[node] + 1e-3) for node in (one, other))
    lower = lower - 1.6  # apart on paper only
    for (i, j), cost in zip(found.path, found.costs, strict=True):
        axis.plot([i + 1, j + 1], [upper[i], lower[j]], color=RED if cost > 0.5 else PALE, lw=1)
    axis.plot(np.arange(1, K + 1), upper, color=BLUE, marker="o", ms=4, label=TITLES[one])
    axis.plot(np.arange(1, K + 1), lower, color=color, marker="s", ms=4, label=TITLES[other])
    axis.set_title(
        f"{TITLES[one]} and {TITLES[other]}: {len(found.path)} steps, distance {found.distance:.1f}"
    )
    axis.set_xlabel("place in the profile")
    axis.set_yticks([])
    axis.legend()


def pairs() -> None:
    """Draw whom the instructor is drawn to, and from whom pushed, in training."""
    similar = similar_nodes(PROFILE, candidates(CLUB.degrees, PROFILE.weights))
    twins = [int(node) for node in similar.nodes[INSTRUCTOR][np.argsort(-similar.weights[INSTRUCTOR])][:3]]
    near = [int(node) for node in CLUB.neighbors(INSTRUCTOR) if node not in twins]
    far = [14, 20, 26, 24]
    colors: NDArray[Any] = np.full(34, "#F4F4F4", dtype=object)
    for nodes, color in ((near, BLUE), (twins, ORANGE), (far, GREY), ([INSTRUCTOR], INK)):
        colors[nodes] = color
    figure, axis = plt.subplots(figsize=(9.6, 3.7), layout="constrained")
    club(axis, list(colors), sizes=120)
    start = places()[INSTRUCTOR]
    for nodes, color, style in ((twins, ORANGE, "-|>"), (far, GREY, "<|-")):
        for node in nodes:
            arrow = {"arrowstyle": style, "color": color, "lw": 1.6, "connectionstyle": "arc3,rad=0.25"}
            arrow |= {"shrinkA": 7, "shrinkB": 7, "mutation_scale": 13}
            axis.annotate("", start, places()[node], arrowprops=arrow, zorder=3)
    for color, words in (
        (INK, "the anchor, here the instructor"),
        (BLUE, f"met on a plain walk: pulled near (chance {1 - RATE:g})"),
        (ORANGE, f"structural twins: pulled near (chance {RATE:g})"),
        (GREY, "drawn at random: pushed away"),
    ):
        axis.scatter([], [], s=60, color=color, label=words)
    figure.legend(loc="outside right center")
    save(figure, "how_pairs.svg")


def channels() -> None:
    """Two halves of a vector: likeness by content, by structure, and by both, of nine people."""
    office = sg.made.planted(seed=0)
    model = sg.SPINE(dim=64, seed=0, threads=1).fit(office.graph)
    inputs, weights = model.generator_.inputs, model.generator_.weights
    structure = inputs.structural(office.graph) @ weights[inputs.num_smoothed :]
    both = model.embeddings_.vectors
    chosen, names = _nine(office)
    figure, axes = plt.subplots(1, 3, figsize=(10.4, 3.4), layout="constrained")
    parts = {"content and place": both - structure, "structure": structure, "the vector: both": both}
    for axis, (title, vectors) in zip(axes, parts.items(), strict=True):
        rows = vectors[chosen] / np.linalg.norm(vectors[chosen], axis=1, keepdims=True)
        drawn = axis.imshow(rows @ rows.T, cmap="PuOr_r", vmin=-1, vmax=1)
        axis.set_title(title)
        axis.set_xticks([])
        axis.set_yticks(range(len(chosen)), names if axis is axes[0] else [""] * len(chosen))
        axis.spines[:].set_visible(False)
        for line in (2.5, 5.5):
            axis.axhline(line, color="white", lw=2)
            axis.axvline(line, color="white", lw=2)
    figure.colorbar(drawn, ax=axes, shrink=0.85, label="cosine")
    save(figure, "how_channels.svg")


def _nine(office: Any) -> tuple[list[int], list[str]]:
    """Choose a leader, a member and somebody of the fringe in each of three departments."""
    chosen, names = [], []
    for department in range(3):
        for role in ("leader", "member", "fringe"):
            number = office.role_names.index(role)
            mine = np.flatnonzero((office.community == department) & (office.role == number))
            degrees = office.graph.degrees[mine]
            typical = mine[np.argsort(np.abs(degrees - np.median(degrees)), kind="stable")[0]]
            chosen.append(int(typical))
            names.append(f"{role}, {office.community_names[department]}")
    return chosen, names


STAGES = (idea, profiles, smoothing, warped, pairs, channels)
