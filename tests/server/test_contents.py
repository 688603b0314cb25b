"""What is kept of features: the same vectors as without, to the bit whatever was computed before."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from running_service import small_graph
from spinegraph import SPINE
from spinegraph.apps.server.live import ContentCache, embedder


@pytest.fixture(scope="module", params=["dense", "sparse"])
def model(request):
    graph = small_graph()
    if request.param == "sparse":
        graph = graph.with_features(csr_array(graph.features), graph.feature_names)
    return SPINE(dim=8, steps=5, k=10).fit(graph)


def grown(graph):
    features = np.random.default_rng(2).random((40, 12), np.float32)
    return graph.overlay(range(40), [(number, f"n{number}") for number in range(40)], features)


def test_vectors_are_those_of_the_generator(model):
    after = grown(model.graph_)
    contents, everybody = ContentCache(model.generator_), np.arange(len(after))
    for some in (everybody[:3], everybody[95:99], everybody):  # known in part by then
        np.testing.assert_allclose(
            contents.embed(after, some), model.generator_.embed(after, some), rtol=1e-4, atol=1e-5
        )


def test_kept_rows_are_the_same_bits_in_whatever_order_they_are_met(model):
    before, after = model.graph_, grown(model.graph_)
    first, second = ContentCache(model.generator_), ContentCache(model.generator_)
    for node in range(0, 90, 7):
        first.embed(before, np.array([node]))
    for node in range(90, 130):
        first.embed(after, np.array([node]))
    some = np.arange(5, 125, 3)
    np.testing.assert_array_equal(first.embed(after, some), second.embed(after, some))


def test_models_that_read_no_features_keep_nothing():
    plain = SPINE(dim=8, steps=5, k=10).fit(small_graph().with_features(None))
    assert embedder(plain.generator_) == plain.generator_.embed
