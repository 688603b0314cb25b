"""Files as people have them, each right at the first reading."""

import gzip
import warnings

import pyarrow as pa
import pytest
from pyarrow import parquet

from spinegraph import FeatureEncoder, read_graph
from spinegraph.errors import GraphFormatError, SpineWarning

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
    with pytest.warns(SpineWarning, match=r"first line read as header \(person, friend\); use --no-header"):
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
    "amounts with signs": ("payer,payee,amount\na,b,$2\nb,c,$3\n", ["a", "b", "c"], None),
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
    assert "1 of 3 rows name no node" in said
    assert "1 of 4 nodes have no row" in said
    assert "age is missing" in graph.feature_names


def test_decimal_commas_of_people_are_numbers(file):
    people = file("name;income;about\nann;1,5;tea, maps\nbob;2;graphs\n", "people.csv")
    graph = read_graph(
        file("ann,bob\n"), people, encoder=FeatureEncoder({"about": "ignore", "income": "raw"})
    )
    assert graph.features.toarray().tolist() == [[1.5], [2.0]]


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
