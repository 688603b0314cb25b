"""The state behind the service: what is not computed anew stays near, and nothing depends on stops."""

import json
import os
import shutil
import time
import warnings
from contextlib import suppress
from dataclasses import replace
from itertools import groupby
from threading import Event

import numpy as np
import pytest
from scipy.sparse import csr_array

from running_service import small_graph
from spinegraph import SPINE, Graph, made
from spinegraph.analysis.search import Search
from spinegraph.apps.server import live as live_module
from spinegraph.apps.server import lookup as lookup_module
from spinegraph.apps.server import writer as writer_module
from spinegraph.apps.server.live import BLOCK_ROWS, Change, Live, RowBlocks
from spinegraph.apps.server.lookup import Lookup, Twins
from spinegraph.apps.server.store import Store, open_store, restore
from spinegraph.apps.server.writer import ClosedError, OutcomeUnknownError, Writer
from spinegraph.embeddings import Embeddings
from spinegraph.errors import GraphFormatError, ParameterError, UnknownNodeError
from spinegraph.graph.overlay import REMOVED
from spinegraph.structure import smoothing


@pytest.fixture(scope="module", params=["features", "plain", "weighted", "directed", "walks", "paper"])
def model(request):
    graph = small_graph(weighted=request.param == "weighted")
    if request.param == "directed":
        edges = [pair if sum(map(ord, pair[0])) % 3 else pair[::-1] for pair in graph.to_networkx().edges]
        graph = Graph.from_edges(edges, names=graph.names, features=graph.features, directed=True)
    graph = graph.with_features(None) if request.param == "plain" else graph
    if request.param == "paper":
        return SPINE.paper(dim=8, steps=5, k=10, rpr_method="push").fit(graph)
    return SPINE(dim=32, k=10, rpr_method="walks" if request.param == "walks" else "push").fit(graph)


# What concerns the writer and the store alone is the same whichever model's vectors they keep.
any_model = pytest.mark.parametrize("model", ["features"], indirect=True)


def changes(graph, count, seed=0):
    """Additions of nodes and edges and removals of both, drawn at random; each fits the graph before it."""
    rng = np.random.default_rng(seed)
    overlay = graph.overlay([], [])
    for number in range(count):
        names = overlay.names[overlay.remaining].tolist()
        kind = rng.choice(["node", "node", "edge", "gone", "cut"])
        some = [names[place] for place in rng.choice(len(names), 4, replace=False)]
        if kind == "gone":
            change = Change("remove", some[:1])
        elif kind == "cut" and len(overlay.neighbors(some[0])):
            row = overlay.rows_at(overlay.positions(some[:1]))
            (other,), is_out = overlay.names_at(row.indices[:1]), row.outward is None or row.outward[0] > 0
            change = Change("remove", [], [(some[0], other) if is_out else (other, some[0])])
        else:
            new = [f"new {number}"] if kind == "node" else []
            edges = [(new[0], one) for one in some[:3]] if new else [(some[0], some[1]), (some[2], some[3])]
            weights = None if graph.weights is None else rng.random(len(edges)).astype(float).tolist()
            features = [([int(rng.integers(12))], [1.0]) for _ in new] if graph.has_features else None
            change = Change("add", new, edges, weights, features)
        overlay = change.apply(overlay)
        yield Change.from_text(json.dumps(json.loads(change.to_text())))


def applied(live, change):
    live.stage(change)
    return live.update()


def settle(lookup):
    """Wait for an index that is being built, and add all that it lacks."""
    lookup._work.result()
    while lookup._index is not None and lookup._index.add_one():
        pass


def begun(model):
    live = Live(model.generator_, model.graph_)
    live.compute_all(model.embeddings_.vectors)
    return live


def whole(model, live):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.transform(live.snapshot.overlay)


def test_vectors_stay_near_a_transform_of_the_final_graph(model):
    live, refreshed = begun(model), 0
    for change in changes(model.graph_, 60):
        refreshed += len(applied(live, change).refreshed)
    expected = whole(model, live).vectors
    found = live.snapshot.vectors.take(live.snapshot.overlay.remaining)
    cosine = (found * expected).sum(axis=1) / np.linalg.norm(found, axis=1) / np.linalg.norm(expected, axis=1)
    if model.config_.rpr_method == "walks":  # a walk that meets a change goes on elsewhere: noise, not drift
        assert np.median(cosine) > 0.95
        return
    assert np.median(cosine) > 0.999
    assert cosine.min() > 0.97
    assert (live.drift.bounds()[live.snapshot.overlay.remaining] <= live.tolerance * (1 + 1e-9)).all()
    assert refreshed < 60 * len(live.snapshot.overlay) * 0.9  # a small world: most of it is near everything


def test_changes_settled_together_stay_as_near(model):
    live = begun(model)
    for _, alike in groupby(changes(model.graph_, 60, seed=6), key=lambda change: change.kind):
        for change in alike:
            live.stage(change)
        settled = live.update()
        assert settled.overlay is live.snapshot.overlay
    assert live.snapshot.version == 60
    remaining = live.snapshot.overlay.remaining
    found, expected = live.snapshot.vectors.take(remaining), whole(model, live).vectors
    cosine = (found * expected).sum(axis=1) / np.linalg.norm(found, axis=1) / np.linalg.norm(expected, axis=1)
    assert np.median(cosine) > (0.95 if model.config_.rpr_method == "walks" else 0.999)
    assert (live.drift.bounds()[remaining] <= live.tolerance * (1 + 1e-9)).all()
    assert not live.snapshot.vectors.matrix()[
        np.setdiff1d(np.arange(len(live.snapshot.overlay)), remaining)
    ].any()


def test_what_a_change_touches_is_computed_exactly(model):
    live = begun(model)
    for change in changes(model.graph_, 5, seed=3):
        after = applied(live, change)
    expected = live.embed(after.overlay, after.overlay.touched, after.known)
    np.testing.assert_array_equal(after.vectors.take(after.overlay.touched), expected)


def test_whoever_got_another_vector_is_said_to_be_computed_anew(model):
    live = begun(model)
    for change in changes(model.graph_, 20, seed=2):
        before, after = live.snapshot.vectors.matrix(), applied(live, change)
        moved = np.flatnonzero((after.vectors.matrix()[: len(before)] != before).any(axis=1))
        remaining = moved[after.overlay.patch.row_ids[moved] != REMOVED]
        assert np.isin(remaining, after.refreshed).all()
        assert np.isin(after.overlay.touched, after.refreshed).all()


def test_a_state_taken_over_goes_on_alike(model):
    listed = list(changes(model.graph_, 30, seed=1))
    one, other = begun(model), Live(model.generator_, model.graph_)
    for change in listed[:20]:
        applied(one, change)
    other.replay(listed[:20])
    other.load_state(one.state())
    for change in listed[20:]:
        first, second = applied(one, change), applied(other, change)
        assert first.refreshed.tolist() == second.refreshed.tolist()
    np.testing.assert_array_equal(one.snapshot.vectors.matrix(), other.snapshot.vectors.matrix())
    np.testing.assert_array_equal(one.drift.moved, other.drift.moved)


def test_folding_changes_into_the_base_changes_no_answer(model):
    listed = list(changes(model.graph_, 30, seed=2))
    one, other = begun(model), begun(model)
    for place, change in enumerate(listed):
        first, second = applied(one, change), applied(other, change)
        if place == 19:
            second = other.rebase(*other.compacted())
    names = first.overlay.names_at(first.overlay.remaining)
    assert names == second.overlay.names_at(second.overlay.remaining)
    a = first.vectors.take(first.overlay.remaining)
    b = second.vectors.take(second.overlay.remaining)
    np.testing.assert_allclose(a, b, atol=1e-6)


def test_draws_are_by_name_so_removals_shift_nothing():
    """Walks of a node far from what was removed stay the same, in an overlay and in the graph made of it."""
    path = Graph.from_edges([(f"p{i}", f"p{i + 1}") for i in range(200)])
    model = SPINE(dim=4, k=5, rpr_method="walks").fit(path)
    less = path.overlay([], []).remove(["p3", "p4"])
    before = model.generator_.profile(path, path.positions(["p150"]))
    for graph in (less, less.materialize()):
        after = model.generator_.profile(graph, graph.positions(["p150"]))
        np.testing.assert_array_equal(before.weights, after.weights)


@any_model
def test_inserts_staged_together_are_those_staged_one_by_one(model):
    one, other = begun(model), begun(model)
    features = None if model.graph_.features is None else [([1, 3], [1.0, 0.5])]
    weights = None if model.graph_.weights is None else [1.0, 2.0]

    def insert(name, *targets):
        return Change("add", [name], [(name, each) for each in targets], weights, features)

    some = [insert("x", "n0", "n1"), insert("y", "x", "n2"), insert("z", "n0", "y")]
    for change in some:
        one.stage(change)
    if all(change.is_plain for change in some):
        assert other.stage_together(some)
        after, expected = other.update(), one.update()
        assert (after.version, after.overlay.touched.tolist()) == (3, expected.overlay.touched.tolist())
        assert after.refreshed.tolist() == expected.refreshed.tolist()
        assert np.array_equal(after.vectors.matrix(), expected.vectors.matrix())
        # Nobody links to a name that joins later, or joins twice.
        assert not other.stage_together([insert("v", "w", "n0"), insert("w", "n0", "n1")])
        assert not other.stage_together([insert("v", "n1", "n0"), insert("v", "n0", "n1")])
        assert other.update().version == 3
    else:
        assert weights is not None


def test_a_refused_change_leaves_all_as_it_was(model):
    live = begun(model)
    before = live.snapshot
    with pytest.raises(GraphFormatError):
        applied(live, Change("remove", [], [("n0", "n45")]))
    assert live.snapshot is before
    assert (live.drift.moved == 0).all()


def test_a_store_gives_back_what_was_written(model, tmp_path):
    store = open_store(model, model.graph_, tmp_path / "store")
    live = restore(model, model.graph_, store)
    writer = Writer(live, store)
    writer._save_every = 5
    writer.start()
    listed = list(changes(model.graph_, 25, seed=4))
    for place, change in enumerate(listed):
        assert writer.submit(change).result(30).version == place + 1
        if place == 12:
            writer.submit(None).result(30)
    expected = writer.snapshot
    writer.close()
    store = open_store(model, model.graph_, tmp_path / "store")
    again = restore(model, model.graph_, store)
    assert again.snapshot.version == expected.version
    np.testing.assert_array_equal(again.snapshot.vectors.matrix(), expected.vectors.matrix())
    assert again.snapshot.overlay.names.tolist() == expected.overlay.names.tolist()
    store.close()


def test_changes_that_wait_together_share_a_version_and_replay_alike(model, tmp_path):
    store = open_store(model, model.graph_, tmp_path / "store")
    writer = Writer(restore(model, model.graph_, store), store)
    listed = list(changes(model.graph_, 30, seed=7))
    answers = [writer.submit(change) for change in listed]  # not started: all of them wait
    refused = writer.submit(Change("remove", ["nobody"]))
    writer.start()
    versions = [answer.result(60).version for answer in answers]
    with pytest.raises(UnknownNodeError):
        refused.result(60)
    assert set(versions) == {30}
    assert {change.kind for change in listed} == {"add", "remove"}
    expected = writer.snapshot
    writer._saved = writer.snapshot.version  # as if killed: no state is saved at the end
    writer.close()
    again = restore(model, model.graph_, open_store(model, model.graph_, tmp_path / "store"))
    assert again.snapshot.version == 30
    np.testing.assert_array_equal(again.snapshot.vectors.matrix(), expected.vectors.matrix())


@any_model
def test_what_is_held_does_not_grow_with_nodes_that_come_and_go(model, tmp_path, monkeypatch):
    """Removed nodes keep their positions until the base is made anew; counted here are all that are held."""
    monkeypatch.setattr(writer_module, "_MAX_REMOVED", 30)
    store, sizes = open_store(model, model.graph_, tmp_path / "store"), []
    writer = Writer(restore(model, model.graph_, store), store)
    writer.start()
    weights = None if model.graph_.weights is None else [1.0, 1.0]
    features = [([1], [1.0])] if model.graph_.has_features else None
    for number in range(130):
        name = f"new {number}"
        edges = [(name, "n3"), (name, f"n{10 + number % 80}")]
        writer.submit(Change("add", [name], edges, weights, features))
        overlay = writer.submit(Change("remove", [name])).result(30).overlay
        held = len(overlay), len(overlay.added), len(overlay.patch.indices), len(overlay.patch.indptr)
        ((logged,),) = store._database.execute("SELECT count(*) FROM changes").fetchall()
        sizes.append((*held, len(writer.snapshot.vectors), len(writer.live.drift), logged))
    writer.close()
    cycles = np.array([np.max(sizes[start : start + 31], axis=0) for start in range(0, 124, 31)])
    assert (cycles[:, 0] <= 90 + 31).all()
    assert (cycles[1:] <= cycles[0] * 1.2 + 4).all(), cycles


@any_model
def test_writing_resumes_by_itself_after_a_fault_of_the_store(model, tmp_path):
    store = open_store(model, model.graph_, tmp_path / "store")
    writer = Writer(restore(model, model.graph_, store), store)
    writer.start()
    first, second = list(changes(model.graph_, 2))
    writer.submit(first).result(30)
    store._database.close()
    with pytest.raises(ClosedError, match="the store failed"):
        writer.submit(second).result(30)
    assert writer.snapshot.version == 1
    wait_until_it_writes(writer)
    assert writer.submit(second).result(30).version == 2
    writer.close()


def wait_until_it_writes(writer):
    until = time.monotonic() + 30
    while writer.fault is not None:
        assert time.monotonic() < until
        assert writer.is_alive()
        time.sleep(0.01)


@pytest.fixture(params=["exact", "corrected"])
def deferred(request, monkeypatch):
    monkeypatch.setattr(live_module, "DEFERRED_FROM", 0)
    if request.param == "corrected":  # as in a large graph
        monkeypatch.setattr(smoothing, "_QUICK", 0)


def test_deferred_updates_end_within_the_same_bounds(model, deferred):
    live = begun(model)
    for place, change in enumerate(changes(model.graph_, 60, seed=8)):
        after = applied(live, change)
        assert after.version == place + 1
        assert after.refreshed_to <= place
        new = live.embed(after.overlay, after.refreshed, after.known)
        np.testing.assert_array_equal(after.vectors.take(after.refreshed), new)
        if place % 7 == 6:
            live.take(live.next_work()())  # a little
    settled = live.refresh()
    assert settled.refreshed_to == settled.version == 60
    assert not settled.due
    remaining = settled.overlay.remaining
    found, expected = settled.vectors.take(remaining), whole(model, live).vectors
    cosine = (found * expected).sum(axis=1) / np.linalg.norm(found, axis=1) / np.linalg.norm(expected, axis=1)
    assert np.median(cosine) > (0.95 if model.config_.rpr_method == "walks" else 0.999)
    assert (live.drift.bounds()[remaining] <= live.tolerance * (1 + 1e-9)).all()


def test_deferred_updates_are_the_same_bits_after_a_restart(model, deferred, tmp_path):
    store = open_store(model, model.graph_, tmp_path / "store")
    writer = Writer(restore(model, model.graph_, store), store)
    writer._save_every = 9
    writer.start()
    for change in changes(model.graph_, 40, seed=9):
        writer.submit(change).result(30)
    until = time.monotonic() + 60
    while writer.snapshot.refreshed_to < 40:
        assert time.monotonic() < until
        time.sleep(0.01)
    while (
        True
    ):  # files come and go where a thread saves the state: those of one moment, as a kill leaves them
        names = sorted(os.listdir(tmp_path / "store"))
        unfinished = shutil.ignore_patterns("*.tmp", ".tmp*")
        with suppress(shutil.Error):
            shutil.copytree(tmp_path / "store", tmp_path / "copy", ignore=unfinished)
            if names == sorted(os.listdir(tmp_path / "store")):
                break
        assert time.monotonic() < until
        shutil.rmtree(tmp_path / "copy", ignore_errors=True)
    expected = writer.snapshot
    writer.close()
    for folder in ("copy", "store"):
        store = open_store(model, model.graph_, tmp_path / folder)
        again = restore(model, model.graph_, store)
        assert again.snapshot.version == 40
        found = again.refresh()
        np.testing.assert_array_equal(found.vectors.matrix(), expected.vectors.matrix())
        store.close()


@any_model
def test_a_key_is_applied_once(model, tmp_path):
    store = open_store(model, model.graph_, tmp_path / "store")
    writer = Writer(restore(model, model.graph_, store), store)
    change = replace(next(changes(model.graph_, 1)), key=["mine", "digest"])
    answers = [writer.submit(change) for _ in range(2)]  # not started: both wait
    writer.start()
    assert [answer.result(30).version for answer in answers] == [1, 1]
    writer.submit(None).result(30)
    writer.close()
    store = open_store(model, model.graph_, tmp_path / "store")  # a compacted log still knows it
    writer = Writer(restore(model, model.graph_, store), store)
    writer.start()
    assert writer.submit(change).result(30).version == 1
    with pytest.raises(GraphFormatError, match="another request"):
        writer.submit(replace(change, key=["mine", "other"])).result(30)
    writer.close()


@any_model
def test_an_error_in_the_writer_does_not_end_it(model, tmp_path, monkeypatch):
    store = open_store(model, model.graph_, tmp_path / "store")
    writer = Writer(
        restore(model, model.graph_, store), store, rebuild=lambda: restore(model, model.graph_, store)
    )
    first, second = list(changes(model.graph_, 2))
    with monkeypatch.context() as patch:
        patch.setattr(Live, "update", lambda *_: 1 / 0)
        answer = writer.submit(first)
        writer._work()  # in this thread, with an update that fails once
    with pytest.raises(OutcomeUnknownError, match="may have been stored"):
        answer.result(30)
    writer.start()
    wait_until_it_writes(writer)
    assert writer.snapshot.version == 1  # it was stored, and is read back
    assert writer.submit(second).result(30).version == 2
    writer.close()


@any_model
def test_a_full_queue_refuses(model, tmp_path):
    store = open_store(model, model.graph_, tmp_path / "store")
    writer = Writer(restore(model, model.graph_, store), store, waiting=2)  # not started: nothing is taken
    one, two, three = list(changes(model.graph_, 3))
    writer.submit(one)
    writer.submit(two)
    with pytest.raises(ClosedError, match="2 changes are already waiting"):
        writer.submit(three)
    store.close()


def test_a_store_is_of_one_format(tmp_path):
    store = Store(tmp_path, "owner")
    store._database.execute("UPDATE about SET value = '9' WHERE key = 'format'")
    store.close()
    with pytest.raises(ParameterError, match="format '9'"):
        Store(tmp_path, "owner")


def test_names_must_be_text_or_numbers(tmp_path):
    graph = Graph.from_edges([((0, "a"), (0, "b"))])
    with pytest.raises(ParameterError, match="text or integers"):
        open_store(None, graph, tmp_path)


@pytest.mark.parametrize("exact_up_to", [10**9, 10])
def test_look_ups_are_those_of_search(model, exact_up_to):
    live = begun(model)
    lookup = Lookup(exact_up_to)
    lookup.follow(live.snapshot)
    settle(lookup)
    for change in changes(model.graph_, 20, seed=5):
        lookup.follow(applied(live, change))
    now = live.snapshot
    names = now.overlay.names_at(now.overlay.remaining)
    vectors = now.vectors.take(now.overlay.remaining)
    search = Search(Embeddings(np.array(names, dtype=object), vectors, now.parts), exact=True)
    agreed = 0
    for name, position in zip(names, now.overlay.remaining.tolist(), strict=True):
        found = lookup.nearest(now, now.vector(position), 5, position)
        expected = search.similar(name, 5)
        if exact_up_to > len(names):
            assert now.overlay.names_at(found.positions) == [match.name for match in expected]
            np.testing.assert_allclose(found.scores, [match.score for match in expected], atol=1e-6)
        agreed += len({match.name for match in expected} & set(now.overlay.names_at(found.positions)))
    assert agreed >= 0.95 * 5 * len(names)


def test_look_ups_find_as_many_as_are_asked_for_where_all_look_alikes_are_gone():
    part = made.barbell(20, bridge=2)
    features = np.repeat(np.eye(2, dtype=np.float32), len(part), axis=0)  # nothing in common
    graph = Graph.union([part, part], keys="ab").relabel(range(2 * len(part))).with_features(features)
    live, lookup = begun(SPINE(dim=8, k=10).fit(graph)), Lookup(exact_up_to=10)
    lookup.follow(live.snapshot)
    settle(lookup)
    vector = live.snapshot.vector(0)
    lookup.follow(applied(live, Change("remove", list(range(1, len(part))))))
    found = lookup.nearest(live.snapshot, vector, 5, 0)
    assert len(found.positions) == 5
    assert (found.positions >= len(part)).all()  # the others are removed


@any_model
def test_look_ups_are_ready_once_the_first_index_is_made(model, monkeypatch):
    may_go_on, make = Event(), lookup_module.new_index
    monkeypatch.setattr(
        lookup_module, "new_index", lambda *given, **named: may_go_on.wait(30) and make(*given, **named)
    )
    live, lookup = begun(model), Lookup(exact_up_to=10)
    assert lookup.is_ready
    lookup.follow(live.snapshot)
    assert not lookup.is_ready
    assert (
        len(lookup.nearest(live.snapshot, live.snapshot.vector(0), 3, 0).positions) == 3
    )  # every node is compared
    may_go_on.set()
    settle(lookup)
    assert lookup.is_ready


@any_model
def test_the_index_is_searched_half_as_widely_while_look_ups_are_many(model, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(lookup_module.time, "monotonic", lambda: clock[0])
    live, lookup = begun(model), Lookup(exact_up_to=10)
    lookup.follow(live.snapshot)
    settle(lookup)

    def searched(per_second, seconds):
        for _ in range(int(per_second * seconds)):
            clock[0] += 1 / per_second
            lookup.nearest(live.snapshot, live.snapshot.vector(0), 3, 0)
        return lookup._index._index.expansion_search

    assert searched(150, 1.0) == 128
    assert searched(400, 0.3) == 64
    assert searched(150, 0.3) == 128
    assert searched(400, 0.3) == 64
    clock[0] += 60  # nobody asks
    assert searched(150, 0.1) == 128


def test_twins_asked_of_an_older_moment_do_not_keep_what_a_later_change_concerns(model):
    live, hurried, other = begun(model), Twins(model.generator_), Twins(model.generator_)
    before = live.snapshot
    neighbors = before.overlay.neighbors("n0").tolist()
    after = applied(live, Change("remove", [], [("n0", name) for name in neighbors[1:]]))
    for twins in (hurried, other):
        twins.nearest(before, 0, 5)
    hurried.nearest(before, 0, 5)  # by somebody who began before the change
    found, expected = hurried.nearest(after, 0, 5), other.nearest(after, 0, 5)
    assert found.positions.tolist() == expected.positions.tolist()
    assert found.scores.tolist() == expected.scores.tolist()


def test_blocks_are_shared_by_those_that_are_the_same():
    count = 5 * BLOCK_ROWS + 3
    random = np.random.default_rng(0).random((count, 4), np.float32)
    rows = RowBlocks([], 0, 4).replaced(np.arange(count), random, count)
    changed = rows.replaced(np.array([2, BLOCK_ROWS * 2]), np.zeros((2, 4), np.float32), len(rows) + 1)
    shared = [np.shares_memory(one, other) for one, other in zip(rows._blocks, changed._blocks, strict=True)]
    assert shared == [False, True, False, True, True, True]
    assert len(changed) == len(rows) + 1
    assert rows.take(np.array([2]))[0].any()
    vector = np.ones(4, np.float32)
    np.testing.assert_allclose(changed.products(vector), changed.matrix() @ vector, rtol=1e-5)


@pytest.fixture(scope="module", params=["dense", "sparse"])
def reading_model(request):
    graph = small_graph()
    if request.param == "sparse":
        graph = graph.with_features(csr_array(graph.features), graph.feature_names)
    return SPINE(dim=32, k=10).fit(graph)


def grown(graph):
    features = np.random.default_rng(2).random((40, 12), np.float32)
    return graph.overlay(range(40), [(number, f"n{number}") for number in range(40)], features)


def test_kept_rows_are_the_same_bits_in_whatever_order_they_are_met(reading_model):
    before, after = reading_model.graph_, grown(reading_model.graph_)
    generator = reading_model.generator_
    for node in range(0, 90, 7):
        generator.embed_some(before, np.array([node]))
    some = np.arange(124, 4, -3)  # known in part by then
    found = generator.embed_some(after, some)
    fresh = replace(generator.content, _cache=type(generator.content._cache)())
    np.testing.assert_array_equal(found, replace(generator, content=fresh).embed_some(after, some))


def cosine(one, other):
    return (one * other).sum(axis=-1) / np.linalg.norm(one, axis=-1) / np.linalg.norm(other, axis=-1)


@pytest.fixture(scope="module")
def placed():
    return SPINE(dim=32, k=10).fit(small_graph().with_features(None))


def test_a_new_node_gets_its_place_at_once_from_its_neighbours(placed):
    live = begun(placed)
    near = placed.graph_.neighbors("n40").tolist()[:4]
    after = applied(live, Change("add", ["new"], [("new", name) for name in near]))
    place = after.parts["place"]
    own, others = after.vector(len(placed.graph_))[place], after.vectors.matrix()[:90, place]
    assert own.any()
    to_near = cosine(own, others[after.overlay.positions(near)])
    assert to_near.min() > np.quantile(cosine(own, others), 0.8)
    np.testing.assert_array_equal(after.known[-1], -1)
    later = applied(live, Change("add", ["next"], [("next", "new")]))  # all it is linked to is new
    assert cosine(later.vector(len(placed.graph_) + 1)[place], own) > 0.8


def test_the_training_network_is_remembered_however_much_it_changes(placed, tmp_path):
    """Most of its links go and the store is compacted; by itself it would be another network now."""
    graph = placed.graph_
    store = open_store(placed, graph, tmp_path / "store")
    writer = Writer(restore(placed, graph, store), store)
    writer.start()
    links = [(f"n{a}", name) for a in range(90) for name in graph.neighbors(f"n{a}") if int(name[1:]) > a]
    writer.submit(Change("remove", [], [link for place, link in enumerate(links) if place % 3])).result(30)
    writer.submit(Change("remove", ["n5"])).result(30)
    writer.submit(Change("add", ["n5"], [("n5", "n70"), ("n5", "n80")])).result(30)  # another of that name
    before, compacted = writer.snapshot, writer.submit(None).result(30)
    assert placed.generator_.known(compacted.overlay.base) is None
    np.testing.assert_array_equal(compacted.known, before.known[before.overlay.remaining])
    assert compacted.known[compacted.overlay.position("n5")] == -1
    writer.submit(Change("add", ["new"], [("new", "n70")])).result(30)
    expected = writer.snapshot
    writer.close()
    store = open_store(placed, graph, tmp_path / "store")
    again = restore(placed, graph, store)
    store.close()
    np.testing.assert_array_equal(again.snapshot.known, expected.known)
    np.testing.assert_array_equal(again.snapshot.vectors.matrix(), expected.vectors.matrix())
    assert again.snapshot.vector(len(again.snapshot.overlay) - 1)[again.snapshot.parts["place"]].any()


def test_a_grown_and_compacted_network_is_recognised_by_itself(placed):
    live = begun(placed)
    for change in changes(placed.graph_, 30, seed=8):
        applied(live, change)
    base, state = live.compacted()
    live.rebase(base, state)
    np.testing.assert_array_equal(placed.generator_.known(base), live.snapshot.known)


def test_in_another_network_place_is_zero_and_does_not_count(placed):
    other = small_graph(seed=3).with_features(None)
    live = Live(placed.generator_, other)
    live.compute_all()
    assert live.snapshot.known is None
    after = applied(live, Change("add", ["new"], [("new", "n1"), ("new", "n2")]))
    assert not after.vectors.matrix()[:, after.parts["place"]].any()
    found = Lookup().nearest(after, after.vector(90), 5, 90)
    by_role = Lookup().nearest(after, after.vector(90), 5, 90, {"place": 0})
    assert found.positions.tolist() == by_role.positions.tolist()
    np.testing.assert_allclose(found.scores, by_role.scores, atol=1e-6)
    assert found.scores[0] > 0.9


@pytest.mark.parametrize(
    ("by", "weights"),
    [("content", None), ("place", None), ("role", None), ("all", {"role": 3}), ("all", {"content": 0})],
)
def test_look_ups_by_parts_and_weights_are_those_of_search(reading_model, by, weights):
    live = begun(reading_model)
    for change in changes(reading_model.graph_, 20, seed=9):
        applied(live, change)
    now, lookup = live.snapshot, Lookup(exact_up_to=10)
    lookup.follow(now)
    settle(lookup)
    names, vectors = now.overlay.names_at(now.overlay.remaining), now.vectors.take(now.overlay.remaining)
    embeddings = Embeddings(np.array(names, dtype=object), vectors, now.parts)
    search = Search(embeddings, by=by, weights=weights, exact=True)
    given = weights if by == "all" else {name: float(name == by) for name in now.parts}
    for name, position in zip(names[::7], now.overlay.remaining[::7].tolist(), strict=True):
        found = lookup.nearest(now, now.vector(position), 5, position, given)
        expected = search.similar(name, 5)
        assert now.overlay.names_at(found.positions) == [match.name for match in expected]
        np.testing.assert_allclose(found.scores, [match.score for match in expected], atol=2e-6)


def test_a_store_belongs_to_the_weights_of_a_model_too(placed, tmp_path):
    open_store(placed, placed.graph_, tmp_path / "store").close()
    heavier = SPINE(dim=32, k=10, weights={"role": 2}).fit(placed.graph_)
    with pytest.raises(ParameterError, match="belongs to another model"):
        open_store(heavier, placed.graph_, tmp_path / "store")
    placed.save(tmp_path / "model")
    open_store(SPINE.load(tmp_path / "model"), placed.graph_, tmp_path / "store").close()
