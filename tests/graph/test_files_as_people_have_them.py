"""Files as people have them, each right at the first reading."""

import ast
import gzip
import re
import shlex
import time
import warnings

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from spinegraph import FeatureEncoder, Graph, read_graph
from spinegraph.errors import GraphFormatError, MissingFeaturesError, SpineWarning, UnfamiliarDataWarning
from spinegraph.graph.feature_files import name_column

HEADERS = [
    *("person,friend", "payer,payee", "city,twin", "source,target", "from,to", "sender,receiver"),
    *("author,coauthor", "Follower,Followee", "src,dst", "employee,manager", "user,item", "company,supplier"),
]


def quietly(*arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpineWarning)
        return read_graph(*arguments, **options)


@pytest.mark.parametrize("head", HEADERS)
def test_a_header_is_no_pair_of_nodes(file, head):
    assert quietly(file(f"{head}\nann,bob\nbob,cy\n")).names.tolist() == ["ann", "bob", "cy"]


def test_a_guessed_header_is_told(file):
    with pytest.warns(
        SpineWarning, match=r"first line read as a header \(person, friend\); pass header=False"
    ):
        read_graph(file("person,friend\nann,bob\nbob,cy\n"))


def test_words_that_come_again_far_down_are_nodes(file):
    lines = "".join(f"p{i},q{i}\n" for i in range(3000))
    assert "ann" in read_graph(file(f"ann,bob\n{lines}bob,cy\n")).names.tolist()


PEOPLE = ["Ann Lee", "Bo Ray", "Cy Fox"]
UNDERSTOOD = {
    "extra columns": ("from,to,note,colour\na,b,x,red\nb,c,y,blue\n", ["a", "b", "c"], None),
    "weights": ("source,target,weight\na,b,2\nb,c,3\n", ["a", "b", "c"], [2, 2, 3, 3]),
    "amounts": ("payer,payee,amount\na,b,2\nb,c,3\n", ["a", "b", "c"], [2, 2, 3, 3]),
    "amounts below 0": ("payer,payee,amount\na,b,-2\nb,c,3\n", ["a", "b", "c"], None),
    "time stamps": ("1 2 1082040961\n2 3 1082155839\n", [1, 2, 3], None),
    "dates": ("who,whom,when\na,b,2020-01-01\nb,c,2020-02-01\n", ["a", "b", "c"], None),
    "ratings": ("6,2,4,1289241911\n2,1,-5,1289241941\n", [1, 2, 6], None),
    "ratings of three columns": ("0 1 -1\n1 2 1\n", [0, 1, 2], None),
    "quotes": ('source,target\n"Lee, Ann","O""Hara"\n', ["Lee, Ann", 'O"Hara'], None),
    "semicolons": ("von;nach\n1;2\n2;3\n", [1, 2, 3], None),
    "byte order mark": ("\ufefffrom,to\na,b\n", ["a", "b"], None),
    "line ends of Windows": ("from,to\r\na,b\r\nb,c\r\n", ["a", "b", "c"], None),
    "comments": ("# a note\n% another\n1 2\n# between\n2 3\n", [1, 2, 3], None),
    "no header": ("ann,bob\nbob,cy\n", ["ann", "bob", "cy"], None),
    "leading zeros": ("007,7\n7,008\n", ["007", "008", "7"], None),
    "mixed names": ("1,x\nx,2\n", ["1", "2", "x"], None),
    "two modes": ("user,item\nann,apples\nbob,pears\nann,pears\n", ["ann", "apples", "bob", "pears"], None),
    "white space": ("a   b\nb \t c\n", ["a", "b", "c"], None),
    "Excel's first line": ("sep=;\npayer;payee;amount\na;b;2\nb;c;3\n", ["a", "b", "c"], [2, 2, 3, 3]),
    "decimal commas": ("payer;payee;amount\na;b;2,5\nb;c;3\n", ["a", "b", "c"], [2.5, 2.5, 3, 3]),
    "decimal commas, no header": ("ann;bob;2,5\nbob;cy;3,5\n", ["ann", "bob", "cy"], [2.5, 2.5, 3.5, 3.5]),
    "bars": ("source|target|weight\na|b|2\nb|c|3\n", ["a", "b", "c"], [2, 2, 3, 3]),
    "bars in names": ("sp|P1|A sp|P2|B\nsp|P2|B sp|P3|C\n", ["sp|P1|A", "sp|P2|B", "sp|P3|C"], None),
    "spaces in names, a BOM": ("\ufeffFrom;To\nAnn Lee;Bo Ray\nBo Ray;Cy Fox\n", PEOPLE, None),
    "blanks behind commas": ('source, target\n"Ann Lee", "Bo Ray"\nBo Ray, Cy Fox\n', PEOPLE, None),
    "commas at the end": ("from,to,\nAnn Lee,Bo Ray,\nBo Ray,Cy Fox,\n", PEOPLE, None),
    "empty cells": ("source\ttarget\tweight\tnote\na\tb\t2\t\nb\tc\t3\t\n", ["a", "b", "c"], [2, 2, 3, 3]),
    "a column of row numbers": (",source,target\n0,a,b\n1,b,c\n", ["a", "b", "c"], None),
    "line ends of old Macs": ("from,to\ra,b\rb,c\r", ["a", "b", "c"], None),
    "amounts with signs": ("payer,payee,amount\na,b,$2\nb,c,$3\n", ["a", "b", "c"], [2, 2, 3, 3]),
    "amounts with thousands": (
        'payer,payee,amount\na,b,"4,512.50"\nb,c,12\n',
        ["a", "b", "c"],
        [4512.5, 4512.5, 12, 12],
    ),
    "amounts as Germans write them": (
        "a;b;weight\na;b;1.234,50\nb;c;7\n",
        ["a", "b", "c"],
        [1234.5, 1234.5, 7, 7],
    ),
    "a date before accounts": ("date,from_acct,to_acct\n2024-01-01,7,8\n2024-01-02,8,9\n", [7, 8, 9], None),
    "a number before names": ("txn,Sender Name,Receiver Name\n7,a,b\n8,b,c\n", ["a", "b", "c"], None),
    "a day before other titles": ("day,boss,report\n02.01.2024,a,b\n03.01.2024,b,c\n", ["a", "b", "c"], None),
    "addresses are no dates": ("ip1,ip2,n\n10.0.0.1,10.0.0.2,4\n", ["10.0.0.1", "10.0.0.2"], None),
    "row numbers of pandas": (",boss,report,since\n0,a,b,3\n1,b,c,4\n", ["a", "b", "c"], None),
    "whole floats": ("from,to\n1.0,2.0\n2.0,3.0\n", [1, 2, 3], None),
    "quoted text over lines": ('from,to,text\na,b,"one\n\n# two"\nb,c,x\n', ["a", "b", "c"], None),
}


@pytest.mark.parametrize("kind", UNDERSTOOD)
def test_a_file_is_understood(file, kind):
    text, names, weights = UNDERSTOOD[kind]
    graph = quietly(file(text, "edges.txt"))
    assert graph.names.tolist() == names
    assert weights == (None if graph.weights is None else graph.weights.tolist())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name\nann\nbob\n", ":1: expected 'source target', got 1 field"),
        ("from,to,count\na,b,1\nb,c,2\nTotal,,3\n", ":4: the target is empty; .*: 'Total,,3'"),
        ("Report of 2024,,\npayer,payee,amount\na,b,1\n", ":1: the target is empty"),
        ("source\ttarget\tweight\na\tb\t\nb\tc\t2\n", ":2: the weight '' is not a number"),
        ("payer;payee;amount\na;b;2,5\nb;c;-3,5\nc;a;1\n", None),
    ],
)
def test_a_file_that_is_not_understood_is_an_error_of_its_line(file, text, message):
    if message is None:
        assert quietly(file(text)).weights is None
        return
    with pytest.raises(GraphFormatError, match=message):
        quietly(file(text))


def test_repeats_and_self_loops_are_counted(file):
    with pytest.warns(SpineWarning, match="1 self-loop"):
        graph = read_graph(file("a,b\na,b\nb,a\nc,c\n"))
    assert (graph.num_edges, graph.report.repeated, graph.report.reciprocal) == (1, 1, 1)


def test_people_with_gaps_text_and_dates_are_joined(file):
    people = file(
        'name,age,about,joined\nann,31,likes graphs,2020-01-02\nbob,,"tea, and\nmaps",2021-03-04\n'
        "zoe,50,likes tea,\n",
        "people.csv",
    )
    with pytest.warns(SpineWarning) as told:
        graph = read_graph(file("ann,bob\nbob,cy\n"), people)
    assert graph.names.tolist() == ["ann", "bob", "cy", "zoe"]
    assert graph.degrees.tolist() == [1, 2, 1, 0]
    said = " ".join(str(warning.message) for warning in told)
    assert "1 of 3 rows match no node" in said
    assert "1 of 4 nodes have no row" in said
    assert "age is missing" in graph.feature_names


def test_decimal_commas_of_people_are_numbers(file):
    people = file("name;income;about\nann;1,5;tea, maps\nbob;2;graphs\n", "people.csv")
    graph = read_graph(
        file("ann,bob\n"), people, encoder=FeatureEncoder({"about": "ignore", "income": "raw"})
    )
    assert graph.features.toarray().tolist() == [[1.5], [2.0]]
    small = file("name;share\nann;0,5\nbob;2,5e-4\n", "shares.csv")  # as R writes it
    assert read_graph(file("ann,bob\n"), small).features.tolist() == [[0.5], [np.float32(2.5e-4)]]


def test_packed_files_parquet_and_json_lines_are_read(tmp_path):
    rows = {"source": ["a", "b"], "target": ["b", "c"]}
    plain = b"a,b\nb,c\n"
    (tmp_path / "e.csv.gz").write_bytes(gzip.compress(plain))
    with pa.OSFile(str(tmp_path / "e.csv.zst"), "wb") as file, pa.CompressedOutputStream(file, "zstd") as out:
        out.write(plain)
    parquet.write_table(pa.table(rows), tmp_path / "e.parquet")
    (tmp_path / "e.jsonl").write_text('{"source": "a", "target": "b"}\n{"source": "b", "target": "c"}\n')
    for name in ("e.csv.gz", "e.csv.zst", "e.parquet", "e.jsonl"):
        assert read_graph(tmp_path / name).names.tolist() == ["a", "b", "c"], name


def test_the_column_of_names_holds_names_of_nodes_whatever_its_title(file, tmp_path):
    edges = {"a": ["001", "002"], "b": ["002", "003"]}
    people = {"number": ["001", "002", "003"], "name": ["Ann", "Bob", "Ann"], "age": [31, 45, 22]}
    parquet.write_table(pa.table(people), tmp_path / "people.parquet")
    text = file("number,name,age\n001,Ann,31\n002,Bob,45\n003,Ann,22\n", "people.csv")
    for table in (people, text, tmp_path / "people.parquet"):
        assert read_graph(edges, table).feature_names == ("name = Ann", "name = Bob", "age")
    assert Graph.from_dataframe(edges, nodes=people).names.tolist() == people["number"]
    repeated = (
        r"people.csv: column 'name': .* more than once: 'Ann'; choose another column of names with node_col"
    )
    with pytest.raises(MissingFeaturesError, match=repeated):
        read_graph(edges, text, node_column="name")


def test_a_series_by_name_is_a_column_of_features():
    pandas = pytest.importorskip("pandas")
    edges = {"a": ["ann", "bob"], "b": ["bob", "cy"]}
    ages = pandas.Series([31, 45, 22], index=["ann", "bob", "cy"], name="age")
    for given in (ages, ages.rename(None)):
        assert read_graph(edges, given).features.ravel().tolist() == [31, 45, 22]
    numbered = ages.set_axis([1, 2, 3])
    assert read_graph({"a": [1, 2], "b": [2, 3]}, numbered).features.ravel().tolist() == [31, 45, 22]
    with pytest.raises(GraphFormatError, match="has only one column, 'age'; expected names and features"):
        read_graph(edges, ages.reset_index(drop=True))


def test_titles_of_other_letters_are_none_of_names(file):
    pandas = pytest.importorskip("pandas")
    edges = {"a": [1, 2], "b": [2, 3]}
    people = pandas.DataFrame({"年龄": [2, 3, 7], "身高": [1.5, 1.25, 1.75]}, index=[1, 2, 3])
    assert read_graph(edges, people).features.tolist() == [[2, 1.5], [3, 1.25], [7, 1.75]]
    table = pa.table({"person": ["ann", "bob"], "年龄": [31, 45]})
    assert name_column(table, None, "people") == 0
    people = file("张三,1.5,2\n李四,3,4\n", "people.csv")
    assert read_graph({"a": ["张三"], "b": ["李四"]}, people).features.tolist() == [[1.5, 2], [3, 4]]


def test_tables_in_memory_and_queries_are_read(tmp_path):
    import duckdb

    pandas = pytest.importorskip("pandas")
    edges = pandas.DataFrame({"payer": ["ann", "bob"], "payee": ["bob", "cy"], "amount": [2.0, 3.0]})
    people = pandas.DataFrame({"age": [31, 45, 22]}, index=["ann", "bob", "cy"])
    graph = read_graph(edges, people)
    assert graph.weights.tolist() == [2, 2, 3, 3]
    assert graph.features.ravel().tolist() == [31, 45, 22]
    assert read_graph({"u": [1, 2], "v": [2, 3]}).names.tolist() == [1, 2, 3]
    with duckdb.connect(str(tmp_path / "bank.duckdb")) as bank:
        bank.execute("CREATE TABLE transfers AS SELECT 'ann' AS payer, 'bob' AS payee, 5 AS amount")
    asked = "select payer, payee, amount from transfers"
    graph = read_graph(query=asked, database=tmp_path / "bank.duckdb")
    assert (graph.names.tolist(), graph.weights.tolist()) == (["ann", "bob"], [5, 5])
    assert read_graph(tmp_path / "bank.duckdb").names.tolist() == ["ann", "bob"]
    with pytest.raises(GraphFormatError, match="the query: cannot be read"):
        read_graph(query="select payer from nowhere")


@pytest.mark.parametrize(
    ("head", "what"),
    [
        (b"PK\x03\x04" + bytes(22) + b"\x13\0\0\0[Content_Types].xml", "an Excel or Office document"),
        (b"PK\x03\x04" + bytes(22) + b"\x09\0\0\0edges.csv", "a zip archive of 'edges.csv'"),
        (b'[\n {"source": 1}]', "a JSON document"),
        (b'{\n "nodes": []}', "a JSON document"),
        (b"%PDF-1.4", "a PDF document"),
        (b"\x89PNG\r\n", "an image"),
        (b"SQLite format 3\0", "a SQLite database"),
    ],
)
def test_other_kinds_of_files_are_named_with_a_way_out(file, head, what):
    with pytest.raises(GraphFormatError, match=rf"is {what}.* convert it: "):
        read_graph(file(head + b" " * 20, "edges.bin"))


def test_columns_of_people_can_be_left_out(file):
    people = file("node,zip,age\nann,01234,31\nbob,04321,45\n", "people.csv")
    graph = read_graph(file("ann,bob\n"), people, encoder=FeatureEncoder({"zip": "ignore"}))
    assert graph.feature_names == ("age",)


def told(*arguments, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read_graph(*arguments, **options)
    return " ".join(str(each.message) for each in caught if "read as the same" in str(each.message))


@pytest.mark.parametrize("head", ["userId,movieId", "user,item", "user_id,item_id", "customer_id,product_id"])
def test_numbers_of_two_kinds_of_things_are_told(file, head):
    one, other = head.split(",")
    said = told(file(f"{head}\n1,2\n2,3\n"))
    assert f"numbers in both columns, '{one}' and '{other}', are read as the same nodes: 1 of them" in said
    assert f"edges['{one}'] = 'u' + edges['{one}'].astype(str)" in said
    assert f"query=\"select 'u' || {one}, {other} from 'FILE'\"" in said
    assert not told(file(f"{head}\n1,4\n2,3\n"))
    assert not told(file(f"{head}\nu1,i2\nu2,i3\n"))
    with pytest.warns(SpineWarning, match="read as the same nodes"):
        Graph.from_dataframe({one: [1, 2], other: [2, 3]})


@pytest.mark.parametrize(
    "head",
    [
        *("source,target", "id1,id2", "fromId,toId", "user_id,friend_id", "a,b", "x,y"),
        *("author_id,coauthor_id", "citing_paper_id,cited_paper_id", "citingPaperId,citedPaperId"),
    ],
)
def test_numbers_of_one_kind_of_things_are_not(file, head):
    assert not told(file(f"{head}\n1,2\n2,3\n"))


def test_whole_floats_are_integers_and_gaps_say_how_to_drop_them(tmp_path):
    pandas = pytest.importorskip("pandas")
    edges = pandas.DataFrame({"from": [1.0, 2.0, None], "to": [2.0, 3.0, 4.0]})
    edges.to_parquet(tmp_path / "edges.parquet")
    for read in (read_graph, Graph.from_dataframe):
        assert read(edges.dropna()).names.tolist() == [1, 2, 3]
    for read, given in (
        (read_graph, tmp_path / "edges.parquet"),
        (read_graph, edges),
        (Graph.from_dataframe, edges),
    ):
        with pytest.raises(GraphFormatError, match=r"row 2.*edges\.dropna\(subset=\['from'"):
            read(given)
    people = pandas.DataFrame({"id": [1.0, 2.0, 3.0], "age": [30, "n/a", 42]})
    assert read_graph(edges.dropna(), people).names.tolist() == [1, 2, 3]


def test_a_file_and_the_same_data_as_a_data_frame_are_read_the_same(file):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    pay, since = ["2.765,72 €", "12,00 €", "n/a"], ["18.02.2024", "-", "1.3.2024"]
    rows = zip("abc", pay, since, strict=True)
    people = file("id;pay;since\n" + "".join(f"{';'.join(row)}\n" for row in rows), "people.csv")
    columns = {"id": ["a", "b", "c"], "pay": pay, "since": since}
    edges = {"source": ["a", "b"], "target": ["b", "c"]}
    asked = {"sep": ";", "keep_default_na": False}
    given = [columns, pandas.DataFrame(columns), polars.DataFrame(columns), pandas.read_csv(people, **asked)]
    graphs = [read_graph(edges, table) for table in (people, *given)]
    assert graphs[0].feature_names == ("pay", "pay is missing", "since", "since is missing")
    assert all((graph.features.toarray() == graphs[0].features.toarray()).all() for graph in graphs)


def test_what_is_left_out_and_what_may_be_a_weight_is_noted(file):
    from spinegraph.graph.read import read_contents

    (note,) = read_contents(file("Von,An,Datum,Anzahl Mails\na,b,2020-01-01,4\nb,c,2020-01-02,5\n")).notes
    assert "no weights (--weight 'Anzahl Mails' or weight='Anzahl Mails' uses its numbers)" in note
    assert "left out: 'Datum', 'Anzahl Mails'" in note
    (note,) = read_contents(file("1 2 1082040961\n2 3 1082155839\n")).notes
    assert "left out: column 3" in note
    (note,) = read_contents(file(",source,target,score\n0,a,b,3\n1,b,c,4\n")).notes
    assert "no weights (--weight 'score' or weight='score' uses its numbers)" in note


def test_text_of_windows_is_refused_with_the_line_that_converts_it(file):
    with pytest.raises(GraphFormatError) as caught:
        read_graph(file("Müller,Bob\nBob,Cy\n".encode("cp1252"), "people.csv"))
    assert "'Müller,Bob'; convert it: iconv -f cp1252 -t utf-8 people.csv > utf8.csv" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("graph [\n  node [ id 1 ]\n]\n", "gml"),
        ('Creator "x"\nVersion 1\ngraph\n[\n', "gml"),
        ('<?xml version="1.0"?>\n<gexf xmlns="http://gexf.net/1.2"></gexf>', "gexf"),
    ],
)
def test_gml_and_gexf_are_named_with_the_line_that_converts_them(file, text, kind):
    with pytest.raises(
        GraphFormatError, match=rf"is {kind.upper()}, which .*write_graphml\(n\.read_{kind}\('"
    ):
        read_graph(file(text, f"network.{kind}"))


@pytest.mark.parametrize("comment", ["# graph [directed]", "# " * 26, "comment " * 26])
def test_a_comment_is_no_gml_and_is_passed_at_once(file, comment):
    began = time.process_time()
    graph = read_graph(file(f"# {comment}\n1 2\n2 3\n"))
    assert graph.num_edges == 2
    assert time.process_time() - began < 1  # seconds; trying every way to cut the line takes many


PEOPLE = {
    "row numbers of pandas": ",customer,team\n0,12,a\n1,13,b\n2,11,a\n",
    "row numbers like names": ",customer,team\n0,1,a\n1,2,b\n2,0,a\n",
    "names in another column": "joined,team,customer\n2024-01-01,a,12\n,b,13\n2024-01-03,a,11\n",
    "whole floats": "customer,team\n12.0,a\n13.0,b\n11.0,a\n",
}


@pytest.mark.parametrize("kind", PEOPLE)
def test_a_table_of_people_is_understood(file, kind):
    low = 0 if "like" in kind else 11
    edges = file(f"from,to\n{low},{low + 1}\n{low + 1},{low + 2}\n")
    graph = read_graph(edges, file(PEOPLE[kind], "people.csv"))
    assert graph.names.tolist() == [low, low + 1, low + 2]
    team = [graph.feature_names[row.argmax()] for row in graph.features.toarray()[:, -2:]]
    teams = dict(zip(graph.names.tolist(), team, strict=True))
    assert graph.encoder.kinds_.keys() <= {"team", "joined"}
    assert len({teams[low], teams[low + 1]}) == 1
    assert teams[low] != teams[low + 2]


def test_a_pandas_index_that_is_left_over_is_no_column():
    pandas = pytest.importorskip("pandas")
    edges = {"a": ["x", "y", "z"], "b": ["y", "z", "x"]}
    people = pandas.DataFrame({"who": ["z", "n", "x", "y"], "age": [1.0, 2.0, 3.0, 4.0]})
    for table in (people[people.who != "n"], people[people.who != "n"].sort_values("age", ascending=False)):
        for options in ({}, {"node_column": "who"}):
            graph = read_graph(edges, table, **options)
            assert graph.feature_names == ("age",)
            assert dict(zip(graph.names.tolist(), graph.features.ravel().tolist(), strict=True)) == {
                "x": 3,
                "y": 4,
                "z": 1,
            }


@pytest.mark.parametrize("titles", ["none", "numbers", "names"])
def test_an_adjacency_matrix_is_no_list_of_edges(file, titles):
    rows = ["0,1,0,1", "1,0,1,0", "0,1,0,0", "1,0,0,0"]
    if titles == "numbers":
        rows = ["0,1,2,3", *rows]
    if titles == "names":
        rows = [",a,b,c,d", *(f"{name},{row}" for name, row in zip("abcd", rows, strict=True))]
    with pytest.raises(GraphFormatError, match="looks like an adjacency matrix, not like a list of edges"):
        read_graph(file("\n".join(rows)))
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame([row.split(",")[-4:] for row in rows[-4:]], columns=list("abcd")).astype(int)
    with pytest.raises(GraphFormatError, match="adjacency matrix"):
        read_graph(table)


def test_a_row_without_an_end_is_refused_with_the_query_that_leaves_it_out(file, tmp_path):
    staff = file("manager,employee\nann,bob\n,ann\n", "staff.csv")
    with pytest.raises(GraphFormatError, match="the source is empty") as caught:
        read_graph(staff)
    query = re.search(r'query=(".*") instead', str(caught.value))[1]
    assert read_graph(query=ast.literal_eval(query)).names.tolist() == ["ann", "bob"]
    (typed,) = shlex.split(query)  # as a shell reads it
    assert read_graph(query=typed).names.tolist() == ["ann", "bob"]


@pytest.mark.parametrize(
    ("mark", "given", "weight"),
    [
        (",", "1.5", 1.5),
        (",", "1.234", 1234),
        (",", "1.234,5 EUR", 1234.5),
        (",", " €2,5 ", 2.5),
        (".", "1,234.5", 1234.5),
        *((",", wrong, None) for wrong in ("12/20", "3 km", "1x5", "2024-01-05", "1-2", "1,2,3")),
        *((".", wrong, None) for wrong in ("1,5", "12/20")),
    ],
)
def test_a_weight_far_down_is_read_as_it_is_written_or_its_line_is_named(file, mark, given, weight):
    usual = "{},5" if mark == "," else "1,1{:02}.5"
    rows = "".join(f"n{i};n{i + 1};{usual.format(i % 90)}\n" for i in range(1200))
    path = file(f"source;target;weight\n{rows}x;y;{given}\n")
    if weight is None:
        with pytest.raises(
            GraphFormatError, match=rf"edges.csv:1202: the weight '{re.escape(given)}' is not"
        ):
            read_graph(path)
    else:
        graph = read_graph(path)
        assert graph.to_scipy()[*graph.positions(["x", "y"])] == weight


@pytest.mark.parametrize(
    "amounts", [["5 EUR", "7 EUR"], ["1.000,50", "2,00"], ["1", "2"], ["1 000", "2 000"]]
)
def test_amounts_in_words_of_a_table_are_weights_as_in_a_file(amounts, tmp_path):
    table = {"payer": ["a", "b"], "payee": ["b", "c"], "amount": amounts}
    parquet.write_table(pa.table(table), tmp_path / "edges.parquet")
    wanted = Graph.from_dataframe(table).to_scipy().toarray()
    for edges in (table, tmp_path / "edges.parquet"):
        assert (read_graph(edges).to_scipy().toarray() == wanted).all()
    table["amount"] = ["high", "low"]
    assert read_graph(table).weights is None
    with pytest.raises(GraphFormatError, match=r"row 0: the weight 'high' is not.*weighted=False ignores"):
        read_graph(table, weight="amount")
    with pytest.raises(GraphFormatError, match=r"'amount' is date32.*weighted=False"):
        read_graph({**table, "amount": pa.array([0, 1], pa.date32())}, weight="amount")


@pytest.mark.parametrize("head", ["a,b", "x,y"])
def test_single_letters_above_longer_names_are_a_header(file, head):
    rows = "p0,p310\np1,p7\n"
    with pytest.warns(SpineWarning, match="first line read as a header"):
        assert len(read_graph(file(f"{head}\n{rows}"))) == 4
    assert len(quietly(file(f"{head}\n{rows}{head[0]},p1\n"))) == 6
    assert len(quietly(file("a,b\nb,c\n"))) == 3
    assert len(quietly(file("a,b\nc,d\n"))) == 4


@pytest.mark.parametrize(
    "head", ["date,channel,who1st,who2nd,strength", "Datum,Art,Empfänger,Absender,Stärke"]
)
def test_the_ends_are_the_columns_that_share_names(file, head):
    people = ["Ann", "Bo", "Cy", "Di", "Ed"]
    rows = [
        f"2024-01-{i + 10},{'mail' if i % 2 else 'chat'},{people[i % 5]},{people[i // 5]}" for i in range(20)
    ]
    graph = quietly(file("\n".join([head, *(f"{row},2.5" for row in rows)])))
    assert graph.names.tolist() == people


@pytest.mark.parametrize(
    "rows",
    [
        "customer,product,city,home\nc1,p1,Rome,Oslo\nc2,p2,Oslo,Rome\nc3,p3,Rome,Oslo\n",
        "customer,product,goals,assists\nc1,p1,5,7\nc2,p2,7,5\nc3,p3,6,6\n",
    ],
)
def test_other_columns_that_share_values_are_no_ends(file, rows):
    assert quietly(file(rows)).names.tolist() == ["c1", "c2", "c3", "p1", "p2", "p3"]


def test_one_column_is_counted_as_one(file):
    from spinegraph.graph.edge_files import EdgeOptions
    from spinegraph.graph.read import read_joined

    people = {"id": ["a", "b"], "age": [31, 45]}
    assert "1 column of numbers" in read_joined(file("a,b\n"), people, EdgeOptions()).notes[1]
    gaps = {"id": ["a", "b"], "team": ["x", "x"]}
    assert "1 column by FeatureEncoder" in read_joined(file("a,b\n"), gaps, EdgeOptions()).notes[1]


def later(encoder, table):
    """Return the message of the only warning at encoding a table, or ""."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        encoder.transform(table)
    return "; ".join(str(each.message) for each in caught)


def test_a_later_table_that_means_something_else_is_told(file):
    n = 110
    people = {
        "id": [f"p{i}" for i in range(n)],
        "team": [("sales", "north", "south")[i % 3] for i in range(n)],
        "salary": [52_000.0 + 100 * (i % 20) for i in range(n)],
        "about": [
            f"likes {('tea', 'chess', 'rock')[i % 3]} and {('cats', 'dogs')[i % 2]} x{i}" for i in range(n)
        ],
    }
    edges = file("".join(f"p{i},p{i + 1}\n" for i in range(n - 1)))
    encoder = read_graph(edges, people).encoder
    assert not later(encoder, {key: values for key, values in people.items() if key != "id"})
    other = {
        **people,
        "team": [team.upper() for team in people["team"]],
        "salary": [1000 * pay for pay in people["salary"]],
        "about": ["zzz yyy qqq"] * n,
    }
    with pytest.warns(
        UnfamiliarDataWarning, match="columns differ from those the encoder was fitted on"
    ) as told:
        read_graph(edges, other, encoder=encoder)
    (message,) = (str(each.message) for each in told)
    assert "team: 110 of 110 values were not seen in training, such as 'SALES'" in message
    assert re.search(
        r"salary: its median 52,\d\d0,000 is [\d,]+ deviations from the mean in training", message
    )
    assert "about: 110 of 110 values have no word seen in training, such as 'zzz yyy qqq'" in message
    few = {key: values[:4] for key, values in other.items() if key != "id"}
    assert not later(encoder, few)
    some = {key: [*other[key][:20], *people[key][20:]] for key in people if key != "id"}
    assert not later(encoder, some)
