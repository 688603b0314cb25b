"""Roles: measures that slow oracles agree with, whatever the order of nodes and the threads."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.metrics import adjusted_rand_score

import strategies
from command import real
from spinegraph import SPINE, Embeddings, Graph, made
from spinegraph.analysis.roles import (
    Mixture,
    Roles,
    choose_mixture,
    completed_likelihood,
    coordinates,
    distinct,
    find_communities,
    gather,
    join,
    link_shares,
    neighbors_of,
    node_measures,
)
from spinegraph.errors import ModelFormatError, ParameterError


def fitted(graph, **settings):
    return SPINE(**{"dim": 32, "threads": 1, **settings}).fit(graph).generator_


def content(generator, graph):
    return generator.embed(graph)[:, generator.parts["content"]]


@pytest.fixture(scope="module")
def office():
    """An easy organisation, an unseen one of the same kind, and a generator fitted on the first."""
    here, there = (made.planted(feature_noise=0.3, role_strength=1.0, seed=seed) for seed in (40, 41))
    return here, there, fitted(here.graph)


@pytest.fixture(scope="module")
def roles(office):
    here, _, generator = office
    return Roles.find(here.graph, generator)


@pytest.fixture(scope="module")
def club():
    return fitted(made.karate(), dim=8)


def test_planted_roles_are_found_and_known_again_in_an_unseen_network(office, roles):
    here, there, generator = office
    assert adjusted_rand_score(here.role, roles.assign(here.graph, generator).roles) > 0.8
    assert adjusted_rand_score(there.role, roles.assign(there.graph, generator).roles) > 0.75
    assert roles.titles == ["hub", "bridge", "member", "periphery"]
    assert "spans 2." in roles.descriptions[1]


def test_titles_fit_the_planted_roles(office, roles):
    here, _, generator = office
    found = roles.assign(here.graph, generator).roles
    commonest = [roles.titles[np.bincount(found[here.role == role]).argmax()] for role in range(4)]
    assert commonest == ["hub", "bridge", "member", "periphery"]


@pytest.mark.parametrize("bridge", [3, 5])
def test_a_barbells_three_kinds_of_place_are_its_roles(bridge):
    graph = made.barbell(10, bridge)
    generator = fitted(graph, dim=8)
    found = Roles.find(graph, generator)
    assigned = found.assign(graph, generator).roles
    gates = [9, 10 + bridge]
    path = list(range(10, 10 + bridge))
    assert len(found) == 3
    assert set(assigned[gates]) == {0}
    assert set(np.delete(assigned, [*gates, *path])) == {1}
    assert set(assigned[path]) == {2}


def test_nodes_that_all_stand_alike_have_one_role(club):
    ring = Graph.from_edges([(i, (i + 1) % 30) for i in range(30)])
    assert Roles.find(ring, club).titles == ["member"]
    lonely = Graph.from_edges(np.zeros((0, 2), dtype=int), num_nodes=3)
    found = Roles.find(lonely, club)
    assert (found.titles, found.descriptions) == (["isolated"], ["no neighbours at all"])
    assert Roles.find(Graph.from_edges([], num_nodes=1), club).assign(lonely, club).roles.tolist() == [0] * 3


def power_law(n, exponent, degree, seed=0):
    """A network with no other structure than degrees that follow a power law."""
    rng = np.random.default_rng(seed)
    wanted = np.minimum((1 - rng.random(n)) ** (-1 / (exponent - 1)), np.sqrt(n))
    ends = rng.choice(n, (round(n * degree / 2), 2), p=wanted / wanted.sum())
    return Graph.from_edges(ends[ends[:, 0] != ends[:, 1]], num_nodes=n)


@pytest.mark.parametrize(("exponent", "degree"), [(2.1, 4), (3, 4), (2.5, 20)])
def test_widely_spread_degrees_are_several_roles_here_and_elsewhere(club, exponent, degree):
    here, there = (power_law(1500, exponent, degree, seed) for seed in (0, 1))
    found = Roles.find(here, club)
    assert len(found) > 1
    neighbors = [typical.neighbors for typical in found.typical]
    assert max(neighbors) >= 4 * max(min(neighbors), 1)
    shares = [found.assign(graph, club).shares() for graph in (here, there)]
    np.testing.assert_allclose(*shares, atol=0.1)


@pytest.mark.data
@pytest.mark.parametrize("name", ["ego_twitter", "tolokers"])
def test_a_real_network_without_features_has_several_roles(club, name):
    with np.load(real(f"{name}.npz")) as arrays:
        graph = Graph.from_edges(arrays["edges"])
    assert len(Roles.find(graph, club)) > 1


@given(strategies.graphs(), st.integers(0, 3))
def test_memberships_sum_to_one_and_the_largest_is_the_role(club, graph, seed):
    found = Roles.find(graph, club, seed=seed)
    assigned = found.assign(graph, club)
    assert assigned.memberships.shape == (len(graph), len(found))
    np.testing.assert_allclose(assigned.memberships.sum(axis=1), 1)
    assert np.array_equal(assigned.roles, assigned.memberships.argmax(axis=1))
    assert len(set(found.titles)) == len(found) or found.titles.count("isolated") > 1
    assert all(0 <= typical.neighbors_low <= typical.neighbors_high for typical in found.typical)


@given(strategies.graphs_and_orders())
def test_another_order_of_nodes_is_another_order_of_roles(club, case):
    graph, order = case
    other = strategies.permuted(graph, order)
    found, again = Roles.find(graph, club), Roles.find(other, club)
    assert found.descriptions == again.descriptions
    np.testing.assert_allclose(
        again.assign(other, club).memberships, found.assign(graph, club).memberships[order], atol=1e-6
    )


def test_another_order_of_nodes_keeps_roles_found_by_content(office, roles):
    here, _, generator = office
    order = np.random.default_rng(0).permutation(len(here.graph))
    other = strategies.permuted(here.graph, order)
    again = Roles.find(other, generator)
    assert again.titles == roles.titles
    np.testing.assert_allclose(
        again.assign(other, generator).memberships,
        roles.assign(here.graph, generator).memberships[order],
        atol=1e-3,
    )


def test_threads_change_nothing(office, roles):
    here, _, _ = office
    again = Roles.find(here.graph, fitted(here.graph, threads=2))
    assert json.dumps(again.to_json()) == json.dumps(roles.to_json())


def test_numbers_of_another_network_are_its_own():
    here, there = power_law(300, 2.5, 12), power_law(1000, 2.5, 5)
    model = SPINE(dim=16, threads=1).fit(here)
    found = model.roles(graph=there)
    assert found.typical[-1].neighbors == np.sort(there.degrees)[(len(there) - 1) // 2]
    assert found.table()[2][-1][4].startswith(f"{found.typical[-1].neighbors} (")
    assert "descriptions of the training network" in found.table()[3]
    home = model.roles()
    assert home.typical[:-1] == home.roles.typical
    assert home.typical[-1].neighbors != found.typical[-1].neighbors
    listed = [role["typical"]["neighbors"] for role in found.to_json()["roles"]]
    assert listed == [typical.neighbors for typical in found.typical[:-1]]


def test_a_role_that_no_node_has_has_no_numbers():
    model = SPINE(dim=8, threads=1).fit(made.barbell(10, bridge=5))
    found = model.roles(graph=made.barbell(10, bridge=0))
    rows = {row[0]: row[4:] for row in found.table()[2]}
    assert found.counts[found.roles.titles.index("chain")] == 0
    assert set(rows["chain"]) == {"-"}


@pytest.mark.parametrize("options", [{}, {"directed": True}, {"weights": [1.0, 2.0, 3.0]}])
def test_what_roles_ignore_is_said(options):
    found = SPINE(dim=8).fit(Graph.from_edges([(0, 1), (1, 2), (2, 3)], **options)).roles()
    assert ("whatever the directions and weights" in found.table()[3]) == bool(options)


def test_removed_nodes_play_no_role(office, roles):
    _, there, generator = office
    gone = there.graph.names[:3].tolist()
    overlay = there.graph.overlay([], []).remove(gone)
    found, whole = roles.assign(overlay, generator), roles.assign(overlay.materialize(), generator)
    assert not set(found.names.tolist()) & set(gone)
    assert found.names.tolist() == whole.names.tolist()
    np.testing.assert_allclose(found.memberships, whole.memberships, atol=1e-5)


def test_vectors_in_another_order_are_refused(office, roles):
    here, _, generator = office
    names, vectors = here.graph.names[::-1], generator.embed(here.graph)[::-1]
    for use in (Roles.find, lambda *given: roles.assign(*given[:2], embeddings=given[2])):
        with pytest.raises(ParameterError, match="must have all nodes in order"):
            use(here.graph, generator, Embeddings(names, vectors))


def test_some_nodes_and_an_overlay_have_the_roles_they_have_in_the_whole(office, roles):
    _, there, generator = office
    whole = roles.assign(there.graph, generator)
    some = there.graph.names[[5, 0, 17]]
    assigned = roles.assign(there.graph, generator, nodes=some)
    assert assigned.names.tolist() == some.tolist()
    np.testing.assert_allclose(assigned.memberships, whole.memberships[[5, 0, 17]], atol=1e-6)
    features = there.graph.feature_rows(np.array([3]))
    overlay = there.graph.overlay(["new"], [("new", there.graph.names[0]), ("new", some[0])], features)
    near = ["new", there.graph.names[0], there.graph.names[100]]
    np.testing.assert_allclose(
        roles.assign(overlay, generator, nodes=near).memberships,
        roles.assign(overlay.materialize(), generator, nodes=near).memberships,
        atol=1e-6,
    )


def test_roles_survive_json(office, roles):
    _, there, generator = office
    again = Roles.from_json(json.loads(json.dumps(roles.to_json())))
    assert again.to_json() == roles.to_json()
    np.testing.assert_array_equal(
        again.assign(there.graph, generator).memberships, roles.assign(there.graph, generator).memberships
    )


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("mixture", {"shares": "much", "variances": [[1.0]]}, "could not convert"),
        ("mixture", {"shares": [1.0], "means": [[0.0]], "variances": [[1.0]]}, "titles"),
        ("scale", [float("nan")] * 4, "not from"),
        ("communities", {"centers": [[1.0, float("nan")]], "member_of": [0]}, "not from"),
        ("communities", {"centers": [[1.0, 0.0]]}, "member_of"),
        ("typical", [{"share": 1}], "missing"),
        ("least_typical", None, "TypeError"),
        ("scores", {"many": 1.0}, "many"),
    ],
)
def test_roles_of_a_broken_file_are_refused(roles, key, value, words):
    with pytest.raises(ModelFormatError, match=words):
        Roles.from_json({**roles.to_json(), key: value})


@pytest.mark.parametrize("count", [0, 13, 2.5, True, "three"])
def test_a_number_of_roles_out_of_range_is_refused(club, count):
    with pytest.raises(ParameterError, match="from 1 to 12"):
        Roles.find(made.karate(), club, count=count)


def test_the_number_of_roles_may_be_given(club):
    found = Roles.find(made.karate(), club, count=3)
    assert (len(found), found.scores) == (3, {})
    with pytest.raises(ParameterError, match="at most 1, the distinct positions"):
        Roles.find(Graph.from_edges([(0, 1)]), club, count=2)


def test_vectors_of_another_model_or_network_are_refused(office, roles):
    here, there, generator = office
    wrong = Embeddings(there.graph.names, np.zeros((len(there.graph), 8), np.float32))
    with pytest.raises(ParameterError, match="in 32 dimensions"):
        Roles.find(there.graph, generator, wrong)
    with pytest.raises(ParameterError, match="find them again"):
        roles.assign(there.graph, fitted(here.graph, dim=16))


def naive_numbers(graph, member_of):
    """The same numbers one node and one pair at a time."""
    rows = []
    linked = {(a, b) for a in graph.names.tolist() for b in graph.neighbors(a).tolist()}
    for name in graph.names.tolist():
        near = graph.neighbors(name).tolist()
        pairs = [(a, b) for place, a in enumerate(near) for b in near[:place]]
        tied = sum(pair in linked for pair in pairs) / len(pairs) if pairs else 0.0
        around = np.mean([np.log1p(len(graph.neighbors(other))) for other in near]) if near else 0.0
        shares = [sum(member_of[other] == one for other in near) for one in set(member_of.values())]
        total = sum(shares)
        span = total**2 / sum(share**2 for share in shares) if total else 0.0
        shares[int(np.argmax(shares))] += 1
        steady = (total + 1) ** 2 / sum(share**2 for share in shares)
        rows.append((np.log1p(len(near)), tied, around, span, steady))
    return np.array(rows)


def test_the_numbers_of_a_node_agree_with_counting_by_hand(office, roles):
    here, _, generator = office
    vectors = content(generator, here.graph)
    communities = roles.communities.nearest(gather(vectors, neighbors_of(here.graph), vectors))
    member_of = dict(zip(here.graph.names.tolist(), communities.tolist(), strict=True))
    expected = naive_numbers(here.graph, member_of)
    found = node_measures(here.graph, generator, roles.communities)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    usual = expected[expected[:, 0] > np.log(2.5), 1].mean()
    assert roles.usual == pytest.approx(usual, rel=1e-5)
    degree = np.expm1(expected[0, 0])
    pairs = degree * (degree - 1) / 2
    drawn = (expected[0, 1] * pairs + 6 * usual) / (pairs + 6)
    prominence = expected[0, 0] - expected[0, 2]
    place = [expected[0, 0], drawn, prominence, expected[0, 4]]
    np.testing.assert_allclose(coordinates(found, usual)[0], place, rtol=1e-5)


@given(strategies.graphs())
def test_neighbours_are_those_of_the_graph(graph):
    expected = strategies.dense_adjacency(graph) > 0
    assert np.array_equal(neighbors_of(graph).toarray() > 0, expected)
    some = np.arange(len(graph))[::-2]
    assert np.array_equal(neighbors_of(graph, some).toarray() > 0, expected[some])


def test_communities_are_the_planted_departments(office):
    here, _, generator = office
    vectors = content(generator, here.graph)
    ties = neighbors_of(here.graph)
    found = find_communities(ties, vectors)
    assert len(found) == 8
    assert adjusted_rand_score(here.community, found.nearest(gather(vectors, ties, vectors))) > 0.9


def modularity(shares):
    """Share of ties inside communities beyond what chance would put there."""
    return np.trace(shares) - np.square(shares.sum(axis=1)).sum()


def test_modularity_agrees_with_networkx(office):
    networkx = pytest.importorskip("networkx")
    here, _, _ = office
    parts = [set(here.graph.names[here.community == one]) for one in range(8)]
    expected = networkx.community.modularity(here.graph.to_networkx(), parts)
    assert modularity(link_shares(neighbors_of(here.graph), here.community, 8)) == pytest.approx(expected)


@given(strategies.graphs())
def test_joining_communities_stops_where_no_two_gain_modularity(graph):
    shares = link_shares(neighbors_of(graph), np.arange(len(graph)), len(graph))
    member_of = join(shares)
    count = member_of.max() + 1
    whole = modularity(link_shares(neighbors_of(graph), member_of, count))
    assert whole >= modularity(shares) - 1e-12
    for one in range(count):
        for other in range(one):
            joined = np.where(member_of == one, other, member_of)
            assert modularity(link_shares(neighbors_of(graph), joined, count)) <= whole + 1e-9


def test_memberships_and_densities_agree_with_scipys_normal():
    rng = np.random.default_rng(0)
    mixture = Mixture(np.array([0.2, 0.3, 0.5]), rng.normal(size=(3, 2)), rng.uniform(0.2, 2, (3, 2)))
    rows = rng.normal(size=(50, 2))
    density = norm.pdf(rows[:, None], mixture.means, np.sqrt(mixture.variances)).prod(axis=2) * mixture.shares
    np.testing.assert_allclose(mixture.memberships(rows), density / density.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(mixture.log_density(rows), np.log(density.sum(axis=1)))
    held = density / density.sum(axis=1, keepdims=True)
    entropy = -(held * np.log(held)).sum()
    expected = -2 * np.log(density.sum(axis=1)).sum() + 14 * np.log(50) + 2 * entropy
    assert completed_likelihood(mixture, rows, np.ones(50)) == pytest.approx(expected)


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_the_number_of_groups_is_found_where_they_lie_apart(groups):
    rng = np.random.default_rng(groups)
    rows = np.concatenate([rng.normal(6 * place, 1, (150, 2)) for place in range(groups)])
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    mixture, scores = choose_mixture(*distinct(rows))
    assert len(mixture.shares) == groups
    assert min(scores, key=scores.get) == groups


def test_a_few_isolated_nodes_have_a_role_of_their_own_and_change_no_others():
    graph = made.planted(seed=0).graph
    ends = np.stack([np.repeat(np.arange(len(graph)), np.diff(graph.indptr)), graph.indices], axis=1)
    alone = Graph.from_edges(ends, num_nodes=len(graph))
    more = Graph.from_edges(ends, num_nodes=len(graph) + 12)
    before, after = (SPINE(dim=32).fit(each).roles() for each in (alone, more))
    assert after.roles.titles[:-1] == before.roles.titles
    assert after.roles.titles[-1] == "isolated"
    assert after.counts[-1] == 12
    assert (after.assigned.roles[:-12] == before.assigned.roles).mean() > 0.99
    assert max(after.roles.scores) == max(before.roles.scores) + 1
    assert len(SPINE(dim=32).fit(more).roles(1).roles) == 1
