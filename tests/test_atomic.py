"""Files and folders written whole or not at all."""

import os
import subprocess
import sys
import time

import numpy as np
import pytest

from spinegraph import atomic
from spinegraph.errors import MissingFileError, OutputError


def names(folder):
    return sorted(os.listdir(folder))


def write_half_a_file(path, fault):
    with atomic.whole_file(path) as partial:
        partial.write_text("half")
        raise fault


def write_half_a_folder(path, fault):
    with atomic.whole_folder(path) as partial:
        (partial / "new.txt").write_text("new")
        raise fault


def test_a_file_appears_only_when_it_is_whole(tmp_path):
    with atomic.whole_file(tmp_path / "note.txt") as partial:
        partial.write_text("whole")
        assert not (tmp_path / "note.txt").exists()
        assert partial.parent == tmp_path
    assert names(tmp_path) == ["note.txt"]


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path):
    (tmp_path / "note.txt").write_text("old")
    with pytest.raises(KeyboardInterrupt):
        write_half_a_file(tmp_path / "note.txt", KeyboardInterrupt())
    assert names(tmp_path) == ["note.txt"]
    assert (tmp_path / "note.txt").read_text() == "old"


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(MissingFileError, match=r"the folder .*nowhere does not exist; create it first"):
        write_half_a_file(tmp_path / "nowhere" / "note.txt", AssertionError())


def test_a_folder_is_replaced_whole(tmp_path):
    for text in ("old", "new"):
        with atomic.whole_folder(tmp_path / "notes") as partial:
            (partial / f"{text}.txt").write_text(text)
    assert names(tmp_path) == ["notes"]
    assert names(tmp_path / "notes") == ["new.txt"]


def test_an_error_leaves_the_old_folder(tmp_path):
    with atomic.whole_folder(tmp_path / "notes") as partial:
        (partial / "old.txt").write_text("old")
    with pytest.raises(OSError, match="full"):
        write_half_a_folder(tmp_path / "notes", OSError("disk full"))
    assert names(tmp_path) == ["notes"]
    assert names(tmp_path / "notes") == ["old.txt"]


def test_a_link_to_a_folder_stays_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with atomic.whole_folder(tmp_path / "link") as partial:
        (partial / "note.txt").write_text("new")
    assert (tmp_path / "link").is_symlink()
    assert names(tmp_path / "real") == ["note.txt"]


def test_only_old_leftovers_of_the_same_name_are_swept_away(tmp_path):
    old, young, other = (tmp_path / f".{name}.tmp" for name in ("note.txt.1", "note.txt.2", "else.txt.1"))
    for left in (old, young, other):
        left.write_text("half")
    for left in (old, other):
        os.utime(left, (time.time() - 7200,) * 2)
    with atomic.whole_file(tmp_path / "note.txt") as partial:
        partial.write_text("whole")
    assert names(tmp_path) == [".else.txt.1.tmp", ".note.txt.2.tmp", "note.txt"]


def test_a_slow_writer_keeps_its_temporary_folder(tmp_path):
    hour_ago = (time.time() - 7200,) * 2
    growing = tmp_path / ".model.1.tmp"  # without a process in its name, but a file in it is new
    growing.mkdir()
    (growing / "part").write_text("half")
    os.utime(growing, hour_ago)
    with atomic.whole_folder(tmp_path / "model") as slow:
        (slow / "part").write_text("half")
        for left in (slow / "part", slow):
            os.utime(left, hour_ago)
        atomic.sweep(tmp_path, "model")  # as another writer begins
        assert (slow / "part").exists()
    assert names(tmp_path) == [".model.1.tmp", "model"]


def test_files_get_the_permissions_of_any_new_file(tmp_path):
    (tmp_path / "plain.txt").write_text("")
    with atomic.whole_file(tmp_path / "note.txt") as partial:
        partial.write_text("whole")
    assert (tmp_path / "note.txt").stat().st_mode == (tmp_path / "plain.txt").stat().st_mode


KILLED = """
import os, sys
from spinegraph import atomic

def rename(source, target, original=os.rename, calls=[]):
    calls.append(target)
    if len(calls) == int(sys.argv[2]):
        os._exit(9)
    original(source, target)

os.rename = rename
with atomic.whole_folder(sys.argv[1]) as partial:
    (partial / "new.txt").write_text("new")
"""


@pytest.mark.parametrize(("killed_before", "found"), [(1, "old.txt"), (2, "old.txt"), (3, "new.txt")])
def test_a_kill_between_renames_leaves_a_whole_folder(tmp_path, killed_before, found):
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "old.txt").write_text("old")
    run = subprocess.run([sys.executable, "-c", KILLED, folder, str(killed_before)])
    assert run.returncode == 9
    assert folder.exists() == (killed_before != 2)
    atomic.recover(folder)
    assert names(folder) == [found]
    for left in [*tmp_path.glob(".*.tmp/*"), *tmp_path.glob(".*.tmp")]:  # as if an hour had passed
        os.utime(left, (time.time() - 7200,) * 2)
    with atomic.whole_folder(folder) as partial:
        (partial / "newest.txt").write_text("newest")
    assert names(tmp_path) == ["notes"]
    assert names(folder) == ["newest.txt"]


def test_a_reader_that_recovers_the_old_folder_does_not_stop_the_writer(tmp_path, monkeypatch):
    folder, original = tmp_path / "notes", os.rename
    with atomic.whole_folder(folder) as partial:
        (partial / "old.txt").write_text("old")
    readers = [folder]

    def rename(source, target):
        if target == folder and readers:
            atomic.recover(readers.pop())
            assert names(folder) == ["old.txt"]
        original(source, target)

    monkeypatch.setattr(os, "rename", rename)
    with atomic.whole_folder(folder) as partial:
        (partial / "new.txt").write_text("new")
    assert names(tmp_path) == ["notes"]
    assert names(folder) == ["new.txt"]


def test_an_error_at_the_second_rename_brings_the_old_folder_back(tmp_path, monkeypatch):
    folder, original = tmp_path / "notes", os.rename
    with atomic.whole_folder(folder) as partial:
        (partial / "old.txt").write_text("old")

    def rename(source, target):
        if target == folder and source.suffix == ".tmp":
            raise OSError(28, "No space left on device")
        original(source, target)

    monkeypatch.setattr(os, "rename", rename)
    with pytest.raises(OutputError, match="No space left"), atomic.whole_folder(folder) as partial:
        (partial / "new.txt").write_text("new")
    assert names(tmp_path) == ["notes"]
    assert names(folder) == ["old.txt"]


def test_a_place_that_cannot_be_written_is_named_and_its_temporary_file_is_not(tmp_path):
    with pytest.raises(OutputError, match=r"note\.txt: cannot be written \(No space left on device\)"):
        write_half_a_file(tmp_path / "note.txt", OSError(28, "Error writing bytes to file"))
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"below: cannot be written \(Not a directory\)"):
        atomic.make_folder(tmp_path / "file" / "below")
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("umask", [0o022, 0o027, 0o077])
def test_arrays_have_the_permissions_of_any_new_file(tmp_path, umask):
    before = os.umask(umask)
    try:
        atomic.write_arrays(tmp_path / "arrays.safetensors", {"a": np.zeros(3)})
    finally:
        os.umask(before)
    assert (tmp_path / "arrays.safetensors").stat().st_mode & 0o777 == 0o666 & ~umask
