"""Maps: private files, conflicts, locks, and what a broken file says."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdner.ner.pseudonyms import pseudonym_map
from herdner.ner.pseudonyms.pseudonym_map import MapError, MappedName, PseudonymMap


def sample() -> PseudonymMap:
    names = PseudonymMap(id="0123")
    names.add(MappedName("PER", "Ana Rivera", "Person 1", {"Ana Rivera": "Person 1", "Rivera": "Person 1b"}))
    names.add(MappedName("PHONE", "020 7031 3000", "Phone 1", {"020 7031 3000": "Phone 1"}), "+442070313000")
    return names


def test_map_is_private_and_survives_a_file(tmp_path: Path) -> None:
    path = tmp_path / "map.json"
    path.write_text("{}")
    path.chmod(0o644)
    names = sample()
    names.reserved.add("miller")
    names.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    loaded = PseudonymMap.load(path)
    assert loaded.to_dict() == names.to_dict()
    assert loaded.find("PHONE", "+442070313000") is not None
    assert loaded.restore("Person 1b, Phone 1") == "Rivera, 020 7031 3000"


def test_new_map_is_never_readable_by_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modes = []
    monkeypatch.setattr(os, "fsync", lambda file: modes.append(stat.S_IMODE(os.fstat(file).st_mode)))
    sample().save(tmp_path / "map.json")
    assert modes == [0o600]


def form(pseudonym: str, original: str) -> dict[str, str]:
    return {"pseudonym": pseudonym, "original": original}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["names"][1]["forms"].append(form("Person 1", "Bo")), "stands for 'Ana Rivera' and for 'Bo'"),
        (lambda d: d["names"][1].update(pseudonym="Person 1"), "`Person 1` stands for 'Ana Rivera' and for "),
        (lambda d: d["names"].append({**d["names"][0], "pseudonym": "X 9"}), "has the entries `Person 1` and `X 9`"),
        (lambda d: d["names"][0]["forms"].append(form("X 7", "Rivera")), "has the pseudonyms `Person 1b` and `X 7`"),
        (lambda d: d["names"][0]["forms"].append(form(" ", "X")), "name 0"),
        (lambda d: d["names"].append(5), "name 2 is 5; expected an object with the keys `label`"),
        (lambda d: d["names"][0].pop("label"), "name 0 is"),
        (lambda d: d["names"][0].update(words=[]), "name 0 is"),
        (lambda d: d.update(style="loud"), "`style` must be one of numbered, realistic, hash"),
        (lambda d: d.update(version=2), "`version` must be 1, got 2"),
        (lambda d: d.pop("format"), "is not a map of pseudonyms"),
    ],
)  # fmt: skip
def test_conflicts_and_other_faults_are_one_line(tmp_path: Path, change, message: str) -> None:
    values = sample().to_dict()
    change(values)
    path = tmp_path / "map.json"
    path.write_text(json.dumps(values))
    with pytest.raises(MapError) as error:
        PseudonymMap.load(path)
    assert message in str(error.value)
    assert str(error.value).startswith(f"{path}: ")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("data", [b"", b"[]", b"\xff\xfe", b"[" * 100_000, b'{"format": "herdner pseudonyms"'])
def test_files_that_are_no_map(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "map.json"
    path.write_bytes(data)
    with pytest.raises(MapError, match="map of pseudonyms"):
        PseudonymMap.load(path)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs the device /dev/zero")
def test_endless_devices_are_refused() -> None:
    with pytest.raises(MapError, match="/dev/zero: the path is a device"):
        PseudonymMap.load("/dev/zero")
    with pytest.raises(MapError, match="/dev/zero: the path is a device"), PseudonymMap.open("/dev/zero"):
        pass


@given(st.lists(st.tuples(st.integers(0, 10_000), st.sampled_from([*b'{}[]",: \\0P1\xff', None])), max_size=4))
def test_altered_maps_are_read_or_refused(changes: list[tuple[int, int | None]]) -> None:
    data = bytearray(json.dumps(sample().to_dict()).encode())
    for position, byte in changes:
        position %= len(data)
        data[position : position + 1] = b"" if byte is None else bytes([byte])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "map.json"
        path.write_bytes(data)
        with suppress(MapError):
            names = PseudonymMap.load(path)
            assert PseudonymMap.from_dict(names.to_dict()).to_dict() == names.to_dict()


def test_size_is_checked_before_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "map.json"
    sample().save(path)
    monkeypatch.setattr(pseudonym_map, "MAX_BYTES", 10)
    with pytest.raises(MapError, match="at most 10"):
        PseudonymMap.load(path)


def test_open_saves_also_after_an_error_and_excludes_others(tmp_path: Path) -> None:
    path = tmp_path / "map.json"
    with suppress(KeyError), PseudonymMap.open(path) as names:
        assert path.exists()
        with pytest.raises(MapError, match="another process is using this map"), PseudonymMap.open(path):
            pass
        names.add(MappedName("PER", "Bo", "Person 1", {"Bo": "Person 1"}))
        raise KeyError
    with PseudonymMap.open(path) as names:
        assert names.restore("Person 1") == "Bo"
    with pytest.raises(MapError, match="has the style numbered, not hash"), PseudonymMap.open(path, "hash"):
        pass
    with pytest.raises(ValueError, match="`style` must be one of"):
        PseudonymMap("loud")
