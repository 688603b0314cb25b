"""The pictures of "How it works": near is not alike, and the parts, on Zachary's karate club."""

from typing import Any

import numpy as np
from drawing import CLUB, HEAT, INSTRUCTOR, PRESIDENT, PUPIL, SIDES, club, plt, save
from paper.figures import BLUE, GREEN, ORANGE, RED

import spinegraph as sg
from spinegraph.analysis.search import Search
from spinegraph.parts.content import smoothers

K, CONTINUATION = 20, sg.Config().near
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
    """Show one feature and what T makes of it, near and far around."""
    held = np.zeros((34, 1), dtype=np.float32)
    held[[4, 5, 10, 16, 24, 25]] = 1
    near, far = (smoother.smooth(held)[:, 0] for smoother in smoothers(CLUB, sg.Config()))
    figure, axes = plt.subplots(1, 3, figsize=(10.4, 3.3), layout="constrained")
    panels = ((held[:, 0], "F: six have a word"), (near, "near: around each"), (far, "far: further around"))
    for axis, (values, title) in zip(axes, panels, strict=True):
        club(axis, HEAT(0.8 * values / values.max()), title)
    save(figure, "how_smoothing.svg")


def place_and_role() -> None:
    """Compare everybody with the instructor by place and by role."""
    vectors = sg.SPINE(seed=0, threads=1).fit(CLUB).embeddings_
    figure, axes = plt.subplots(1, 2, figsize=(9.6, 3.7), layout="constrained")
    named = {INSTRUCTOR: "instructor", PRESIDENT: "president"}
    for axis, part in zip(axes, ("place", "role"), strict=True):
        cosines = Search(vectors, by=part).cosines(INSTRUCTOR)
        club(axis, HEAT(0.8 * np.maximum(cosines, 0)), f"alike the instructor by {part}", labels=named)
    save(figure, "how_place_role.svg")


def parts() -> None:
    """Compare nine people with each other by every part, and by all together."""
    office = sg.made.planted(seed=0)
    vectors = sg.SPINE(seed=0, threads=1).fit(office.graph).embeddings_
    chosen, names = _nine(office)
    figure, axes = plt.subplots(1, 4, figsize=(10.4, 2.9), layout="constrained")
    for axis, part in zip(axes, ("content", "place", "role", "all"), strict=True):
        found = vectors.weighted(part).vectors[chosen]
        rows = found / np.linalg.norm(found, axis=1, keepdims=True)
        drawn = axis.imshow(rows @ rows.T, cmap="PuOr_r", vmin=-1, vmax=1)
        axis.set_title("all: their mean" if part == "all" else part)
        axis.set_xticks([])
        axis.set_yticks(range(len(chosen)), names if axis is axes[0] else [""] * len(chosen))
        axis.spines[:].set_visible(False)
        for line in (2.5, 5.5):
            axis.axhline(line, color="white", lw=2)
            axis.axvline(line, color="white", lw=2)
    figure.colorbar(drawn, ax=axes, shrink=0.85, label="cosine")
    save(figure, "how_parts.svg")


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


STAGES = (idea, smoothing, place_and_role, profiles, parts)
