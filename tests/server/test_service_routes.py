"""The service as its users meet it: a real process, asked over HTTP."""

import io
import time
from urllib.parse import quote

import numpy as np
import pyarrow.parquet as parquet
import pytest

from running_service import Running, small_graph, small_model
from spinegraph import SPINE, Embeddings
from spinegraph.analysis.search import Search


@pytest.fixture(scope="module")
def service(model_folder, tmp_path_factory):
    """One process for all tests here: each uses names of its own, and looks at what changes."""
    with Running(model_folder, tmp_path_factory.mktemp("routes") / "store") as running:
        yield running


def version(service):
    return service.get("/readyz")["version"]


def test_a_new_node_gets_a_vector_and_is_found(service):
    before = version(service)
    added = service.add("new", ["n0", "n1", "n2"])
    assert added["version"] == before + 1
    assert added["nodes"][0]["name"] == "new"
    node = service.get("/v1/nodes/new")
    assert node["vector"] == added["nodes"][0]["vector"]
    assert node["degree"] == 3
    assert node["version"] == before + 1
    matches = service.get("/v1/nodes/new/similar", n=5)["matches"]
    assert len(matches) == 5
    assert [match["score"] for match in matches] == sorted((m["score"] for m in matches), reverse=True)
    assert "new" not in [match["name"] for match in matches]


def test_requests_of_plain_form_are_answered_like_all_others(service):
    """Look-ups, inserts and removals without further options take a shorter way to the same routes."""
    plain, other = (service.get("/v1/nodes/n5/similar", n=7, **more) for more in ({}, {"by": "all"}))
    assert plain == other
    assert service.get("/v1/nodes/n5/similar") == service.get("/v1/nodes/n5/similar", n=10, by="all")
    answers = []
    for keys in ([], ["plain 1", "plain 2", "plain 3"]):
        name = f"plain {len(keys)}"
        added, gone, again = [{"Idempotency-Key": key} for key in keys] or [{}] * 3
        body = {"name": name, "edges": ["n0", "n1"], "features": {"word 1": 1}}
        found = [service.client.post("/v1/nodes", json=body, headers=added)]
        found += [service.client.delete(f"/v1/nodes/{quote(name)}", headers=each) for each in (gone, again)]
        assert [each.status_code for each in found] == [201, 200, 404]
        answers.append([(sorted(each.json()), set(each.headers)) for each in found])
    assert answers[0] == answers[1]
    for text in ('{"name": 1.5}', '{"name": "x", "edges": 3}', "{", '{"nodes": []}', '{"name": "\\ud800"}'):
        sent = {"content": text, "headers": {"Content-Type": "application/json"}}
        found = service.client.post("/v1/nodes", **sent)
        assert found.status_code in (400, 422)
        assert found.json()["field"].startswith("body")
    assert service.client.get("/v1/nodes/similar").status_code == 404  # a node of that name
    assert service.client.get("/v1/nodes/n5/similar", params={"n": 0}).json()["field"] == "query.n"
    counted = [line for line in service.client.get("/metrics").text.splitlines() if "/similar" in line]
    assert any('route="/v1/nodes/{name:path}/similar"' in line for line in counted)


def test_several_nodes_may_be_linked_to_each_other(service):
    body = {
        "nodes": [
            {"name": "a", "edges": ["b", "n3"], "features": [0.0] * 12},
            {"name": "b", "edges": ["n4"], "features": {"word 0": 1, "word 3": 0.5}},
        ]
    }
    answer = service.client.post("/v1/nodes", json=body)
    assert answer.status_code == 201
    assert [node["name"] for node in answer.json()["nodes"]] == ["a", "b"]
    assert service.get("/v1/nodes/a")["degree"] == 2
    assert service.get("/v1/nodes/b")["degree"] == 2


def test_edges_and_nodes_come_and_go(service):
    degree, before = service.get("/v1/nodes/n0")["degree"], version(service)
    service.add("comes", ["n0"])
    assert service.get("/v1/nodes/n0")["degree"] == degree + 1
    edge = {"source": "comes", "target": "n50"}
    assert service.client.post("/v1/edges", json={"edges": [edge]}).json()["version"] == before + 2
    assert service.get("/v1/nodes/comes")["degree"] == 2
    assert service.client.delete("/v1/edges", params=edge).json()["version"] == before + 3
    assert service.get("/v1/nodes/comes")["degree"] == 1
    assert service.client.delete("/v1/edges", params=edge).status_code == 404
    assert service.client.delete("/v1/nodes/comes").json()["version"] == before + 4
    assert service.client.get("/v1/nodes/comes").status_code == 404
    assert service.get("/v1/nodes/n0")["degree"] == degree
    assert service.add("comes", ["n1"])["version"] == before + 5


def test_trying_a_node_out_stores_nothing_and_tells_the_same_vector(service):
    body = {"name": "tried", "edges": ["n5", "n6"], "features": {"word 2": 1}}
    before = version(service)
    tried = service.client.post("/v1/embed", json=body, params={"n": 3}).json()
    assert tried["version"] == version(service) == before
    assert len(tried["nodes"][0]["nearest"]) == 3
    assert len(tried["nodes"][0]["place"]) == 2
    assert service.client.get("/v1/nodes/tried").status_code == 404
    stored = service.client.post("/v1/nodes", json=body).json()
    np.testing.assert_allclose(tried["nodes"][0]["vector"], stored["nodes"][0]["vector"], atol=1e-6)


def test_an_export_is_read_as_embeddings(service, model_folder, tmp_path):
    service.add("exported", ["n0", "n1"])
    answer = service.client.get("/v1/export")
    (tmp_path / "all.parquet").write_bytes(answer.content)
    found = Embeddings.load(tmp_path / "all.parquet")
    vector = service.get("/v1/nodes/exported")["vector"]
    np.testing.assert_array_equal(found["exported"], np.float32(vector))
    now, names, vectors = service.vectors()
    assert (now, names) == (version(service), found.names.tolist())
    np.testing.assert_array_equal(vectors, found.vectors)
    assert parquet.read_schema(io.BytesIO(answer.content)).names == ["name", "vector"]


def test_a_vector_says_where_its_parts_are_and_an_export_too(service, model_folder, tmp_path):
    parts = service.get("/v1/nodes/n0")["parts"]
    assert list(parts) == ["content", "place", "role"]
    assert parts["role"][1] == len(service.get("/v1/nodes/n0")["vector"])
    (tmp_path / "all.parquet").write_bytes(service.client.get("/v1/export").content)
    found = Embeddings.load(tmp_path / "all.parquet")
    assert {name: [part.start, part.stop] for name, part in found.parts.items()} == parts
    assert found.same_network is True


def test_a_new_node_has_a_place_at_once(service):
    near = [match["name"] for match in service.get("/v1/nodes/n20/similar", by="place", n=3)["matches"]]
    start, stop = service.get("/v1/nodes/n20")["parts"]["place"]
    vector = service.add("placed", ["n20", *near])["nodes"][0]["vector"]
    assert np.any(vector[start:stop])
    matches = service.get("/v1/nodes/placed/similar", by="place", n=10)["matches"]
    assert len({"n20", *near} & {match["name"] for match in matches}) >= 3


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, {}),
        ({"by": "all"}, {}),
        ({"by": "content"}, {"by": "content"}),
        ({"by": "place"}, {"by": "place"}),
        ({"by": "role"}, {"by": "role"}),
        ({"weights": "role=2, place=0.5"}, {"weights": {"role": 2, "place": 0.5}}),
        ({"weights": "content=0,place=0"}, {"weights": {"content": 0, "place": 0}}),
    ],
)
def test_look_alikes_by_part_or_weights_are_those_of_search(shared_service, model_folder, query, expected):
    embeddings = SPINE.load(model_folder).embeddings_
    for name in ("n3", "n50"):
        found = shared_service.get(f"/v1/nodes/{name}/similar", n=5, **query)["matches"]
        matches = Search(embeddings, exact=True, **expected).similar(name, 5)
        assert [match["name"] for match in found] == [match.name for match in matches]
        assert [match["score"] for match in found] == pytest.approx([match.score for match in matches])


def test_a_node_that_is_tried_out_is_compared_by_part_too(shared_service):
    body = {"name": "tried by part", "edges": ["n5", "n6"], "features": {"word 2": 1}}
    nearest = [
        shared_service.client.post("/v1/embed", json=body, params=query).json()["nodes"][0]["nearest"]
        for query in ({"by": "role"}, {"weights": "content=0,place=0"}, {})
    ]
    assert nearest[0] == nearest[1] != nearest[2]


@pytest.mark.parametrize(
    ("query", "field", "words"),
    [
        ({"by": "colour"}, "query.by", "'content', 'place' or 'role'"),
        ({"weights": "colour=1"}, "query.weights", "weights must map some of"),
        ({"weights": "role"}, "query.weights", "got 'role'"),
        ({"weights": ""}, "query.weights", "role=2,place=0.5"),
        ({"weights": "role=x"}, "query.weights", "got 'role=x'"),
        ({"weights": "role=-1"}, "query.weights", "numbers >= 0"),
        ({"weights": "role=nan"}, "query.weights", "numbers >= 0"),
        ({"weights": "role=1,role=2"}, "query.weights", "given twice"),
        ({"weights": "role=0,place=0,content=0"}, "query.weights", "not all of them 0"),
        ({"by": "role", "weights": "role=2"}, "query.weights", "for all parts together"),
        ({"weights": "role=" + "1" * 200}, "query.weights", "at most 100 characters"),
        ({"by": "colour"}, "query.by", "query.by: must be 'all'"),
    ],
)
def test_parts_and_weights_that_make_no_sense_are_problems(shared_service, query, field, words):
    for path in ("similar", *["explain/n4"] * ("by" not in query)):  # which is always of all parts
        answer = shared_service.client.get(f"/v1/nodes/n3/{path}", params=query)
        assert answer.status_code == 422
        problem = answer.json()
        assert problem["field"] == field
        assert words in problem["detail"]
        assert problem["rule"]


def test_a_part_that_the_model_lacks_is_a_problem(tmp_path):
    folder = small_model(tmp_path / "model", small_graph().with_features(None))
    with Running(folder, tmp_path / "store") as plain:
        assert list(plain.get("/v1/nodes/n0")["parts"]) == ["place", "role"]
        for query, field in (({"by": "content"}, "query.by"), ({"weights": "content=1"}, "query.weights")):
            answer = plain.client.get("/v1/nodes/n0/similar", params=query)
            assert answer.status_code == 422
            assert answer.json()["field"] == field
            assert "no part 'content'" in answer.json()["detail"]
        answer = plain.client.get("/v1/nodes/n0/similar", params={"weights": "role=0,place=0"})
        assert "not be 0 for all parts" in answer.json()["detail"]


def test_a_node_without_the_part_is_not_like_others_without_it(service):
    for name in ("alone", "alone too"):
        service.add(name, [])
    body = {"name": "tried alone", "features": {"word 2": 1}}
    answers = [
        service.client.get("/v1/nodes/alone/similar", params={"by": "place"}),
        service.client.post("/v1/embed", json=body, params={"by": "place"}),
    ]
    for answer in answers:
        assert (answer.status_code, answer.json()["field"]) == (422, "query.by")
        assert "has no place" in answer.json()["detail"]
    assert service.get("/v1/nodes/alone/similar", by="role")["matches"]


def test_a_graph_with_weights_says_how_to_send_them(tmp_path):
    folder = small_model(tmp_path / "model", small_graph(weighted=True))
    with Running(folder, tmp_path / "store") as weighted:
        node, edges = {"name": "new", "features": {}}, {"source": "n1", "target": "n5"}
        bare = [
            weighted.client.post("/v1/nodes", json={**node, "edges": ["n1"]}),
            weighted.client.post("/v1/edges", json={"edges": [edges]}),
        ]
        assert [answer.status_code for answer in bare] == [422, 422]
        forms = ('{"to": NAME, "weight": 2.5}', '{"source": NAME, "target": NAME, "weight": 2.5}')
        for answer, form in zip(bare, forms, strict=True):
            assert f"need a weight; send {form}" in answer.json()["detail"]
        full = [
            weighted.client.post("/v1/nodes", json={**node, "edges": [{"to": "n1", "weight": 2.5}]}),
            weighted.client.post("/v1/edges", json={"edges": [{**edges, "weight": 2.5}]}),
        ]
        assert [answer.status_code for answer in full] == [201, 201]


def test_an_explanation_says_what_each_part_adds(shared_service):
    found = shared_service.get("/v1/nodes/n3/explain/n4")
    assert [part["name"] for part in found["parts"]] == ["content", "place", "role"]
    assert sum(part["share"] for part in found["parts"]) == pytest.approx(found["similarity"], abs=1e-6)
    matches = shared_service.get("/v1/nodes/n3/similar", n=1000)["matches"]
    score = next(match["score"] for match in matches if match["name"] == "n4")
    assert found["similarity"] == pytest.approx(score, abs=0.01)
    heavy = shared_service.get("/v1/nodes/n3/explain/n4", weights="content=0,place=0")
    assert heavy["similarity"] == pytest.approx(found["parts"][2]["cosine"], abs=1e-6)


def test_vectors_follow_the_whole_graph(model_folder, tmp_path):
    """What is not computed anew stays near a full transform of the final graph."""
    model, overlay = SPINE.load(model_folder), None
    with Running(model_folder, tmp_path / "store") as fresh:
        overlay = model.graph_.overlay([], [])
        for number in range(30):
            name, edges = f"new {number}", [f"n{(7 * number) % 90}", f"n{(11 * number + 3) % 90}"]
            fresh.add(name, edges)
            row = np.eye(12, dtype=np.float32)[1:2]
            overlay = overlay.add([name], [(name, edge) for edge in dict.fromkeys(edges)], row)
        fresh.client.delete("/v1/nodes/n10")
        _, names, vectors = fresh.vectors()
    expected = model.transform(overlay.remove(["n10"]).materialize())
    assert names == expected.names.tolist()
    assert np.abs(vectors - expected.vectors).max() < 0.05 * np.abs(expected.vectors).max()


def test_names_are_found_by_any_piece_of_them(shared_service):
    found = shared_service.get("/v1/search", q="N1", n=3)
    assert found["names"] == ["n1", "n10", "n11"]
    assert found["total"] == 11
    assert shared_service.get("/v1/search", q="8", n=99)["names"] == [
        *["n8", "n18", "n28", "n38", "n48", "n58", "n68", "n78"],
        *[f"n8{digit}" for digit in range(10)],
    ]
    assert shared_service.get("/v1/search", q="zzz")["names"] == []


def test_the_explorer_gets_its_columns(shared_service):
    whole = shared_service.get("/v1/map")
    assert len({len(whole[part]) for part in ("names", "x", "y", "degree")}) == 1
    around = shared_service.get("/v1/nodes/n3/neighborhood", radius=1)
    assert around["names"][0] == "n3"
    assert around["hops"][0] == 0
    assert len(around["names"]) == shared_service.get("/v1/nodes/n3")["degree"] + 1
    profile = shared_service.get("/v1/nodes/n3/profile")
    assert profile["nodes"][0] == "n3"
    assert sum(profile["weights"]) == pytest.approx(1, abs=1e-4)
    columns = shared_service.get("/v1/features")
    assert columns["names"] == [f"word {i}" for i in range(12)]
    assert whole["columns"] == [{"name": f"word {i}", "kind": "number"} for i in range(12)]
    assert len(set(whole["colors"])) == len(whole["colors"]) >= 8
    values = shared_service.get("/v1/columns/word 3")["values"]
    assert values == small_graph().features[:, 3].tolist()
    row = shared_service.get("/v1/nodes/n3/row")
    assert row["row"] == dict(zip(columns["names"], small_graph().features[3].tolist(), strict=True))
    assert shared_service.client.get("/v1/columns/word 99").status_code == 404
    scores = shared_service.get("/v1/nodes/n3/likeness", by="role")["values"]
    for match in shared_service.get("/v1/nodes/n3/similar", by="role", n=4)["matches"]:
        assert scores[whole["names"].index(match["name"])] == pytest.approx(match["score"], abs=1e-4)


def test_each_part_has_a_map_of_its_own(shared_service):
    shared_service.wait_for_roles("n3")
    until, drawn = time.monotonic() + 120, set()
    while drawn != {"content", "place", "role"}:
        assert time.monotonic() < until, drawn
        maps = {by: shared_service.get("/v1/layout", by=by) for by in ("content", "place", "role")}
        drawn = {by for by, told in maps.items() if told["method"] == "t-SNE"}
    whole = shared_service.get("/v1/map")
    assert len({tuple(told["x"]) for told in [whole, *maps.values()]}) == 4
    assert all(len(groups) == 90 and min(groups) == 0 for groups in whole["groups"].values())
    assert set(whole["groups"]) == {"content", "place", "role"}
    assert shared_service.client.get("/v1/layout", params={"by": "elsewhere"}).status_code == 422


def test_a_node_that_is_tried_out_gets_a_role_and_reasons(shared_service):
    shared_service.wait_for_roles("n3")
    body = {"name": "new", "edges": ["n1", "n2"], "features": {"word 1": 1}}
    answer = shared_service.client.post("/v1/embed?why=true&map_by=role&n=3", json=body)
    assert answer.status_code == 200, answer.text
    (told,) = answer.json()["nodes"]
    assert told["role"]["title"] in shared_service.get("/v1/map")["titles"]
    assert set(told["nearest_by_part"]) == {"content", "place", "role"}
    assert told["words"]
    assert "role" not in shared_service.client.post("/v1/embed", json=body).json()["nodes"][0]


def test_two_nodes_are_explained_and_roles_are_told_once_found(shared_service):
    found = shared_service.get("/v1/nodes/n3/explain/n4")
    assert found["words"]
    role = shared_service.wait_for_roles("n3")
    assert role["title"] == role["titles"][role["role"]]
    assert sum(role["memberships"]) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(
    ("body", "status", "field", "words"),
    [
        ({"name": "x"}, 422, "body.features", "12 numbers"),
        ({"nodes": [{"name": "x", "features": [1, 2]}]}, 422, "body.nodes.0.features", "got 2 numbers"),
        ({"name": "x", "features": {"nope": 1}}, 422, "body.features", "no column 'nope'"),
        ({"name": "x", "features": {"word 1": "red"}}, 422, "body.features", "must be a number; got 'red'"),
        ({"name": "x", "features": {"word 1": None}}, 422, "body.features", "must be a number"),
        ({"name": "x", "features": {}, "edges": ["x"]}, 422, "body.edges.0", "to itself"),
        (
            {"name": "x", "features": {}, "edges": [{"to": "n1", "weight": 2}]},
            422,
            "body.edges.0",
            "have no weight; leave it out",
        ),
        ({"name": "x", "features": {}, "edges": ["zoe"]}, 404, "body.edges.0", "'zoe'"),
        (
            {"nodes": [{"name": "x", "features": {}, "edges": ["n1", "zoe"]}]},
            404,
            "body.nodes.0.edges.1",
            "no node 'zoe'",
        ),
        ({"name": "n1", "features": {}}, 409, "body.name", "already exists"),
        ({"nodes": [{"name": "x", "features": {}}] * 2}, 422, "body.nodes.1.name", "twice"),
        ({"name": ""}, 422, "body.name", "at least 1 character"),
        ({"name": 2**63}, 422, "body.name", "less than or equal to 9223372036854775807"),
        ({"name": "x", "features": {"word 1": 1e39}}, 422, "body.features.word 1", "; got 1e+39"),
        ({"name": "x", "edges": [["n1"]]}, 422, "body.edges.0", ""),
        ({"name": "x", "colour": 1}, 422, "body.colour", "Extra inputs"),
        ({"nodes": []}, 422, "body.nodes", "at least 1 item"),
    ],
)
def test_what_breaks_a_rule_is_told_by_field_and_rule(shared_service, body, status, field, words):
    answer = shared_service.client.post("/v1/nodes", json=body)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert set(problem) == {"type", "title", "status", "detail", "field", "rule"}
    assert problem["status"] == status
    assert words in problem["detail"]
    assert problem["field"] == field
    assert problem["rule"]


def test_an_edge_to_nobody_is_told_by_its_end(shared_service):
    body = {"edges": [{"source": "n1", "target": "n5"}, {"source": "zoe", "target": "n1"}]}
    answer = shared_service.client.post("/v1/edges", json=body)
    assert answer.status_code == 404
    assert answer.json()["field"] == "body.edges.1.source"


def test_a_change_that_breaks_a_rule_changes_nothing(service):
    before = service.vectors()
    service.client.post("/v1/nodes", json={"name": "x", "features": {}, "edges": ["zoe"]})
    service.client.post("/v1/edges", json={"edges": [{"source": "n1", "target": "zoe"}]})
    after = service.vectors()
    assert before[:2] == after[:2]
    np.testing.assert_array_equal(before[2], after[2])


def test_names_of_any_text_are_reached(service):
    for name in ("a/b", "with space", "ünï", "100%", "n1/similar?"):
        service.add(name, ["n0"])
        assert service.get(f"/v1/nodes/{quote(name, safe='')}")["name"] == name
        assert service.get(f"/v1/nodes/{quote(name, safe='')}/similar")["name"] == name


@pytest.mark.parametrize("ending", ["similar", "profile", "role", "twins", "neighborhood", "explain/n0"])
def test_a_slash_behind_a_percent_sign_is_part_of_the_name(service, ending):
    name = f"site/{ending}"
    path = f"/v1/nodes/{quote(name, safe='')}"
    if service.client.get("/v1/nodes/site").status_code == 404:
        service.add("site", ["n1"])  # not to be taken for it
    vector = service.add(name, ["n0"])["nodes"][0]["vector"]
    node = service.get(path)
    assert (node["name"], node["vector"]) == (name, vector)
    assert service.get(f"{path}/similar")["name"] == name
    assert service.get(f"/v1/nodes/n0/explain/{quote(name, safe='')}")["b"]["name"] == name
    assert service.client.delete(path).status_code == 200
    assert service.client.get(path).json()["detail"] == f"no node '{name}'"


def test_a_number_and_its_text_are_not_two_nodes(service):
    service.add(7, ["n0"])
    before = service.get("/v1/nodes/7")
    for names in (["7"], ["8", 8], [9, "9"]):
        body = {"nodes": [{"name": name, "features": {}} for name in names]}
        answer = service.client.post("/v1/nodes", json=body)
        assert answer.status_code == 409
        assert "are the same in a path" in answer.json()["detail"]
        assert answer.json()["field"] == f"body.nodes.{len(names) - 1}.name"
    assert service.get("/v1/nodes/7") == before  # not that of another
    service.add("07", ["n0"])


@pytest.mark.parametrize(
    "path", ["/healthz", "/readyz", "/v1/nodes/n0", "/v1/nodes/n0/similar", "/", "/v1/nodes/zoe"]
)
def test_head_is_get_without_its_body(shared_service, path):
    got, head = shared_service.client.get(path), shared_service.client.head(path)
    assert head.status_code == got.status_code
    assert head.headers["content-type"] == got.headers["content-type"]
    assert head.headers["content-length"] == str(len(got.content))
    assert head.content == b""


def test_metrics_count_requests_and_changes(service):
    service.add("counted", ["n0"])
    text = service.client.get("/metrics").text
    assert 'spine_requests_total{method="POST",route="/v1/nodes",status="201"}' in text
    assert f"spine_changes_total {version(service)}.0" in text
    assert f"spine_nodes {service.get('/readyz')['nodes']}.0" in text


def test_the_openapi_document_lists_the_routes(shared_service):
    assert "/v1/nodes/{name}/similar" in shared_service.get("/openapi.json")["paths"]
    document = shared_service.get("/openapi.json")
    assert document["openapi"].startswith("3.")
    assert {"HypotheticalNode", "Neighborhood", "FoundNames"} <= set(document["components"]["schemas"])
    options = document["paths"]["/v1/nodes/{name}/neighborhood"]["get"]["parameters"]
    assert all(option.get("description") for option in options if option["in"] == "query")


def test_compacting_keeps_every_answer(service):
    for number in range(12):
        service.add(f"kept {number}", [f"n{number}", f"n{2 * number + 1}"])
    service.client.delete("/v1/nodes/n7")
    service.client.delete("/v1/nodes/kept 3")
    before = service.vectors()
    similar = service.get("/v1/nodes/kept 5/similar")
    compacted = service.client.post("/v1/compact", json=None, headers={"Content-Type": "application/json"})
    assert compacted.json()["version"] == before[0]
    assert compacted.json()["nodes"] == len(before[1])
    after = service.vectors()
    assert before[:2] == after[:2]
    np.testing.assert_array_equal(before[2], after[2])
    assert service.get("/v1/nodes/kept 5/similar") == similar


def test_a_store_may_be_opened_by_one_process_alone(service, model_folder):
    with pytest.raises(RuntimeError, match="another process is using it"):
        Running(model_folder, service.store).start()


def test_a_request_sent_again_with_its_key_is_stored_once(service):
    def send(method, path, key="k1", **given):
        return service.client.request(method, path, headers={"Idempotency-Key": key}, **given)

    body = {"name": "zoe", "edges": ["n1"], "features": {}}
    first, again = (send("POST", "/v1/nodes", json=body) for _ in range(2))
    assert first.status_code == again.status_code == 201, (first.text, again.text)
    version = first.json()["version"]
    assert again.json()["version"] == version
    assert first.json()["nodes"] == again.json()["nodes"]
    other = send("POST", "/v1/nodes", json={**body, "name": "other"})
    assert other.status_code == 422
    assert "another request" in other.json()["detail"]
    assert {send("DELETE", "/v1/nodes/zoe", "k2").status_code for _ in range(2)} == {200}
    gone = send("POST", "/v1/nodes", json=body).json()  # stored once, and removed since
    assert (gone["version"], gone["nodes"]) == (version + 1, [])
    edges = {"edges": [{"source": "n1", "target": "n50"}]}
    assert {send("POST", "/v1/edges", "k3", json=edges).json()["version"] for _ in range(2)} == {version + 2}
    query = {"source": "n1", "target": "n50"}
    assert {send("DELETE", "/v1/edges", "k4", params=query).json()["version"] for _ in range(2)} == {
        version + 3
    }
    assert service.client.delete("/v1/nodes/zoe").status_code == 404
