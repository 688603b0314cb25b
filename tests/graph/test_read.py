"""Reading files: what is understood, and that writing and reading a graph changes nothing."""

import csv
import gzip
import logging
import os
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from scipy import sparse

from spinegraph import read_graph
from spinegraph.errors import DirectedInputWarning, MissingFeaturesError, ParameterError, SpineWarning
from spinegraph.graph import edge_files
from spinegraph.graph.describe import fingerprint
from spinegraph.graph.edge_files import EdgeOptions, connection
from spinegraph.graph.encoder import FeatureEncoder
from spinegraph.graph.feature_files import read_features
from spinegraph.graph.read import read_contents
from strategies import assert_same_graph, dense_adjacency, dense_features, graphs

relaxed = settings(suppress_health_check=[HealthCheck.filter_too_much])


@contextmanager
def folder():
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


def listed(graph):
    """Edges by position, each once in a shuffled order and direction, with weights."""
    rows = np.repeat(np.arange(len(graph)), graph.degrees)
    once = rows < graph.indices
    edges = np.column_stack((rows[once], graph.indices[once]))
    weights = None if graph.weights is None else graph.weights[once]
    order = np.random.default_rng(0).permutation(len(edges))
    edges = edges[order]
    edges[::2] = edges[::2, ::-1]
    return edges, None if weights is None else weights[order]


def by_name(graph):
    """Return the graph with its nodes sorted, which is how a list of edges is read."""
    return graph.subgraph(sorted(graph.names.tolist()))


def is_plain(graph):
    """Return whether text can carry the names: no blank ones, nothing lost by trimming."""
    texts = [str(name).strip() for name in graph.names]
    return all(texts) and len(set(texts)) == len(texts) and graph.num_edges and min(graph.degrees) > 0


def trimmed(graph):
    names = graph.names
    return graph if names.dtype == np.int64 else graph.relabel([name.strip() for name in names])


class TestRoundTrips:
    @pytest.mark.parametrize("delimiter", [",", "\t", ";"])
    @relaxed
    @given(graph=graphs(min_nodes=2, features=False).filter(is_plain), packed=st.booleans())
    def test_a_delimited_list_gives_the_graph_back(self, delimiter, packed, graph):
        graph = trimmed(graph)
        edges, weights = listed(graph)
        with folder() as place:
            path = place / ("edges.txt" + ".gz" * packed)
            with (gzip.open if packed else open)(path, "wt", newline="", encoding="utf-8") as out:
                writer = csv.writer(out, delimiter=delimiter)
                writer.writerow(["source", "target"] + ["weight"] * (weights is not None))
                for row, (source, target) in enumerate(edges):
                    weight = [] if weights is None else [repr(float(weights[row]))]
                    writer.writerow([graph.names[source], graph.names[target], *weight])
            assert_same_graph(read_graph(path), by_name(graph))

    @relaxed
    @given(graph=graphs(min_nodes=2, features=False, names="ri").filter(is_plain), header=st.booleans())
    def test_a_white_space_list_gives_the_graph_back(self, graph, header):
        edges, weights = listed(graph)
        with folder() as place:
            lines = ["# made by a test", "from   to  weight" if weights is not None else "from to"][
                : 1 + header
            ]
            for row, (source, target) in enumerate(graph.names[edges]):
                lines.append(
                    f" {source}\t  {target} " + ("" if weights is None else repr(float(weights[row])))
                )
            (place / "edges.txt").write_text("\r\n\r\n".join(lines))
            assert_same_graph(read_graph(place / "edges.txt"), by_name(graph))

    @relaxed
    @given(graph=graphs(min_nodes=2, features=False).filter(is_plain))
    def test_parquet_gives_the_graph_back(self, graph):
        graph = trimmed(graph)
        edges, weights = listed(graph)
        columns = {"src": pa.array(graph.names[edges[:, 0]]), "dst": pa.array(graph.names[edges[:, 1]])}
        if weights is not None:
            columns["weight"] = pa.array(weights)
        with folder() as place:
            parquet.write_table(pa.table(columns), place / "edges.parquet")
            assert_same_graph(read_graph(place / "edges.parquet"), by_name(graph))

    @relaxed
    @given(graph=graphs(), compress=st.booleans())
    def test_npz_gives_the_graph_back_with_isolated_nodes_and_features(self, graph, compress):
        edges, weights = listed(graph)
        arrays = {"edges": edges, "num_nodes": np.int64(len(graph)), "names": graph.names}
        if graph.names.dtype == object:
            arrays["names"] = graph.names.astype(str)
        if weights is not None:
            arrays["weights"] = weights
        if graph.feature_names is not None:
            arrays["feature_names"] = np.array(graph.feature_names)
        if isinstance(graph.features, np.ndarray):
            arrays["features"] = graph.features
        elif graph.features is not None:
            parts = graph.features
            arrays |= {"feat_data": parts.data, "feat_indices": parts.indices, "feat_indptr": parts.indptr}
            arrays["feat_shape"] = np.array(parts.shape)
        with folder() as place:
            (np.savez_compressed if compress else np.savez)(place / "g.npz", **arrays)
            assert_same_graph(read_graph(place / "g.npz"), graph)

    @pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
    @relaxed
    @given(graph=graphs(features=False, names="r"))
    def test_a_saved_scipy_matrix_gives_the_graph_back(self, kind, graph):
        matrix = sparse.csr_array(dense_adjacency(graph)).asformat(kind)
        with folder() as place:
            sparse.save_npz(place / "a.npz", matrix)
            found = read_graph(place / "a.npz", weighted=graph.weights is not None)
        assert_same_graph(found, graph)

    @relaxed
    @given(graph=graphs(min_nodes=2, features=False).filter(lambda graph: graph.num_edges))
    def test_graphml_from_networkx_gives_the_graph_back(self, graph):
        networkx = pytest.importorskip("networkx")
        edges, weights = listed(graph)
        made = networkx.Graph()
        made.add_nodes_from(graph.names.tolist())
        for row, (source, target) in enumerate(graph.names[edges].tolist()):
            made.add_edge(source, target, **({} if weights is None else {"weight": float(weights[row])}))
        with folder() as place:
            networkx.write_graphml(made, place / "g.graphml")
            assert_same_graph(read_graph(place / "g.graphml"), graph)

    @pytest.mark.parametrize("kind", ["npz", "csv", "tsv", "csv.gz", "parquet"])
    @relaxed
    @given(graph=graphs(min_nodes=2, weighted=False, features=True, feature_kinds="d").filter(is_plain))
    def test_features_are_joined_by_name_whatever_their_order(self, kind, graph):
        graph = trimmed(graph)
        edges, _ = listed(graph)
        order = np.random.default_rng(1).permutation(len(graph))
        columns = [f"c{place}" for place in range(graph.features.shape[1])]
        with folder() as place:
            table = {"source": graph.names[edges[:, 0]], "target": graph.names[edges[:, 1]]}
            parquet.write_table(
                pa.table({key: pa.array(value) for key, value in table.items()}), place / "e.parquet"
            )
            path = place / f"features.{kind}"
            write_features(path, graph.names[order], graph.features[order], columns)
            found = read_graph(place / "e.parquet", path)
        expected = by_name(graph)
        assert_same_graph(found, expected, feature_names=False)
        assert found.feature_names == tuple(columns)


def write_features(path, names, matrix, columns):
    if path.suffix == ".npz":
        texts = names if names.dtype == np.int64 else names.astype(str)
        np.savez(path, names=texts, features=matrix, feature_names=np.array(columns))
    elif path.suffix == ".parquet":
        table = {"node": pa.array(names)} | {c: pa.array(matrix[:, i]) for i, c in enumerate(columns)}
        parquet.write_table(pa.table(table), path)
    else:
        with (gzip.open if path.suffix == ".gz" else open)(path, "wt", newline="", encoding="utf-8") as out:
            writer = csv.writer(out, delimiter="\t" if path.suffix == ".tsv" else ",")
            writer.writerow(["node", *columns])
            for name, row in zip(names, matrix, strict=True):
                writer.writerow([name, *(repr(float(value)) for value in row)])


class TestWhatIsUnderstood:
    def test_integer_names_are_sorted_and_kept(self, file):
        graph = read_graph(file("30,10\n10,20\n"))
        assert graph.names.tolist() == [10, 20, 30]
        assert graph.names.dtype == np.int64

    def test_ids_from_zero_are_their_own_positions(self, file):
        assert read_graph(file("2 1\n1 0\n", "edges.txt")).names.tolist() == [0, 1, 2]

    def test_ids_far_apart_cost_no_table_of_ids(self, file):
        graph = read_graph(file("9000000000000000000,5\n5,-9000000000000000000\n"))
        assert graph.names.tolist() == [-9000000000000000000, 5, 9000000000000000000]

    def test_names_that_share_a_hash_are_hashed_in_another_way(self, file, monkeypatch):
        once = edge_files._hashed
        first = "hash(left({}, 1))"  # collides

        def hashed(value, salt):
            return once(value, salt) if salt else first.format(value)

        monkeypatch.setattr(edge_files, "_hashed", hashed)
        graph = read_graph(file('"an","bo"\n"ann","an"\n"bo","ann"\n'), header=False)
        assert graph.names.tolist() == ["an", "ann", "bo"]
        assert graph.num_edges == 3

    def test_names_with_leading_zeros_stay_apart(self, file):
        assert read_graph(file("007,7\n7,0x1f\n")).names.tolist() == ["007", "0x1f", "7"]

    @pytest.mark.parametrize("padded", ["007", "-007", "0x1f", "+7", "-0"])
    def test_a_padded_name_far_down_makes_all_names_text_too(self, file, padded):
        lines = "".join(f"{i},{i + 1}\n" for i in range(1500))
        assert padded in read_graph(file(f"{lines}{padded},5\n")).names.tolist()

    def test_a_padded_number_in_another_column_changes_no_names(self, file):
        graph = read_graph(file("source,target,time\n1,2,09:30\n2,3,0815\n"))
        assert graph.names.tolist() == [1, 2, 3]

    def test_one_text_name_far_down_makes_all_names_text(self, file):
        lines = "".join(f"{i},{i + 1}\n" for i in range(5000))
        names = read_graph(file(lines + "x,1\n")).names
        assert names.dtype == object
        assert {"x", "4999"} <= set(names)

    def test_a_padded_name_far_down_makes_all_names_text(self, file):
        lines = "".join(f"{i},{i + 1}\n" for i in range(5000))
        assert {"01", "1"} <= set(read_graph(file(lines + "01,1\n")).names)

    def test_the_same_lines_in_any_order_give_the_same_graph(self, file):
        lines = ["a,b", "c,a", "b,d", "z,a"]
        first = read_graph(file("\n".join(lines), "one.csv"))
        assert_same_graph(read_graph(file("\n".join(reversed(lines)), "two.csv")), first)

    @pytest.mark.parametrize(
        "head",
        ["source,target", "Source,Target", "src,dst", "from,to", "FromNodeId,ToNodeId", "person,friend"],
    )
    def test_a_header_is_no_edge(self, file, head):
        assert read_graph(file(f"{head}\n1,2\n2,3\n")).names.tolist() == [1, 2, 3]

    def test_names_that_look_like_titles_are_names(self, file):
        assert len(read_graph(file("node1,node2\nnode2,node3\n"))) == 3
        assert len(read_graph(file("u,v\nv,w\n"))) == 3

    def test_header_can_be_said(self, file):
        path = file("person,friend\nann,bob\n")
        assert len(read_graph(path, header=False)) == 4
        assert read_graph(path, header=True).names.tolist() == ["ann", "bob"]

    def test_endpoints_are_found_by_title(self, file):
        graph = read_graph(file("id,weight,target,source\n0,2.5,b,a\n1,1,c,b\n"))
        assert graph.names.tolist() == ["a", "b", "c"]
        assert graph.weights.tolist() == [2.5, 2.5, 1, 1]

    def test_columns_can_be_said_by_title_or_position(self, file):
        path = file("when,who,whom,times\n1,a,b,2\n2,b,c,3\n")
        for source, target, weight in (("who", "whom", "times"), (1, 2, 3)):
            graph = read_graph(path, source=source, target=target, weight=weight)
            assert (graph.names.tolist(), graph.weights.tolist()) == (["a", "b", "c"], [2, 2, 3, 3])
        assert read_graph(path, source="who", target="whom", weighted=False).weights is None

    def test_a_third_column_of_numbers_is_weights_and_it_says_so(self, file, caplog):
        with caplog.at_level(logging.INFO, "spinegraph"):
            graph = read_graph(file("1 2 0.5\n2 3 4\n", "edges.txt"))
        assert graph.weights.tolist() == [0.5, 0.5, 4, 4]
        assert "taken as weights" in caplog.text
        assert read_graph(file("1 2 0.5\n2 3 4\n", "edges.txt"), weighted=False).weights is None

    def test_a_titled_third_column_is_weights_only_when_it_says_so(self, file):
        path = file("source,target,year\n1,2,1999\n2,3,2001\n")
        assert read_graph(path).weights is None
        assert read_graph(path, weighted=True).weights.tolist() == [1999, 1999, 2001, 2001]

    def test_networkx_edge_lists_with_empty_data_are_read(self, file):
        assert read_graph(file("0 1 {}\n1 2 {}\n", "edges.edgelist")).num_edges == 2

    def test_comments_blank_lines_and_a_byte_order_mark_are_skipped(self, file):
        graph = read_graph(file("\ufeff# one\n\n  % two\na,b\n   \n#three,four\nb,c\n"))
        assert graph.names.tolist() == ["a", "b", "c"]
        assert len(read_graph(file("#a,#b\n#b,#c\n"), comments=())) == 3

    def test_quoted_names_keep_their_commas(self, file):
        assert read_graph(file('"Lee, Ann",bob\n')).names.tolist() == ["Lee, Ann", "bob"]

    def test_white_space_around_names_is_not_part_of_them(self, file):
        assert read_graph(file("ann , bob\nbob,ann\n")).names.tolist() == ["ann", "bob"]

    def test_old_line_ends_are_line_ends(self, file):
        for end in ("\n", "\r\n", "\r"):
            assert read_graph(file(f"a,b{end}b,c{end}")).num_edges == 2

    def test_num_nodes_adds_isolated_nodes(self, file):
        graph = read_graph(file("0,1\n"), num_nodes=4)
        assert graph.names.tolist() == [0, 1, 2, 3]
        assert graph.degrees.tolist() == [1, 1, 0, 0]

    def test_text_can_be_asked_for(self, file):
        assert read_graph(file("1,2\n"), names="text").names.tolist() == ["1", "2"]

    def test_a_file_is_known_by_its_bytes_not_by_its_name(self, tmp_path):
        parquet.write_table(pa.table({"source": [1], "target": [2]}), tmp_path / "edges.csv")
        assert read_graph(tmp_path / "edges.csv").names.tolist() == [1, 2]
        packed = tmp_path / "packed"
        packed.write_bytes(gzip.compress((tmp_path / "edges.csv").read_bytes()))
        assert read_graph(packed).names.tolist() == [1, 2]

    def test_blocks_join_without_a_seam(self, file, monkeypatch):
        monkeypatch.setattr("spinegraph.graph.edge_files.BLOCK", 64)
        lines = [f"node{i},node{i + 1},{i}.5" for i in range(200)]
        graph = read_graph(file("source,target,weight\n" + "\n".join(lines)))
        assert (len(graph), graph.num_edges) == (201, 200)
        assert graph.weights.sum() == 2 * sum(i + 0.5 for i in range(200))
        integers = read_graph(file("\n".join(f"{i}\t{i + 1}" for i in range(500)), "edges.tsv"))
        assert (len(integers), integers.num_edges) == (501, 500)

    def test_parquet_of_integers_and_text_names_nodes_by_text(self, tmp_path):
        parquet.write_table(pa.table({"user": [1, 2], "item": ["x", "y"]}), tmp_path / "e.parquet")
        assert read_graph(tmp_path / "e.parquet").names.tolist() == ["1", "2", "x", "y"]

    def test_parquet_dictionary_columns_are_text(self, tmp_path):
        column = pa.array(["a", "b"]).dictionary_encode()
        parquet.write_table(
            pa.table({"source": column, "target": pa.array(["b", "c"])}), tmp_path / "e.parquet"
        )
        assert read_graph(tmp_path / "e.parquet").names.tolist() == ["a", "b", "c"]

    def test_directed_graphml_is_made_symmetric_and_says_so(self, file):
        text = (
            '<?xml version="1.0"?><graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
            '<key id="w" for="edge" attr.name="weight" attr.type="double"><default>2</default></key>'
            '<graph edgedefault="directed"><node id="n0"/><node id="n1"/>'
            '<edge source="n0" target="n1"/></graph></graphml>'
        )
        with pytest.warns(DirectedInputWarning):
            graph = read_graph(file(text, "g.graphml"))
        assert graph.weights.tolist() == [2, 2]

    def test_wrong_options_are_refused(self, file):
        path = file("a,b\n")
        for wrong in (
            {"source": "x", "target": "y"},
            {"target": 5},
            {"source": 0, "target": 0},
            {"weight": 1, "weighted": False},
            {"query": "select 1 as a, 2 as b"},
            {"database": "bank.duckdb"},
            {"delimiter": ""},
            {"delimiter": "é"},
            {"delimiter": '"'},
            {"names": "number"},
            {"comments": "#"},
            {"num_nodes": 0},
            {"num_nodes": 3, "names": "text"},
        ):
            with pytest.raises(ParameterError):
                read_graph(path, **wrong)


class TestFeatures:
    def test_a_bare_matrix_says_how_many_nodes_there_are(self, file, tmp_path):
        np.save(tmp_path / "x.npy", np.arange(8).reshape(4, 2))
        graph = read_graph(file("0,2\n2,3\n"), tmp_path / "x.npy")
        assert graph.names.tolist() == [0, 1, 2, 3]
        assert graph.degrees.tolist() == [1, 0, 2, 1]
        assert graph.features.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]

    def test_a_sparse_matrix_stays_sparse(self, file, tmp_path):
        sparse.save_npz(tmp_path / "x.npz", sparse.eye_array(3, format="csc"))
        graph = read_graph(file("0,2\n"), tmp_path / "x.npz")
        assert sparse.issparse(graph.features)
        assert dense_features(graph.features).tolist() == np.eye(3).tolist()

    def test_a_table_of_mixed_columns_is_encoded(self, file):
        people = file("node,team,age\nann,north,31\nbob,south,45\n", "people.csv")
        graph = read_graph(file("ann,bob\n"), people)
        assert graph.feature_names == ("team = north", "team = south", "age")

    def test_an_encoder_is_fitted_once_and_used_again(self, file):
        encoder = FeatureEncoder()
        people = file("node,team\nann,north\nbob,south\n", "people.csv")
        read_graph(file("ann,bob\n"), people, encoder=encoder)
        others = file("node,team\nann,south\nbob,south\n", "others.csv")
        graph = read_graph(file("ann,bob\n"), others, encoder=encoder)
        assert dense_features(graph.features).tolist() == [[0, 1], [0, 1]]

    def test_gaps_among_numbers_go_through_an_encoder_when_asked(self, file):
        people = file("node,age\nann,31\nbob,\n", "people.csv")
        graph = read_graph(file("ann,bob\n"), people, encoder=FeatureEncoder())
        assert graph.feature_names == ("age", "age is missing")

    def test_rows_of_other_people_become_isolated_nodes(self, file):
        people = file("node,age\nann,31\nbob,45\ncy,22\n", "people.csv")
        with pytest.warns(SpineWarning, match="1 of 3 rows match no node of the edges and become isolated"):
            graph = read_graph(file("ann,bob\n"), people)
        assert graph.names.tolist() == ["ann", "bob", "cy"]
        assert graph.degrees.tolist() == [1, 1, 0]
        assert graph.features.ravel().tolist() == [31, 45, 22]

    @pytest.mark.parametrize(
        "rows", ["ann,31,north\nbob,45,south\n", "ann,31,\nbob,45,2\n", "ann,31,NA\nbob,45,2\n"]
    )
    def test_a_first_row_with_a_number_in_it_is_no_titles(self, file, rows):
        graph = read_graph(file("ann,bob\n"), file(rows, "people.csv"), encoder=FeatureEncoder())
        assert graph.has_features, "nobody's row was taken for titles"

    @pytest.mark.parametrize(
        "rows",
        [
            "who,2020,age\nann,1,31\nbob,2,45\n",
            "who,2020,age\nann,1,31\nbob,2,\n",
            "who,team\nann,n\nbob,s\n",
        ],
    )
    def test_words_above_numbers_and_words_alone_are_titles(self, file, rows):
        titles = read_features(file(rows, "people.csv")).feature_names
        assert titles in (("2020", "age"), ("team",))

    def test_one_name_that_is_no_number_does_not_part_the_others_from_their_nodes(self, file):
        people = file("id,age\n1,31\n2,45\ntotal,76\n", "people.csv")
        with pytest.warns(SpineWarning, match="1 of 3 rows match no node .* 'total'"):
            graph = read_graph(file("1,2\n"), people)
        assert graph.names.tolist() == [1, 2, "total"]
        assert graph.features.ravel().tolist() == [31, 45, 76]

    @pytest.mark.slow
    def test_many_isolated_nodes_of_text_take_no_quadratic_time(self, file):
        people = file("node,x\n" + "".join(f"n{i},1\n" for i in range(60_000)), "people.csv")
        start = time.process_time()
        with pytest.warns(SpineWarning):
            graph = read_graph(file("".join(f"n{i},n{i + 1}\n" for i in range(30_000))), people)
        assert len(graph) == 60_000
        assert time.process_time() - start < 10  # comparing all with all took 30 s and more

    def test_missing_rows_are_gaps(self, file, tmp_path):
        people = file("node,age\nann,31\ncy,35\n", "people.csv")
        with pytest.warns(SpineWarning, match="1 of 3 nodes have no row and get gaps: 'bob'"):
            graph = read_graph(file("ann,bob\nbob,cy\n"), people)
        features = dict(zip(graph.feature_names, dense_features(graph.features).T.tolist(), strict=True))
        assert features["age is missing"] == [0, 1, 0]
        assert features["age"][1] == pytest.approx(0, abs=1e-6), "the mean, standardised"
        np.savez(tmp_path / "x.npz", names=np.array(["ann", "cy"]), features=np.array([[1.0], [3.0]]))
        with pytest.warns(SpineWarning, match="1 of 3 nodes"):
            graph = read_graph(file("ann,bob\nbob,cy\n"), tmp_path / "x.npz")
        assert graph.features.ravel().tolist() == [1, 2, 3]

    def test_a_table_of_other_names_is_an_error(self, file):
        with pytest.raises(
            MissingFeaturesError, match=r"none of its 1 names is a node of the edges; .*node_column"
        ):
            read_graph(file("ann,bob\n"), file("node,age\nzoe,31\n", "people.csv"))

    def test_integer_names_meet_text_names(self, file, tmp_path):
        people = file("id,age\n2,31\n1,45\n", "people.csv")
        assert read_graph(file("1,2\n"), people).features.ravel().tolist() == [45, 31]
        assert read_graph(file("1,2\n2,x\n"), file("id,a\n1,1\n2,2\nx,3\n", "x.csv")).features.shape == (3, 1)
        parquet.write_table(pa.table({"id": [1, 2], "a": [5, 6]}), tmp_path / "x.parquet")
        with pytest.warns(SpineWarning, match="1 of 3 nodes have no row and get gaps: '01'"):
            graph = read_graph(file("01,1\n01,2\n"), tmp_path / "x.parquet")
        assert graph.names.tolist() == ["01", "1", "2"]

    def test_names_kept_as_a_dictionary_are_text(self, file, tmp_path):
        names = pa.array(["bob", "ann"]).dictionary_encode()
        parquet.write_table(pa.table({"node": names, "x": [1, 2]}), tmp_path / "x.parquet")
        assert read_graph(file("ann,bob\n"), tmp_path / "x.parquet").features.ravel().tolist() == [2, 1]

    def test_the_column_of_names_can_be_said(self, file):
        people = file("age,login,name\n31,ann,Ann Lee\n45,bob,Bob Ray\n", "people.csv")
        graph = read_graph(
            file("ann,bob\n"), people, node_column="login", encoder=FeatureEncoder({"name": "ignore"})
        )
        assert graph.feature_names == ("age",)

    def test_a_table_without_titles_has_names_first(self, file):
        graph = read_graph(file("ann bob\n", "e.txt"), file("ann 1 2\nbob 3 4\n", "x.txt"))
        assert graph.features.tolist() == [[1, 2], [3, 4]]
        assert graph.feature_names is None

    def test_pandas_writes_tables_that_are_read(self, file, tmp_path):
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame(np.arange(4.0).reshape(2, 2), index=["ann", "bob"])
        frame.to_csv(tmp_path / "x.csv")
        graph = read_graph(file("ann,bob\n"), tmp_path / "x.csv")
        assert graph.features.tolist() == [[0, 1], [2, 3]]
        assert graph.feature_names == ("0", "1")

    def test_words_that_stand_for_gaps_may_be_names(self, file):
        people = file("country,size\nNA,1\nnull,2\n", "c.csv")
        assert read_graph(file("NA,null\n"), people).features.ravel().tolist() == [1, 2]

    def test_graphml_attributes_are_features_when_asked(self, file):
        text = (
            '<graphml><key id="d0" for="node" attr.name="age" attr.type="int"/>'
            '<graph edgedefault="undirected">'
            '<node id="a"><data key="d0">31</data></node><node id="b"><data key="d0">45</data></node>'
            '<edge source="a" target="b"/></graph></graphml>'
        )
        path = file(text, "g.graphml")
        assert read_graph(path).features is None
        assert "to read node attributes" in read_contents(path).notes[0]
        graph = read_graph(path, path)
        assert (graph.features.ravel().tolist(), graph.feature_names) == ([31, 45], ("age",))


def test_what_was_detected_is_noted(file):
    contents = read_contents(file("source,target\na,b\n"), EdgeOptions())
    assert "commas" in contents.notes[0]
    assert "a header" in contents.notes[0]


@pytest.mark.data
@pytest.mark.parametrize("name", ["cora", "citeseer", "airports_brazil", "fb686"])
def test_the_real_networks_are_read_as_their_loader_reads_them(name):
    data = os.environ.get("SPINEGRAPH_DATA", "")
    if not Path(data, f"{name}.npz").is_file():
        pytest.skip("SPINEGRAPH_DATA names no folder with the real networks")
    from spinegraph.graph.datasets import load

    assert_same_graph(read_graph(Path(data, f"{name}.npz")), load(name, data).graph)


@pytest.mark.parametrize("packed", [False, True])
def test_parquet_is_read_by_arrow_itself(tmp_path, monkeypatch, packed):
    """Arrow's threads may drop a file after Python has ended: dropping one of Python's own aborts."""
    path, opened = tmp_path / "edges.parquet", []
    parquet.write_table(pa.table({"source": ["ann"], "target": ["bob"]}), path)
    if packed:
        path.write_bytes(gzip.compress(path.read_bytes()))
    original = parquet.ParquetFile
    monkeypatch.setattr(parquet, "ParquetFile", lambda source: opened.append(source) or original(source))
    assert read_graph(path).names.tolist() == ["ann", "bob"]
    assert opened
    assert all(isinstance(source, pa.NativeFile) for source in opened)
    assert not any(isinstance(source, pa.PythonFile) for source in opened)
    assert all(source.closed for source in opened)


FROM_STDIN = "import spinegraph; print(spinegraph.read_graph('-', '-' if {features} else None).{what})"


def read_from_stdin(data, what, features=False):
    code = FROM_STDIN.format(what=what, features=features)
    return subprocess.run([sys.executable, "-c", code], input=data, capture_output=True, timeout=120)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_text_is_read_from_a_pipe(pack):
    run = read_from_stdin(pack(b"ann,bob\nbob,cy\n"), "names.tolist()")
    assert (run.returncode, run.stdout) == (0, b"['ann', 'bob', 'cy']\n")


def test_an_archive_gives_edges_and_features(tmp_path):
    np.savez(tmp_path / "g.npz", edges=[[0, 1]], num_nodes=3, features=np.eye(3))
    run = read_from_stdin((tmp_path / "g.npz").read_bytes(), "features.shape", features=True)
    assert (run.returncode, run.stdout) == (0, b"(3, 3)\n")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (b"node,x\n0,1\n1,2,3\n", b"standard input:3: expected 2 fields as on the first line, got 3"),
        (b"node,x\n0,1\n1,inf\n", b"standard input:3: column 'x': the value inf is not a finite"),
    ],
)
def test_a_bad_row_of_features_from_a_pipe_is_named(tmp_path, rows, message):
    (tmp_path / "edges.csv").write_text("0,1\n")
    code = f"import spinegraph; spinegraph.read_graph({str(tmp_path / 'edges.csv')!r}, '-')"
    run = subprocess.run([sys.executable, "-c", code], input=rows, capture_output=True, timeout=120)
    assert message in run.stderr


@pytest.mark.parametrize(
    ("data", "message"),
    [(b"", b"standard input: is empty"), (b"a\n", b"standard input:1: expected 'source target'")],
)
def test_errors_name_the_standard_input(data, message):
    run = read_from_stdin(data, "names")
    assert run.returncode == 1
    assert message in run.stderr


def test_a_query_that_takes_long_draws_nothing_on_the_standard_output():
    with connection() as (database, _):
        assert database.sql("SELECT current_setting('enable_progress_bar')").fetchall() == [(False,)]


@pytest.mark.parametrize("block", [8, 16, 24, 28, 2**22])
def test_a_quoted_text_over_several_lines_is_whole_wherever_a_block_ends(tmp_path, monkeypatch, block):
    monkeypatch.setattr("spinegraph.graph.edge_files.BLOCK", block)
    path = tmp_path / "edges.csv"
    path.write_text('source,target,about\na,b,"one\n\n# two\n# three"\n\n# a comment\nc,d,four\n')
    graph = read_graph(path)
    assert graph.names.tolist() == ["a", "b", "c", "d"]
    assert graph.num_edges == 2


@pytest.mark.parametrize(
    "text",
    [
        "ann,bob\nbob,cy\n",
        " ann , bob\nbob ,cy\n",
        "ann,bob,2\nbob,cy,+1.5\ncy,ann, 3\n",
        "ann bob\nbob  cy\n",
        "x1,x2\n007,7\n7,+7\n",
        "source,target\n 1,2\n2,3\n",
        "é,ß\nß,zoë\n",
    ],
)
def test_a_small_text_is_read_as_a_large_one_is(tmp_path, monkeypatch, text):
    path = tmp_path / "edges.csv"
    path.write_text(text, encoding="utf-8")
    small = read_graph(path)
    monkeypatch.setattr("spinegraph.graph.edge_files.SMALL", 0)
    assert fingerprint(small) == fingerprint(read_graph(path))
