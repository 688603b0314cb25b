"""The encoder of a user's table travels with the model and encodes tomorrow's tables alike."""

import numpy as np
import pytest

import spinegraph as sg
from spinegraph.errors import ModelFormatError, ParameterError

TABLE = {"team": ["red", "blue", "red", "green"], "age": [30.0, 41.0, None, 25.0]}


def fitted():
    encoder = sg.FeatureEncoder()
    graph = sg.Graph.from_edges([(0, 1), (1, 2), (2, 3)], features=encoder.fit_transform(TABLE))
    return sg.SPINE(dim=4).fit(graph, encoder=encoder), encoder


def test_a_loaded_model_encodes_a_new_table_as_before(tmp_path):
    model, encoder = fitted()
    model.save(tmp_path / "model")
    back = sg.SPINE.load(tmp_path / "model").table_encoder_
    new = {"team": ["blue", "violet"], "age": [33.0, None]}
    assert np.array_equal(back.transform(new).toarray(), encoder.transform(new).toarray())
    assert back.feature_names_ == encoder.feature_names_


def test_a_model_fitted_without_a_table_has_no_table_encoder(tmp_path):
    model = sg.SPINE(dim=4).fit(sg.Graph.from_edges([(0, 1), (1, 2)]))
    model.save(tmp_path / "model")
    assert sg.SPINE.load(tmp_path / "model").table_encoder_ is None


def test_an_encoder_of_other_features_is_refused():
    graph = sg.Graph.from_edges([(0, 1)], features=[[1.0], [0.0]])
    with pytest.raises(ParameterError, match="the graph has 1; pass the encoder"):
        sg.SPINE(dim=2).fit(graph, encoder=sg.FeatureEncoder().fit(TABLE))


def test_a_damaged_table_encoder_is_a_model_format_error(tmp_path):
    model, _ = fitted()
    model.save(tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    path.write_text(path.read_text().replace('"table_encoder": {', '"table_encoder": {"odd": 1, ', 1))
    text = path.read_text().replace('"green"', '"', 1)
    path.write_text(text)
    with pytest.raises(ModelFormatError):
        sg.SPINE.load(tmp_path / "model")
