"""Files are replaced atomically."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from herdner.base.files import atomic_write


def test_the_file_appears_only_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_bytes(b"old")
    with atomic_write(path) as stream:
        stream.write(b"new")
        stream.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "model"

    def write() -> None:
        with atomic_write(path) as stream:
            stream.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert list(tmp_path.iterdir()) == []
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt):
        write()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(sys.platform == "win32", reason="needs links")
def test_a_link_is_kept(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    with atomic_write(link) as stream:
        stream.write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="needs /dev/null")
def test_a_device_is_written_to_directly() -> None:
    with atomic_write("/dev/null") as stream:
        stream.write(b"gone")
    assert not Path("/dev/null").is_file()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_errors_name_the_file_that_was_asked_for() -> None:
    with pytest.raises(OSError, match="No space left") as full, atomic_write("/dev/full") as stream:
        stream.write(b"much")
    assert full.value.filename == "/dev/full"
    with pytest.raises(OSError, match="/proc/file") as refused, atomic_write("/proc/file") as stream:
        stream.write(b"much")
    assert refused.value.filename == "/proc/file"


def test_a_large_folder_is_searched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a run that writes many files would take quadratic time."""
    looks: list[Path] = []
    iterdir = Path.iterdir
    monkeypatch.setattr(Path, "iterdir", lambda folder: looks.append(folder) or iterdir(folder))
    for i in range(50):
        with atomic_write(tmp_path / f"part-{i}") as stream:
            stream.write(b"x")
    assert looks == [tmp_path]


@pytest.mark.skipif(sys.platform == "win32", reason="needs locks that end with their process")
def test_temporary_files_of_killed_processes_are_removed(tmp_path: Path) -> None:
    kept = [".part-1.part", ".part-1.12-x.part", "part-1.12-34.part"]
    for name in (".part-1.12-34.part", ".part-2.5-6.part", *kept):
        (tmp_path / name).write_bytes(b"half")
    with atomic_write(tmp_path / "part-9") as stream:
        stream.write(b"x")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*kept, "part-9"])
