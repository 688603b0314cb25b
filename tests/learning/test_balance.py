"""The balance of structure and content follows from what features tell about links."""

import numpy as np
import pytest

from spinegraph import Config, Graph, datasets, made
from spinegraph.learning.sampling import balanced


def share(graph: Graph, **settings) -> float:
    return balanced(Config(**settings), graph).structural_share


def test_what_the_user_sets_stays():
    assert share(made.karate(), structural_share=0.25) == 0.25


def test_without_features_there_is_no_channel_beside_them():
    assert share(made.karate()) == 0


def test_a_handful_of_edges_settles_nothing():
    graph = made.barbell(4).with_features(np.eye(8, dtype=np.float32))
    assert share(graph) == 0.1


def test_features_dealt_out_at_random_leave_nearly_all_to_structure():
    graph = made.planted(seed=1).graph
    order = np.random.default_rng(1).permutation(len(graph))
    assert share(graph.with_features(graph.feature_rows(order))) == 0.99


@pytest.mark.data
def test_the_more_features_tell_the_less_structure_gets():
    shares = {name: share(datasets.load(name).graph) for name in ("cora", "citeseer", "amazon_photo")}
    assert shares["citeseer"] < 0.03 < shares["cora"] < 0.15 < shares["amazon_photo"] <= 0.5
