"""A saved model: everything comes back, nothing is trusted, nothing is lost."""

import json
import os
import random
import shutil
import struct
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from scipy.sparse import csr_array

from spinegraph import SPINE, Graph, __version__
from spinegraph import atomic as tensor_file
from spinegraph.errors import GraphFormatError, ModelFormatError, ParameterError, SpineWarning
from spinegraph.storage import model_folder

SETTINGS = {"dim": 8, "threads": 1}
FILES = ["config.json", *(f"{name}.safetensors" for name in ("graph", "model", "place", "vectors"))]
PAPER = {"dim": 8, "steps": 4, "batch_size": 32, "threads": 1}


def ring(n=12, **kinds):
    return Graph.from_edges([(i, (i + 1) % n) for i in range(n)] + [(0, n // 2)], **kinds)


def words(n=12, f=5):
    return csr_array(np.random.default_rng(0).integers(0, 2, (n, f)).astype(np.float32))


GRAPHS = {
    "plain": ring(),
    "weighted": ring(weights=np.arange(1, 14)),
    "integers": ring(num_nodes=12, names=[7 * i - 20 for i in range(12)]),
    "text": ring(num_nodes=12, names=["", "a\0b", "\ud800", "日本", *map(str, range(8))]),
    "mixed": ring(num_nodes=12, names=[*range(6), *map(str, range(6))]),
    "sparse features": ring(features=words()),
    "dense features": ring(features=np.random.default_rng(0).normal(size=(12, 3))),
    "named features": ring(features=words(), feature_names=["é", "b", "", "d", "e"]),
    "isolated": Graph.from_edges([(0, 1), (1, 2)], num_nodes=5),
    "several": [ring(features=words()), ring(8, features=words(8))],
    "list of one": [ring()],
}


@pytest.fixture(scope="module", params=GRAPHS)
def fitted(request):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpineWarning)  # that several networks have no place
        return SPINE(**SETTINGS).fit(GRAPHS[request.param])


@pytest.fixture(scope="module")
def model():
    return SPINE(**SETTINGS).fit(GRAPHS["named features"])


@pytest.fixture
def folder(model, tmp_path):
    model.save(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture(scope="module")
def paper_model():
    return SPINE.paper(**PAPER).fit(GRAPHS["named features"])


@pytest.fixture
def paper_folder(paper_model, tmp_path):
    paper_model.save(tmp_path / "paper")
    return tmp_path / "paper"


def files_of(model):
    return FILES if "place" in model.generator_.parts else [name for name in FILES if "place" not in name]


def listed(value):
    return value if isinstance(value, list) else [value]


def assert_same_embeddings(found, expected):
    assert type(found) is type(expected)
    for one, other in zip(listed(found), listed(expected), strict=True):
        assert one.names.tolist() == other.names.tolist()
        assert one.vectors.tobytes() == other.vectors.tobytes()


def test_everything_comes_back_to_the_bit(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    loaded = SPINE.load(tmp_path / "model")
    assert loaded.get_params() == fitted.get_params()
    for name in ("config_", "familiarity_", "fingerprint_"):
        assert getattr(loaded, name) == getattr(fitted, name)
    assert_same_embeddings(loaded.embeddings_, fitted.embeddings_)
    assert type(loaded.graph_) is type(fitted.graph_)
    for found, expected in zip(listed(loaded.graph_), listed(fitted.graph_), strict=True):
        assert found.names.tolist() == expected.names.tolist()
        assert list(map(type, found.names.tolist())) == list(map(type, expected.names.tolist()))
        assert found.feature_names == expected.feature_names
        assert_same_embeddings(loaded.transform(found), fitted.transform(expected))
    assert sorted(os.listdir(tmp_path / "model")) == files_of(fitted)


def test_a_loaded_model_saves_to_the_same_bytes(fitted, tmp_path):
    fitted.save(tmp_path / "first")
    SPINE.load(tmp_path / "first").save(tmp_path / "second")
    for name in files_of(fitted):
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()


def test_without_data_only_the_generator_is_kept(model, tmp_path):
    model.save(tmp_path / "model", data=False)
    assert sorted(os.listdir(tmp_path / "model")) == ["config.json", "model.safetensors", "place.safetensors"]
    loaded = SPINE.load(tmp_path / "model")
    assert loaded.graph_ is None
    assert loaded.embeddings_ is None
    assert_same_embeddings(loaded.transform(model.graph_), model.transform(model.graph_))
    loaded.save(tmp_path / "again", data=False)
    with pytest.raises(ParameterError, match="loaded without its training data; save it with data=False"):
        loaded.save(tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_a_model_folder_says_where_it_comes_from(folder):
    about = json.loads((folder / "config.json").read_text())
    assert (about["format"], about["version"], about["package"]) == ("spinegraph.model", 2, __version__)
    assert about["settings"]["seed"] == 0
    assert about["encoder"]["names"] == ["é", "b", "", "d", "e"]
    assert len(about["fingerprint"]) == 32
    assert about["method"] == "parts"


def test_settings_that_a_fit_used_come_back(model, tmp_path):
    changed = SPINE(**SETTINGS).fit(ring()).set_params(dim=[3])
    changed.save(tmp_path / "model")
    loaded = SPINE.load(tmp_path / "model")
    assert (loaded.dim, loaded.config_.dim) == (8, 8)


def test_names_that_files_cannot_hold_are_refused_before_anything_is_written(tmp_path):
    odd = SPINE(**SETTINGS).fit(Graph.from_edges([(("a", 1), ("b", 2)), (("b", 2), ("c", 3))]))
    with pytest.raises(
        GraphFormatError, match=r"text or whole numbers; got \('a', 1\).*data=False, place=False"
    ):
        odd.save(tmp_path / "model")
    assert not os.listdir(tmp_path)
    odd.save(tmp_path / "model", data=False, place=False)
    assert SPINE.load(tmp_path / "model").transform(odd.graph_)[("a", 1)].shape == (8,)


def test_loading_and_embedding_leave_torch_out(folder):
    code = (
        "import sys; from spinegraph import SPINE\n"
        "model = SPINE.load(sys.argv[1]); model.transform(model.graph_); model.embeddings_\n"
        "print([name for name in ('torch', 'networkx', 'pandas') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# Replacing


def test_a_model_is_replaced_whole_and_parents_are_made(model, tmp_path):
    place = tmp_path / "new" / "models" / "mine"
    model.save(place)
    other = SPINE(**{**SETTINGS, "dim": 4}).fit(ring())
    other.save(place, data=False)
    assert SPINE.load(place).dim == 4
    assert sorted(os.listdir(place)) == ["config.json", "model.safetensors", "place.safetensors"]
    assert os.listdir(place.parent) == ["mine"]


def test_an_empty_folder_is_taken(model, tmp_path):
    model.save(tmp_path)
    assert SPINE.load(str(tmp_path)).dim == 8


@pytest.mark.parametrize("name", ["notes.txt", "config.json", "model.safetensors"])
def test_a_folder_with_anything_else_in_it_is_kept(model, tmp_path, name):
    (tmp_path / name).write_text("{}")
    with pytest.raises(ParameterError, match=r"choose another folder, or empty this one"):
        model.save(tmp_path)
    assert os.listdir(tmp_path) == [name]


def test_files_that_the_system_keeps_in_a_folder_stay(model, tmp_path):
    (tmp_path / ".DS_Store").write_text("icons")
    for _ in range(2):
        model.save(tmp_path)
        assert (tmp_path / ".DS_Store").read_text() == "icons"
    assert SPINE.load(tmp_path).dim == 8


def test_a_model_folder_that_holds_notes_is_kept(model, folder):
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(ParameterError, match=r"contains 'notes.txt', which saving a model here would delete"):
        model.save(folder)
    assert (folder / "notes.txt").read_text() == "mine"
    assert SPINE.load(folder).dim == 8


def test_a_file_is_no_folder(model, tmp_path):
    (tmp_path / "model").write_text("")
    with pytest.raises(ParameterError, match="is a file"):
        model.save(tmp_path / "model")


def test_a_failing_save_leaves_the_old_model(model, folder, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(model_folder, "write_arrays", fail)
    with pytest.raises(OSError, match="No space left"):
        SPINE(**{**SETTINGS, "dim": 4}).fit(ring()).save(folder)
    assert SPINE.load(folder).dim == 8
    assert os.listdir(folder.parent) == ["model"]


def test_a_model_replaced_while_it_is_read_is_read_again(model, folder, monkeypatch):
    other = SPINE(**{**SETTINGS, "seed": 1}).fit(model.graph_)
    real = model_folder._config

    def replacing(*given):
        monkeypatch.setattr(model_folder, "_config", real)
        other.save(folder)
        return real(*given)

    monkeypatch.setattr(model_folder, "_config", replacing)
    assert SPINE.load(folder).seed == 1


@pytest.mark.slow
def test_a_model_whose_saving_is_killed_over_and_over_is_always_whole(model, folder):
    code = (
        "import sys; from spinegraph import SPINE\n"
        "model = SPINE.load(sys.argv[1]); print('ready', flush=True)\n"
        "while True: model.save(sys.argv[1])"
    )
    moments = random.Random(0)
    for _ in range(10):
        with subprocess.Popen([sys.executable, "-c", code, folder], stdout=subprocess.PIPE) as child:
            child.stdout.readline()
            time.sleep(moments.random() / 5)
            child.kill()
        assert_same_embeddings(SPINE.load(folder).embeddings_, model.embeddings_)


# Hostile folders


def changed_config(folder, change):
    """Change the settings and sign them again, as somebody who means harm would."""
    about = json.loads((folder / "config.json").read_text())
    change(about)
    if isinstance(about.get("digests"), dict):
        about["digests"]["config.json"] = model_folder.config_digest(about)
    (folder / "config.json").write_text(json.dumps(about))


def changed_arrays(folder, name, change):
    """Change arrays and sign them again, as somebody who means harm would."""
    arrays = load_file(folder / name)
    change(arrays)
    save_file(arrays, folder / name)
    changed_config(folder, lambda about: about["digests"].update({name: tensor_file.digest(arrays)}))


def refused(folder, pattern):
    with pytest.raises(ModelFormatError, match=pattern) as caught:
        SPINE.load(folder)
    assert str(folder) in str(caught.value)


def test_a_missing_folder_or_file_is_named(folder, tmp_path):
    refused(tmp_path / "nowhere", "no such folder; pass a folder that spine fit or SPINE.save wrote")
    refused(tmp_path, r"contains no config.json; pass a folder")
    refused(folder / "config.json", "is not a folder")
    for name in FILES[1:]:
        (folder / name).rename(folder / "away")
        refused(folder, f"{name}: is missing, but config.json lists it; copy the whole folder again")
        (folder / "away").rename(folder / name)


def test_a_null_byte_in_the_name_is_no_folder():
    with pytest.raises(ModelFormatError, match="no such folder"):
        SPINE.load("a\0b")


@pytest.mark.parametrize("name", FILES)
def test_a_file_cut_off_anywhere_is_refused(folder, name):
    content = (folder / name).read_bytes()
    for size in {*range(0, len(content), max(1, len(content) // 23)), len(content) - 1}:
        (folder / name).write_bytes(content[:size])
        refused(folder, name)


@pytest.mark.parametrize("name", FILES[1:])
def test_a_flipped_bit_is_noticed(folder, name):
    content = bytearray((folder / name).read_bytes())
    content[-2] ^= 1
    (folder / name).write_bytes(content)
    refused(folder, rf"{name}: its checksum is not that in config.json: damaged")


def test_any_flipped_bit_of_the_settings_is_noticed_or_changes_nothing(model, folder):
    content, rng = (folder / "config.json").read_bytes(), random.Random(0)
    expected, noticed = model.transform(model.graph_).vectors.tobytes(), 0
    for place in rng.sample(range(len(content)), 150):
        damaged = bytearray(content)
        damaged[place] ^= 1 << rng.randrange(8)
        (folder / "config.json").write_bytes(damaged)
        try:
            loaded = SPINE.load(folder)
        except ModelFormatError:
            noticed += 1
        else:
            assert loaded.transform(model.graph_).vectors.tobytes() == expected
            assert loaded.get_params() == model.get_params()
    assert noticed > 100


def test_a_model_from_before_settings_had_a_digest_loads(model, folder):
    about = json.loads((folder / "config.json").read_text())
    del about["digests"]["config.json"]
    (folder / "config.json").write_text(json.dumps(about))
    assert_same_embeddings(SPINE.load(folder).embeddings_, model.embeddings_)


def test_a_file_of_another_model_is_noticed(folder, tmp_path):
    other = np.random.default_rng(1).normal(size=(12, 5))
    SPINE(**SETTINGS).fit(ring(features=other)).save(tmp_path / "other")
    shutil.copy(tmp_path / "other" / "model.safetensors", folder)
    refused(folder, "or of another model")


def test_a_newer_format_says_what_to_do(folder):
    changed_config(folder, lambda about: about.update(version=3, package="9.0.0"))
    refused(folder, r"format version 3, written by spinegraph '9.0.0'.*reads up to version 2: upgrade it")


@pytest.mark.parametrize(
    "text",
    [b"", b"[]", b"null", b"{", b"\xff", b"[" * 100_000, b'{"version": ' + b"9" * 5000 + b"}", b"{}"],
)
def test_a_config_that_is_no_object_is_refused(folder, text):
    (folder / "config.json").write_bytes(text)
    refused(folder, "config.json")


ODD_VALUES = [
    None,
    True,
    -1,
    0,
    1.5,
    "x",
    [],
    {},
    [[]],
    10**30,
    float("nan"),
    "../../secret",
    [None],
    {"a": 1},
]
TYPED = [
    "format version method fingerprint settings encoder weights learned content_scale",
    "place_dim role_constant familiarity data digests table_encoder",
]


HARMLESS = [
    ("data", None),
    ("learned", None),
    *(("content_scale", value) for value in (-1, 0, 1.5, 10**30)),
    *(("role_constant", value) for value in (-1, 0)),
]


@pytest.mark.filterwarnings("ignore:.*has no settings")
@pytest.mark.parametrize("key", " ".join(TYPED).split())
def test_values_of_the_wrong_kind_are_refused_or_harmless(folder, key):
    text = (folder / "config.json").read_text()
    right = json.loads(text)[key]
    for value in ODD_VALUES:
        if value == right or (key, value) in HARMLESS:
            continue
        (folder / "config.json").write_text(text)
        changed_config(folder, lambda about, value=value: about.update({key: value}))
        refused(folder, "config.json|safetensors")
        changed_config(folder, lambda about: about.pop(key))
        if key not in ("data", "table_encoder", "learned"):
            refused(folder, "config.json|safetensors")


def test_a_setting_of_another_version_is_ignored_with_a_warning_and_a_new_one_has_its_default(folder):
    changed_config(folder, lambda about: about["settings"].update(training_workers=2))
    changed_config(folder, lambda about: about["settings"].pop("far"))
    with pytest.warns(SpineWarning, match="has no settings 'training_workers', which spinegraph .* had"):
        model = SPINE.load(folder)
    assert model.embeddings_ is not None
    assert model.far == SPINE().far


@pytest.mark.parametrize(
    ("part", "key", "value", "rule"),
    [
        ("settings", "dim", 0, "dim must be"),
        ("settings", "dim", 9, "the widths of the parts must sum to 9; they sum to 8"),
        ("settings", "k", 10**15, "k must be"),
        ("settings", "walks", 10**15, "walks must be"),
        ("settings", "walk_length", 10**15, "walk_length must be"),
        ("settings", "seed", -1, "seed must be"),
        ("settings", "rpr_method", "os.system", "rpr_method must be one of"),
        ("settings", "near", float("nan"), "near must be"),
        ("settings", "parts", ["rm"], "parts must be one or more of"),
        ("weights", "role", "heavy", "role must be a"),
        ("encoder", "width", 2**31 - 1, "width must be from 0 to"),
        ("encoder", "width", 4, "names must have 4 entries"),
        ("encoder", "source", "table", "source must be 'matrix'"),
        ("encoder", "scaling", "pickle", "scaling must be"),
        ("familiarity", "blank_columns", [5], r"blank_columns must lie in 0 .. 4"),
        ("familiarity", "num_nodes", "many", "num_nodes must be of type int"),
        ("familiarity", "empty_share", float("inf"), "empty_share must be a finite number"),
        ("settings", "threads", 10**9, "threads must be"),
        ("data", "graphs", 2, "graphs must be from 1 to 1"),
        ("data", "graphs", 0, "graphs must be from 1 to 1"),
        ("data", "is_list", True, "is not the data that the model was fitted on"),
        ("digests", "model.safetensors", 5, "must be of type str"),
    ],
)
def test_a_wrong_value_is_named(folder, part, key, value, rule):
    changed_config(folder, lambda about: about[part].update({key: value}))
    refused(folder, rule)


def test_a_missing_setting_has_its_default(folder):
    changed_config(folder, lambda about: about["settings"].pop("walks"))
    assert SPINE.load(folder).walks == 10


def test_structural_columns_must_be_known(paper_folder):
    for columns in (["log_degree", "rm -rf"], ["log_degree"] * 10, ["log_degree"]):
        changed_config(paper_folder, lambda about, columns=columns: about.update(structural_columns=columns))
        refused(paper_folder, "structural_")


def test_a_generator_that_reads_nothing_is_refused(paper_folder):
    changed_config(paper_folder, lambda about: about.update(encoder=None, through=False, past=False))
    refused(paper_folder, "this one uses neither")


def test_a_history_must_be_steps_and_losses(paper_folder):
    for history in ([[1, 2.0]], [[1.5, 2.0, 3.0]], [["1", 2.0, 3.0]]):
        changed_config(paper_folder, lambda about, history=history: about.update(history=history))
        refused(paper_folder, "history must be a list of")


def test_another_fingerprint_is_other_data(folder):
    changed_config(folder, lambda about: about.update(fingerprint="0" * 32))
    refused(folder, r"graph.safetensors: is not the data that the model was fitted on: its fingerprint is")


@pytest.mark.parametrize(
    ("key", "value", "rule"),
    [
        ("weights", np.full((5, 8), np.nan, np.float32), "weights must be finite"),
        ("weights", np.zeros((5, 8), np.float64), "weights must be float32"),
        ("weights", np.zeros((5, 9), np.float32), r"weights must be float32 \(any, 8\)"),
        ("weights", np.zeros((8, 8), np.float32), "one row per input, 5"),
        ("weights", np.zeros(120, np.float32), "weights must be float32"),
        ("weights", None, "weights must be float32 .*got none"),
        ("structural_mean", np.zeros(9, np.float32), "structural_mean must be"),
        ("structural_scale", None, "structural_scale must be"),
    ],
)
def test_hostile_weights_are_refused(paper_folder, key, value, rule):
    def change(arrays):
        del arrays[key]
        if value is not None:
            arrays[key] = value

    changed_arrays(paper_folder, "model.safetensors", change)
    refused(paper_folder, rule)


@pytest.mark.parametrize(
    ("file", "key", "value", "rule"),
    [
        ("model", "content.mixing", np.zeros((3, 4, 4), np.float32), "content.mixing must be float32"),
        ("model", "content.directions", np.full((5, 5), np.inf, np.float32), "directions must be finite"),
        ("model", "content.offset", None, "content.offset must be float32"),
        ("model", "role.scale", np.zeros(34, np.float32), "role.scale must be above 0"),
        ("model", "role.rotation", np.zeros((3, 1), np.float32), "role.rotation must be float32"),
        ("place", "place.links", np.full((3, 2), 12), r"place.links must lie in 0 .. 11"),
        ("place", "place.links", np.zeros(4, np.int64), "place.links must be pairs"),
        ("place", "place.positions", np.zeros((3, 1), np.float32), "links must lie in 0 .. 2"),
        ("place", "place.positions", np.zeros((12, 99), np.float32), "a name for each of 12 positions"),
    ],
)
def test_hostile_parts_are_refused(folder, file, key, value, rule):
    def change(arrays):
        del arrays[key]
        if value is not None:
            arrays[key] = value

    changed_arrays(folder, f"{file}.safetensors", change)
    refused(folder, rule)


def test_a_model_of_the_paper_comes_back_to_the_bit(paper_model, paper_folder):
    loaded = SPINE.load(paper_folder)
    assert type(loaded) is type(paper_model)
    assert loaded.get_params() == paper_model.get_params()
    assert loaded.history_ == paper_model.history_
    assert_same_embeddings(loaded.embeddings_, paper_model.embeddings_)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("0.indptr", np.array([0, 2**62], np.int64)),
        ("0.indptr", np.zeros((2, 2), np.int64)),
        ("0.indptr", np.zeros(0, np.int64)),
        ("0.indices", np.full(26, 99, np.int32)),
        ("0.indices", np.zeros(26, np.float32)),
        ("0.weights", np.full(26, -1, np.float32)),
        ("0.names", np.zeros(12, np.int64)),
        ("0.names", np.zeros(3, np.int64)),
        ("0.names.ends", np.arange(12)),
        ("0.features.indices", np.full(30, 2**31 - 1, np.int32)),
        ("0.features.shape", np.array([12, 2**62])),
        ("0.features.shape", np.array([12])),
        ("0.features.shape", np.array([-1, 5])),
        ("0.features.indptr", np.array([0, 2**30, *[30] * 11])),
        ("0.features.indptr", np.array([-(2**30), *[30] * 12])),
        ("0.features.data", None),
        ("0.features.indptr", None),
        ("0.feature_names.ends", np.array([2**62, -(2**62), 5, 5, 5])),
        ("0.feature_names.text", np.full(5, 255, np.uint8)),
        ("1.indptr", np.zeros(2, np.int64)),
        ("x.indptr", np.zeros(2, np.int64)),
    ],
)
def test_hostile_graphs_are_refused(folder, key, value):
    def change(arrays):
        arrays.pop(key, None)
        if value is not None:
            arrays[key] = value

    changed_arrays(folder, "graph.safetensors", change)
    refused(folder, "graph.safetensors: ")


@pytest.mark.parametrize(
    "vectors", [np.zeros((11, 8), np.float32), np.full((12, 8), np.nan, np.float32), None]
)
def test_hostile_vectors_are_refused(folder, vectors):
    changed_arrays(
        folder,
        "vectors.safetensors",
        lambda arrays: arrays.update(vectors=vectors) if vectors is not None else arrays.clear(),
    )
    refused(folder, r"vectors.safetensors: vectors must be")


def test_marks_of_whole_numbers_must_fit_their_names(tmp_path):
    SPINE(**SETTINGS).fit(GRAPHS["mixed"]).save(tmp_path / "model")
    for marks in (np.ones(3, np.uint8), np.ones(13, np.uint8), np.ones((12, 1), np.uint8)):
        changed_arrays(
            tmp_path / "model",
            "graph.safetensors",
            lambda arrays, marks=marks: arrays.update({"0.names.whole": marks}),
        )
        refused(tmp_path / "model", r"names.whole must have one mark per name")


def safetensors_claiming(shape, dtype="F32", end=None):
    size = int(np.prod([float(length) for length in shape]) * 4)
    header = {"weights": {"dtype": dtype, "shape": shape, "data_offsets": [0, size if end is None else end]}}
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + b"\0" * 64


@pytest.mark.parametrize(
    "content",
    [
        safetensors_claiming([2**40, 2**20]),
        safetensors_claiming([2**60, 2**60], end=64),
        safetensors_claiming([2**31], end=64),
        safetensors_claiming([4, 4], dtype="BF16", end=32),
        safetensors_claiming([4, 4], dtype="F8_E4M3", end=16),
        safetensors_claiming([-1], end=64),
        struct.pack("<Q", 2**63) + b"{}",
        struct.pack("<Q", 10**9) + b"{}",
        struct.pack("<Q", 2) + b"[]",
        b"\x80\x04\x95cposix\nsystem\n(S'touch /tmp/owned'\ntR.",
        b"",
    ],
)
@pytest.mark.parametrize("name", FILES[1:])
def test_safetensors_that_claim_what_they_do_not_hold_are_refused(folder, name, content):
    (folder / name).write_bytes(content)
    refused(folder, rf"{name}: ")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are a thing of POSIX")
@pytest.mark.parametrize("name", FILES)
def test_what_is_no_regular_file_is_not_waited_for(folder, name):
    (folder / name).unlink()
    os.mkfifo(folder / name)
    refused(folder, name)


def test_no_file_named_in_the_config_is_ever_read(folder, tmp_path):
    secret = tmp_path / "secret.safetensors"
    shutil.copy(folder / "model.safetensors", secret)
    (folder / "model.safetensors").unlink()

    def change(about):
        about["digests"] = {str(secret): about["digests"]["model.safetensors"], "../secret.safetensors": "x"}
        about["model"] = about["files"] = str(secret)

    changed_config(folder, change)
    refused(folder, r"digests must name only files of a model")
    changed_config(folder, lambda about: about.update(digests={}))
    refused(folder, r"model.safetensors: is missing")


def test_what_cleaning_did_to_the_edges_comes_back_with_the_model(tmp_path):
    graph = Graph.from_edges([(0, 1), (1, 0), (1, 2), (1, 2), (2, 3)])
    SPINE(dim=4).fit(graph).save(tmp_path / "model")
    assert SPINE.load(tmp_path / "model").graph_.report == graph.report
