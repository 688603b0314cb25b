"""Training stopped at any moment goes on to the same vectors."""

import json
import os
import random
import signal
import struct
import subprocess
import sys
import time
from contextlib import suppress

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from spinegraph import SPINE, Graph, made
from spinegraph.errors import ParameterError
from spinegraph.learning import checkpoint
from spinegraph.learning.checkpoint import Checkpoints, TrainingState
from spinegraph.learning.training import Trainer

GRAPH = made.barbell(8, bridge=2)
SETTINGS = {"dim": 8, "steps": 60, "passes": 1e6, "batch_size": 32, "local_walks": 2, "threads": 1}
SHAPES = {"weights": (3, 2)}
CHILD = """
import json, sys
from spinegraph import SPINE, made
from spinegraph.learning.checkpoint import Checkpoints

Checkpoints.is_due = lambda self, step: True  # so that many kills fall into the writing of a state
SPINE(dim=2, steps=1, threads=1).fit(made.barbell(3))  # what is compiled is compiled
print("ready", flush=True)
SPINE(**json.loads(sys.argv[1])).fit(made.barbell(8, bridge=2), checkpoint=sys.argv[2])
print("done", flush=True)
"""


@pytest.fixture(autouse=True)
def _save_whenever_due(monkeypatch):
    """Save every ten steps, however long that takes."""
    monkeypatch.setattr(Checkpoints, "is_due", lambda self, step: step % 10 == 0)


@pytest.fixture(scope="module")
def unbroken():
    return vectors(SPINE(**SETTINGS).fit(GRAPH))


def vectors(model):
    return model.embeddings_.vectors.tobytes()


def state(step, value=0.0):
    return TrainingState(step, {"weights": np.full((3, 2), value, np.float32)}, [(step, 0.5, 0.25)])


def steps_taken(monkeypatch):
    """Return a list that every training step is added to."""
    taken, real = [], Trainer._step
    monkeypatch.setattr(Trainer, "_step", lambda self, step: taken.append(step) or real(self, step))
    return taken


def stop_at(step):
    """Return a progress callback that raises KeyboardInterrupt, as Ctrl-C does."""

    def progress(stage, done, total):
        if done >= step:
            raise KeyboardInterrupt

    return progress


def break_off(folder, step=50, **changes):
    with pytest.raises(KeyboardInterrupt):
        SPINE(**{**SETTINGS, **changes}).fit(GRAPH, checkpoint=folder, progress=stop_at(step))


def states(folder):
    return sorted(name for name in os.listdir(folder) if name.endswith(".safetensors"))


# A folder of states


def test_the_newest_state_comes_back(tmp_path):
    for step in (50, 100):
        Checkpoints(tmp_path, "run").save(state(step, step))
    found = Checkpoints(tmp_path, "run").latest(SHAPES, 300)
    assert (found.step, found.history) == (100, [(100, 0.5, 0.25)])
    np.testing.assert_array_equal(found.arrays["weights"], np.full((3, 2), 100))


def test_old_states_are_pruned(tmp_path):
    for step in range(50, 400, 50):
        Checkpoints(tmp_path, "run").save(state(step))
    assert [int(name[9:18]) for name in states(tmp_path)] == [300, 350]


def test_runs_lie_side_by_side_without_touching_each_other(tmp_path):
    for step in (250, 300):
        Checkpoints(tmp_path, "long run").save(state(step))
    Checkpoints(tmp_path, "new run").save(state(50))
    assert Checkpoints(tmp_path, "new run").latest(SHAPES, 300).step == 50
    assert Checkpoints(tmp_path, "long run").latest(SHAPES, 300).step == 300
    assert Checkpoints(tmp_path, "third run").latest(SHAPES, 300) is None


def test_saving_takes_a_tenth_of_the_time_at_most(tmp_path, monkeypatch):
    monkeypatch.undo()
    clock = [100.0]
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: clock[0])
    real = checkpoint.write_signed

    def slow(*args, **kinds):
        clock[0] += 2.0
        real(*args, **kinds)

    monkeypatch.setattr(checkpoint, "write_signed", slow)
    saved = Checkpoints(tmp_path, "run")
    assert saved.is_due(50)
    assert not saved.is_due(51)
    saved.save(state(50))
    clock[0] += 17.9
    assert not saved.is_due(100)
    clock[0] += 0.2
    assert saved.is_due(150)


def test_a_state_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    Checkpoints(tmp_path, "run").save(state(50))

    def half(path, arrays, metadata):
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "write_signed", half)
    with pytest.raises(OSError, match="No space left"):
        Checkpoints(tmp_path, "run").save(state(100))
    assert len(os.listdir(tmp_path)) == 1
    assert Checkpoints(tmp_path, "run").latest(SHAPES, 300).step == 50


def test_what_a_killed_run_left_half_written_is_swept_away_in_time(tmp_path):
    Checkpoints(tmp_path, "run").save(state(50))
    left = tmp_path / f".{states(tmp_path)[0]}.0123abcd.tmp"
    left.write_bytes(b"half")
    assert Checkpoints(tmp_path, "run").latest(SHAPES, 300).step == 50
    assert left.exists()  # it may be another process's, at work
    os.utime(left, (time.time() - 7200,) * 2)
    Checkpoints(tmp_path, "run")
    assert not left.exists()


def rewritten(path, arrays=None, **metadata):
    """Write a state anew with other content, as a hostile hand might."""
    about = {"fingerprint": "run", "step": "100", "history": "[]", **metadata}
    about = {key: value for key, value in about.items() if value is not None}
    save_file({"weights": np.ones((3, 2), np.float32)} if arrays is None else arrays, path, metadata=about)


HOSTILE = {
    "empty": lambda path: path.write_bytes(b""),
    "junk": lambda path: path.write_bytes(b"junk" * 100),
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:-3]),
    "cut in the header": lambda path: path.write_bytes(path.read_bytes()[:20]),
    "huge header": lambda path: path.write_bytes(struct.pack("<Q", 2**60) + b"{}"),
    "other fingerprint": lambda path: rewritten(path, fingerprint="other"),
    "no fingerprint": lambda path: rewritten(path, fingerprint=None),
    "no step": lambda path: rewritten(path, step=None),
    "words for a step": lambda path: rewritten(path, step="many"),
    "too many digits": lambda path: rewritten(path, step="9" * 5000),
    "too many steps": lambda path: rewritten(path, step="301"),
    "no steps done": lambda path: rewritten(path, step="0"),
    "negative steps": lambda path: rewritten(path, step="-5"),
    "no history": lambda path: rewritten(path, history=None),
    "history of words": lambda path: rewritten(path, history='[["a", "b", "c"]]'),
    "history of another shape": lambda path: rewritten(path, history="[[1, 2]]"),
    "history that is no list": lambda path: rewritten(path, history="5"),
    "history too deep": lambda path: rewritten(path, history="[" * 100_000),
    "history without end": lambda path: rewritten(path, history="[[1e999, 1, 1]]"),
    "other shape": lambda path: rewritten(path, {"weights": np.ones((2, 3), np.float32)}),
    "broadcastable": lambda path: rewritten(path, {"weights": np.ones((1, 1), np.float32)}),
    "other type": lambda path: rewritten(path, {"weights": np.ones((3, 2), np.float64)}),
    "missing": lambda path: rewritten(path, {"others": np.ones((3, 2), np.float32)}),
    "one more": lambda path: rewritten(path, dict.fromkeys("ab", np.ones((3, 2), np.float32))),
    "not finite": lambda path: rewritten(path, {"weights": np.full((3, 2), np.nan, np.float32)}),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_damaged_or_hostile_newest_state_gives_way_to_the_one_before(tmp_path, kind):
    for step in (50, 100):
        Checkpoints(tmp_path, "run").save(state(step))
    newest = tmp_path / states(tmp_path)[-1]
    HOSTILE[kind](newest)
    assert Checkpoints(tmp_path, "run").latest(SHAPES, 300).step == 50


def test_any_flipped_bit_of_a_state_is_noticed(tmp_path):
    for step in (50, 100):
        Checkpoints(tmp_path, "run").save(state(step))
    newest = tmp_path / states(tmp_path)[-1]
    content = newest.read_bytes()
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << random.Random(place).randrange(8)
        newest.write_bytes(damaged)
        found = Checkpoints(tmp_path, "run").latest(SHAPES, 300)
        same = (
            found.step == 100 and found.arrays["weights"].tobytes() == state(100).arrays["weights"].tobytes()
        )
        assert same or found.step == 50, f"bit flipped in byte {place}"


def test_a_state_from_before_they_had_digests_is_taken(tmp_path):
    Checkpoints(tmp_path, "run").save(state(100))
    rewritten(tmp_path / states(tmp_path)[-1])
    assert Checkpoints(tmp_path, "run").latest(SHAPES, 300).step == 100


# A fit that was stopped


@pytest.mark.parametrize("step", [25, 50, 60])
def test_a_fit_stopped_by_ctrl_c_goes_on_to_the_same_vectors(tmp_path, monkeypatch, unbroken, step):
    break_off(tmp_path, step)
    taken = steps_taken(monkeypatch)
    model = SPINE(**SETTINGS).fit(GRAPH, checkpoint=tmp_path)
    assert vectors(model) == unbroken
    assert taken[0] == (step - 1) // 10 * 10  # the caller heard of the step before it was saved
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".tmp")]


def test_a_checkpoint_changes_nothing_and_a_finished_fit_is_not_done_again(tmp_path, monkeypatch, unbroken):
    first = SPINE(**SETTINGS).fit(GRAPH, checkpoint=tmp_path / "new" / "folder")
    taken = steps_taken(monkeypatch)
    again = SPINE(**SETTINGS).fit(GRAPH, checkpoint=tmp_path / "new" / "folder")
    assert taken == []
    assert vectors(first) == vectors(again) == unbroken
    assert first.history_ == again.history_


@pytest.mark.parametrize(
    "changes",
    [
        {"start": "random", "activation": "relu"},
        {"auxiliary_init": "node2vec"},
        {"dropout": 0.3},
        {"structural_columns": "none", "feature_scaling": "row"},
    ],
)
def test_every_kind_of_training_goes_on_to_the_same_vectors(tmp_path, changes):
    graph = GRAPH.with_features(np.random.default_rng(0).normal(size=(len(GRAPH), 5)))
    settings = {**SETTINGS, **changes}
    with pytest.raises(KeyboardInterrupt):
        SPINE(**settings).fit(graph, checkpoint=tmp_path, progress=stop_at(50))
    resumed = SPINE(**settings).fit(graph, checkpoint=tmp_path)
    assert vectors(resumed) == vectors(SPINE(**settings).fit(graph))


@pytest.mark.parametrize("stop", [25, 50, 75, 100, 125, 150])
def test_early_stopping_stops_at_the_same_step_when_resumed(tmp_path, stop):
    settings = {**SETTINGS, "steps": 400, "patience": 2, "learning_rate": 0.3}
    expected = SPINE(**settings).fit(GRAPH)
    assert 50 < expected.history_[-1].step < 400
    with suppress(KeyboardInterrupt):
        SPINE(**settings).fit(GRAPH, checkpoint=tmp_path, progress=stop_at(stop))
    resumed = SPINE(**settings).fit(GRAPH, checkpoint=tmp_path)
    assert resumed.history_ == expected.history_
    assert vectors(resumed) == vectors(expected)


def test_damage_costs_time_alone(tmp_path, monkeypatch, unbroken):
    break_off(tmp_path)
    newest = tmp_path / states(tmp_path)[-1]
    newest.write_bytes(newest.read_bytes()[:-1])
    taken = steps_taken(monkeypatch)
    assert vectors(SPINE(**SETTINGS).fit(GRAPH, checkpoint=tmp_path)) == unbroken
    assert taken[0] == 30
    for name in states(tmp_path):
        (tmp_path / name).write_bytes(b"")
    assert vectors(SPINE(**SETTINGS).fit(GRAPH, checkpoint=tmp_path)) == unbroken


def test_a_state_of_wrong_shapes_is_as_good_as_none(tmp_path, unbroken):
    break_off(tmp_path)
    for name in states(tmp_path):
        arrays = {key: array[:-1].copy() for key, array in load_file(tmp_path / name).items()}
        with open(tmp_path / name, "rb") as file:
            header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        save_file(arrays, tmp_path / name, metadata=header["__metadata__"])
    assert vectors(SPINE(**SETTINGS).fit(GRAPH, checkpoint=tmp_path)) == unbroken


def test_states_of_other_data_or_settings_are_passed_over(tmp_path, monkeypatch, unbroken):
    break_off(tmp_path)
    weighted = Graph(GRAPH.indptr, GRAPH.indices, np.full(len(GRAPH.indices), 2, np.float32))
    taken = steps_taken(monkeypatch)
    for graph, changes in ((GRAPH, {"seed": 1}), (GRAPH, {"steps": 59}), (weighted, {})):
        taken.clear()
        settings = {**SETTINGS, **changes}
        found = vectors(SPINE(**settings).fit(graph, checkpoint=tmp_path))
        assert taken[0] == 0
        assert found == vectors(SPINE(**settings).fit(graph))
    taken.clear()
    assert vectors(SPINE(**{**SETTINGS, "threads": 2}).fit(GRAPH, checkpoint=tmp_path)) == unbroken
    assert taken[0] > 0  # threads change no vector, so they change no run


@pytest.mark.parametrize(
    "graph", [GRAPH, Graph.from_edges([], num_nodes=1), Graph.from_edges([], num_nodes=3)]
)
def test_a_fit_without_steps_saves_nothing(tmp_path, graph):
    settings = {**SETTINGS, "steps": 0 if graph is GRAPH else 60}
    first = SPINE(**settings).fit(graph, checkpoint=tmp_path)
    again = SPINE(**settings).fit(graph, checkpoint=tmp_path)
    assert vectors(first) == vectors(again)
    if graph is GRAPH:
        assert os.listdir(tmp_path) == []


def test_a_file_is_no_folder_for_checkpoints(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ParameterError, match="is a file; checkpoint names a folder"):
        SPINE(**SETTINGS).fit(GRAPH, checkpoint=tmp_path / "file")


# A process that was killed


def start_fit(folder, settings):
    """Start a fit in another process, and return when it begins."""
    command = [sys.executable, "-c", CHILD, json.dumps(settings), folder]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert child.stdout.readline() == "ready\n"
    return child


@pytest.fixture(scope="module")
def long_fit(tmp_path_factory):
    """Return settings of a longer fit, its model, and the seconds that it takes in another process."""
    settings = {**SETTINGS, "steps": 400}
    with start_fit(tmp_path_factory.mktemp("whole"), settings) as child:
        start = time.monotonic()
        assert child.stdout.readline() == "done\n"
        seconds = time.monotonic() - start
    return settings, SPINE(**settings).fit(GRAPH), seconds


def assert_kills_change_nothing(folder, long_fit, how, times):
    """Kill fits at random moments and finish them; return how many were not finished when killed."""
    settings, expected, seconds = long_fit
    moments, stopped = random.Random(int(how)), 0
    for number in range(times):
        with start_fit(folder / str(number), settings) as child:
            time.sleep(moments.random() * seconds)
            child.send_signal(how)
            stopped += child.stdout.read() == ""
        resumed = SPINE(**settings).fit(GRAPH, checkpoint=folder / str(number))
        assert vectors(resumed) == vectors(expected), f"after stop {number}"
        assert resumed.history_ == expected.history_
    return stopped


@pytest.mark.parametrize(
    ("how", "times"),
    [(signal.SIGKILL, 1), (signal.SIGTERM, 1), (signal.SIGINT, 1)],
    ids=lambda value: str(value),
)
def test_a_killed_fit_goes_on_to_the_same_vectors(tmp_path, long_fit, how, times):
    assert_kills_change_nothing(tmp_path, long_fit, how, times)


@pytest.mark.slow
def test_twenty_random_moments_of_kill_9_change_nothing(tmp_path, long_fit):
    assert assert_kills_change_nothing(tmp_path, long_fit, signal.SIGKILL, 20) >= 10
