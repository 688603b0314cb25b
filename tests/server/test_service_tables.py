"""A model fitted on a table of mixed columns: new nodes come with rows of that table."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from running_service import Running, small_graph
from spinegraph import SPINE, FeatureEncoder, Graph
from spinegraph.apps.cli.serve import _read_table
from spinegraph.apps.server.atlas import NodeTable
from spinegraph.errors import MissingFeaturesError
from spinegraph.graph.overlay import Overlay


def people(n, seed=0):
    """A table of text, numbers, dates and truths."""
    rng = np.random.default_rng(seed)
    return {
        "team": rng.choice(["north", "south"], n).tolist(),
        "age": rng.integers(20, 60, n).tolist(),
        "joined": [f"20{year}-03-01" for year in rng.integers(10, 25, n)],
        "remote": (rng.random(n) < 0.5).tolist(),
    }


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    graph = small_graph()
    encoder = FeatureEncoder().fit(people(len(graph)))
    graph = graph.with_features(encoder.transform(people(len(graph))), feature_names=encoder.feature_names_)
    fitted = SPINE(dim=32, k=10).fit(graph, encoder=encoder)
    fitted.save(tmp_path_factory.mktemp("table") / "model")
    return fitted


@pytest.fixture(scope="module")
def service(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("table_service")
    model.save(folder / "model")
    with Running(folder / "model", folder / "store") as running:
        yield running


ROW = {"team": "south", "age": 31, "joined": "2023-09-15", "remote": True}


@pytest.mark.parametrize(
    "row",
    [
        ROW,
        {"age": 31},
        {},
        {**ROW, "age": 31.5, "remote": False},
        {**ROW, "team": None},
        {**ROW, "team": "x"},
    ],
    ids=["whole", "age", "nothing", "fraction", "gap", "unseen"],
)
def test_a_row_of_the_table_is_encoded_as_it_was_for_the_fit(service, model, row):
    body = {"name": "zoe", "edges": ["n1", "n2"], "features": row}
    answer = service.client.post("/v1/embed", json=body)
    assert answer.status_code == 200, answer.text
    features = model.table_encoder_.transform([{name: row.get(name) for name in ROW}])
    grown = model.graph_.overlay(["zoe"], [("zoe", "n1"), ("zoe", "n2")], features=features)
    expected = model.transform(grown, nodes=["zoe"])["zoe"]
    np.testing.assert_allclose(answer.json()["nodes"][0]["vector"], expected, rtol=1e-5, atol=1e-6)


def test_rows_and_lists_of_encoded_columns_go_together(service, model):
    encoded = model.table_encoder_.transform([ROW]).toarray()[0].tolist()
    body = {
        "nodes": [
            {"name": "by row", "edges": ["n1"], "features": ROW},
            {"name": "by list", "edges": ["n1"], "features": encoded},
            {"name": "other row", "edges": ["n1"], "features": {**ROW, "age": 59}},
        ]
    }
    row, same, other = service.client.post("/v1/embed", json=body).json()["nodes"]
    # Their own features come in another order of the sum.
    np.testing.assert_allclose(row["vector"], same["vector"], atol=1e-6)
    assert np.abs(np.subtract(row["vector"], other["vector"])).max() > 1e-3


def test_the_tables_columns_are_told(service):
    told = service.get("/v1/features")
    assert told["table"] == {"team": "category", "age": "number", "joined": "date", "remote": "boolean"}
    assert "team = north" in told["names"]
    fields = {field.pop("name"): field for field in told["fields"]}
    assert fields["team"] == {"kind": "category", "levels": ["north", "south"], "typical": None}
    assert fields["age"]["typical"] == pytest.approx(np.mean(people(90)["age"]), abs=1e-3)
    assert fields["joined"]["typical"].startswith("201")
    assert fields["remote"]["kind"] == "boolean"


def test_rows_and_columns_come_back_as_they_were_written(service):
    table = people(90)
    table["remote"] = ["yes" if value else "no" for value in table["remote"]]
    for name, values in table.items():
        assert service.get(f"/v1/columns/{name}")["values"] == values
    assert service.get("/v1/nodes/n7/row")["row"] == {name: values[7] for name, values in table.items()}
    service.client.post("/v1/nodes", json={"name": "zoe", "edges": ["n1"], "features": ROW})
    assert service.get("/v1/nodes/zoe/row")["row"] == {**ROW, "remote": "yes"}
    assert service.get("/v1/columns/age")["values"] == [*table["age"], 31]
    service.client.delete("/v1/nodes/zoe")


def test_a_table_beside_the_model_is_shown_as_written(model, tmp_path):
    rows = [f'n{i},{"north" if i % 2 else "south"},"likes / item {i}",{i}' for i in range(89, 3, -1)]
    (tmp_path / "people.csv").write_text("\n".join(["name,team,about me,pay", *rows]))
    model.save(tmp_path / "model")
    with Running(
        tmp_path / "model", tmp_path / "store", ["--table", str(tmp_path / "people.csv")]
    ) as running:
        row = running.get("/v1/nodes/n7/row")["row"]
        assert (row["team"], row["about me"], row["pay"]) == ("north", "likes / item 7", 7)
        assert row["age"] == people(90)["age"][7]
        assert running.get("/v1/columns/pay")["values"] == [None] * 4 + list(range(4, 90))
        assert {"name": "about me", "kind": "category"} in running.get("/v1/map")["columns"]


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ({"team = north": 1}, "no column 'team = north'"),
        ({"age": "old"}, "column 'age': expected numbers"),
        ({"joined": "someday"}, "expected an ISO 8601 date"),
        ({"remote": 2}, "a boolean must be true, false, 1 or 0"),
    ],
)
def test_a_row_that_does_not_fit_the_table_is_a_problem(service, row, what):
    answer = service.client.post("/v1/embed", json={"name": "zoe", "edges": ["n1"], "features": row})
    assert answer.status_code == 422
    assert answer.json()["field"] == "body.features"
    assert what in answer.json()["detail"]


def test_dates_and_amounts_are_shown_as_the_encoder_read_them():
    rows = {
        "joined": ["31/01/2024", "05/02/2024", "n/a"],
        "pay": ["$1,200", "$900", "?"],
        "is_new": list("101"),
    }
    encoder = FeatureEncoder({"is_new": "boolean"}).fit(rows)
    graph = Graph.from_edges([(0, 1), (1, 2)], features=encoder.transform(rows))
    now = SimpleNamespace(overlay=Overlay.of(graph), names=lambda: [0, 1, 2])
    for table in (NodeTable(graph, encoder), NodeTable(graph, encoder, pa.table(rows))):
        assert table.kinds == {"joined": "date", "pay": "number", "is_new": "boolean"}
        dates = [one and one.removesuffix("T00:00:00") for one in table.column(now, "joined")]
        assert dates == ["2024-01-31", "2024-02-05", None]
        assert table.column(now, "pay") == [1200, 900, None]


def test_the_column_of_names_in_a_table_is_found_as_that_of_features(tmp_path):
    (tmp_path / "people.csv").write_text("id,name,age\n1,ann,28\n2,bob,31\n")
    found = _read_table(tmp_path / "people.csv", np.array(["bob", "ann"], dtype=object), None)
    assert found.to_pydict() == {"id": [2, 1], "age": [31, 28]}


def test_the_column_of_names_in_a_table_may_be_named(tmp_path):
    (tmp_path / "people.csv").write_text("age,who\n31,bob\n28,cy\n")
    found = _read_table(tmp_path / "people.csv", np.array(["ann", "bob"], dtype=object), "who")
    assert found.to_pydict() == {"age": [None, 31]}
    with pytest.raises(MissingFeaturesError, match="none of its 2 names is a node"):
        _read_table(tmp_path / "people.csv", np.array(["ann"], dtype=object), "who")
