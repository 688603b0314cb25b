"""An explanation in words, for readers who know neither vectors nor PageRank."""

from collections.abc import Iterator, Sequence

from spinegraph.analysis.explain import Explanation, Rank
from spinegraph.analysis.explain_parts import CONTENT, NOTHING, PLACE, STRUCTURE, Column

_SHOWN = 4
_ALIKE = ((0.9, "nearly the same"), (0.7, "much alike"), (0.45, "alike in part"), (0.2, "a little alike"))
_MEANING = {
    CONTENT: "what describes the nodes around them",
    PLACE: "nodes that both have around them",
    STRUCTURE: "the shape of the links around them",
}
_COLUMNS = {
    "log_degree": "number of neighbours",
    "log_mean_weight": "strength of links",
    "log_smaller_neighbors": "neighbours with far fewer links",
    "log_h_index": "well-linked neighbours",
    "overlap_10": "circles shared with the least close neighbours",
    "overlap_25": "circles shared with less close neighbours",
    "overlap_50": "circles shared with neighbours",
    "spread": "how widely a walk spreads",
    "log_profile_3": "pull of the closest nodes",
    "log_profile_10": "pull of nodes further off",
}


def sentences(found: Explanation) -> list[str]:
    """Return the explanation in sentences: the verdict, its parts, content, place, role.

    Examples
    --------
    >>> from spinegraph import SPINE, made
    >>> from spinegraph.analysis.explain import explain
    >>> club = made.karate()
    >>> print(sentences(explain(club, SPINE(dim=8, steps=5).fit(club).generator_, 0, 33))[-2])
    They are 2 links apart, with 4 neighbours in common ...
    """
    return [
        sentence
        for sentence in (_verdict(found), _origin(found), *_content(found), _place(found), _role(found))
        if sentence
    ]


def column_title(name: str) -> str:
    """Return what an input column holds, in words; a feature's own name as it is.

    Examples
    --------
    >>> column_title("around: log_degree"), column_title("pricing")
    ('number of neighbours (around)', 'pricing')
    """
    around = name.removeprefix("around: ")
    title = _COLUMNS.get(around, around)
    return title if around == name else f"{title} (around)"


def percent(share: float) -> str:
    """Return a share in %.

    Examples
    --------
    >>> percent(0.034), percent(0.4), percent(0.0001)
    ('3 %', '40 %', 'less than 1 %')
    """
    return "less than 1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"


def difference(ratio: float) -> str:
    """Return how far two values differ, the larger over the smaller less 1 being given.

    Examples
    --------
    >>> difference(0.12), difference(2.4)
    ('by 12 %', 'by a factor of 3.4')
    """
    return f"by {percent(ratio)}" if ratio < 1 else f"by a factor of {1 + ratio:.1f}"


def short_difference(ratio: float) -> str:
    """Return the same as ``difference`` for a table.

    Examples
    --------
    >>> short_difference(0.12), short_difference(2.4), short_difference(0.001)
    ('12 %', 'x 3.4', '< 1 %')
    """
    return f"x {1 + ratio:.1f}" if ratio >= 1 else "< 1 %" if ratio < 0.005 else f"{100 * ratio:.0f} %"


def titled(name: str) -> str:
    """Return a node's name as a sentence has it: numbers are called nodes.

    Examples
    --------
    >>> titled("35"), titled("Ann Lee")
    ('node 35', 'Ann Lee')
    """
    return f"node {name}" if name.lstrip("-").replace(":", "").isdecimal() else name


def _verdict(found: Explanation) -> str:
    similarity = found.similarity
    if found.parts[0].name == NOTHING:
        which = "both vectors are" if similarity else "one of the vectors is"
        return _begun(f"{_both(found)} cannot be compared by what they hold: {which} zero.")
    how = next((word for least, word in _ALIKE if similarity >= least), "not alike")
    verdict = f"{_both(found)} are {how}: their similarity is {similarity:.2f}, 1 being the same"
    return _begun(f"{verdict} and 0 unrelated.{_nearer(found, found.rank)}")


def _nearer(found: Explanation, rank: Rank | None) -> str:
    if rank is None:
        return ""
    a, b, others = titled(found.a.name), titled(found.b.name), f"{rank.others:,}"
    if not rank.nearer:
        return f" Of the {others} other nodes none is more like {a}."
    count = f"{rank.nearer:,} {'is' if rank.nearer == 1 else 'are'}"
    yet = " Yet of" if found.similarity >= _ALIKE[1][0] and rank.share > 0.1 else " Of"
    if rank.share < 0.1:
        return f"{yet} the {others} other nodes only {count} more like {a}."
    return f"{yet} the {others} other nodes {count} more like {a} than {b} is."


def _origin(found: Explanation) -> str:
    parts = sorted((p for p in found.parts if p.name != NOTHING), key=lambda part: -part.alike)
    if not parts:
        return ""
    if found.similarity < _ALIKE[-1][0]:
        agreeing = [
            f"{part.name}, {percent(part.weight)} of their vectors, gives {part.alike:.2f}"
            for part in parts
            if part.weight >= 0.005
        ]
        return f"Hardly anything agrees: {'; '.join(agreeing)}."
    giving = [part for part in parts if part.alike >= 0.005]
    taking = [part for part in parts if part.alike <= -0.005]
    told = _listed([f"{part.alike:.2f} is {part.name} ({_MEANING[part.name]})" for part in giving])
    less = _listed([f"{part.name} ({_MEANING[part.name]}) takes {-part.alike:.2f} away" for part in taking])
    return f"Of the {found.similarity:.2f}, {told}{'; ' * bool(less)}{less}."


def _content(found: Explanation) -> Iterator[str]:
    shared = found.columns.shared(_SHOWN)
    if shared and found.similarity >= _ALIKE[-1][0]:
        yield f"What makes them alike most: {_titles(shared)}."
    apart = found.columns.apart(_SHOWN)
    if apart and found.similarity < _ALIKE[1][0]:
        yield _apart(found, apart)


def _apart(found: Explanation, columns: Sequence[Column]) -> str:
    told = []
    for place, name in enumerate((found.a.name, found.b.name)):
        more = [column for column in columns if column.values[place] > column.values[1 - place]]
        if more:
            told.append(f"{_titles(more)} (more at {titled(name)})")
    return f"What sets them apart most: {'; '.join(told)}." if told else ""


def _place(found: Explanation) -> str:
    apart, common = found.relation.links_apart, found.relation.common
    if apart is None:
        return "They are far from each other, more than 6 links or no way at all, and share no surroundings."
    where = "They are linked" if apart == 1 else f"They are {apart} links apart"
    if common:
        names = ", ".join(found.relation.common_names) + (
            ", ..." if common > len(found.relation.common_names) else ""
        )
        where += f", with {_count(common, 'neighbour')} in common ({names})"
    if found.overlap < 0.005:
        return f"{where}, and what lies around one hardly reaches the other."
    return f"{where}, and {percent(found.overlap)} of what lies around one lies around the other."


def _role(found: Explanation) -> str:
    a, b = found.a, found.b
    if a.degree == b.degree:
        ties = f"both have {_count(a.degree, 'neighbour')}"
    else:
        ties = f"{titled(a.name)} has {_count(a.degree, 'neighbour')}, {titled(b.name)} has {b.degree:,}"
    if min(a.degree, b.degree) > 1:
        ties += f"; {_linked(a.clustering, b.clustering)}"
    if max(a.degree, b.degree) > 0:
        ties += f"; within 3 links lie {a.hops[-1]:,} and {b.hops[-1]:,} nodes"
    profile = f"Their profiles differ {difference(found.step_difference)} a step"
    if found.warping.distance < 1e-4:
        profile = "Their profiles are the same"
    rank = found.role_rank
    if rank is not None:
        nearer = f"{percent(rank.share)} of the other nodes are" if rank.nearer else "no other node is"
        profile += f"; {nearer} closer to {titled(a.name)} in this respect"
    return f"They {_role_word(found)}: {ties}. {profile}."


def _linked(one: float, other: float) -> str:
    if percent(one) != percent(other):
        return f"{percent(one)} and {percent(other)} of the pairs of these are linked"
    if one in (0.0, 1.0):
        return "all of these are linked to each other" if one else "no two of these are linked"
    return f"{percent(one)} of the pairs of these are linked, here and there"


def _role_word(found: Explanation) -> str:
    """Judge by how far the profiles differ, and by how many are closer where that is known."""
    step, share = found.step_difference, 1.0 if found.role_rank is None else found.role_rank.share
    if step <= 0.05 or share <= 0.01:
        return "play nearly the same role"
    return "play similar roles" if step <= 0.15 or share <= 0.1 else "play different roles"


def _titles(columns: Sequence[Column]) -> str:
    titles = [column_title(column.name) for column in columns]
    return "; ".join(titles) if any("," in title for title in titles) else _listed(titles)


def _both(found: Explanation) -> str:
    return f"{titled(found.a.name)} and {titled(found.b.name)}"


def _begun(text: str) -> str:
    """Begin a sentence; a name stays as it is."""
    return f"N{text[1:]}" if text.startswith("node ") else text


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _listed(items: Sequence[str]) -> str:
    return " and ".join([", ".join(items[:-1]), items[-1]]) if len(items) > 1 else "".join(items)
