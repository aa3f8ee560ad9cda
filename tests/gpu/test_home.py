"""What a call brings home continues elsewhere, weights arrive in parts, and results become tables of a study."""

import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

sys.path.insert(0, str(Path(__file__).parent))

import home
import kit
import launch
import ledger
import parts
import stages
import start
import tables
from stages import study

from studies import pages

STEP = stages.STAGES[2][0]


def place(folder: Path) -> launch.Place:
    return launch.Place.of("cpu", True, folder / "work")


def record(where: launch.Place, **facts: object) -> None:
    facts = {"name": STEP.name, "stage": 2, "device": "cpu", "tiny": True} | facts
    ledger.write(ledger.path_of(where.folder, 2, STEP.name), facts)


def cell(where: launch.Place, name: str, data: bytes = b"steps") -> Path:
    folder = where.folder / home.STUDIES / "readme" / "cells" / name
    folder.mkdir(parents=True)
    (folder / "cell.json").write_text("{}")
    (folder / "steps.parquet").write_bytes(data)
    return folder


def test_another_machine_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Measurements and ended cells arrive; what is there already stays, and nothing that runs is taken along."""
    monkeypatch.setattr(home, "PART", 100)
    out = tmp_path / "out"
    out.mkdir()
    first, second = place(tmp_path / "one"), place(tmp_path / "two")
    home.restore(second, tmp_path / "nothing")
    cell(first, "ended", bytes(range(256)))
    cell(first, "running.partial")
    spent = Path(home.STUDIES) / "readme.seconds.json"
    (first.folder / spent).write_text("[3.5]")
    record(first, status="unfinished", result={"ended": 1})
    home.bring(first, out)
    assert len(list(out.glob("cells-cpu-tiny.*"))) > 1
    assert max(path.stat().st_size for path in out.glob("cells-*")) <= 100
    own = cell(second, "here", b"own")
    home.restore(second, out)
    cells = second.folder / home.STUDIES / "readme" / "cells"
    assert sorted(path.name for path in cells.iterdir()) == ["ended", "here"]
    assert (cells / "ended" / "steps.parquet").read_bytes() == bytes(range(256))
    assert (second.folder / spent).read_text() == "[3.5]"
    assert ledger.read(ledger.path_of(second.folder, 2, STEP.name))["result"] == {"ended": 1}
    record(second, status="ok", result={"ended": 2})
    home.bring(second, out)
    home.restore(second, out)
    assert (own / "steps.parquet").read_bytes() == b"own"
    assert ledger.in_turn([STEP], 2, second) == []
    home.restore(first, out)  # its own record is older, and stays: a machine knows best what it has
    assert ledger.in_turn([STEP], 2, first) == [STEP]


def test_files_arrive_in_parts_over_several_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "PART", 10)
    file = tmp_path / "smollm2.whl"
    file.write_bytes(bytes(range(25)))
    cut = parts.cut(file, tmp_path / "cut")
    assert [path.stat().st_size for path in cut] == [10, 10, 5]
    work, carried = tmp_path / "work", tmp_path / "carried"
    (carried / file.name).mkdir(parents=True)
    for path in reversed(cut):  # one call each, and only that part is there
        assert parts.model(work) is None
        there = path.rename(carried / file.name / path.name)
        parts.collect(work, carried)
        there.unlink()
    assert (work / file.name).read_bytes() == file.read_bytes()


def test_a_damaged_part_is_refused(tmp_path: Path) -> None:
    (tmp_path / "some.start").write_bytes(b"weights")
    (part,) = parts.cut(tmp_path / "some.start", tmp_path / "cut")
    part.write_bytes(b"others!")
    with pytest.raises(ValueError, match="carry all of them again"):
        parts.collect(tmp_path / "work", tmp_path / "cut")
    assert not (tmp_path / "work" / "some.start").exists()


def test_a_start_is_the_same_on_every_machine(tmp_path: Path) -> None:
    """Packed in a quarter of the bytes of float32, and within half a step of the row's largest weight."""
    model = tmp_path / "sums"
    model.mkdir()
    weights = {"w": torch.randn(64, 256, generator=torch.Generator().manual_seed(0)), "norm": torch.ones(256)}
    weights["w"][3] = 0.0
    save_file(weights, model / start.WEIGHTS)
    (model / "config.json").write_text("{}")
    packed = start.pack(model)
    assert packed.stat().st_size < 64 * 256 * 1.3
    one, two = (start.unpack(packed, tmp_path / name) for name in ("one", "two"))
    assert [(path.name, path.read_bytes()) for path in sorted(one.iterdir())] == [
        (path.name, path.read_bytes()) for path in sorted(two.iterdir())
    ]
    found = load_file(one / start.WEIGHTS)
    assert torch.equal(found["norm"], weights["norm"].bfloat16())
    assert not found["w"][3].any()
    error = (found["w"].float() - weights["w"]).abs() / weights["w"].abs().amax(1, keepdim=True).clamp(min=1e-9)
    assert error.max() < 0.5 / 127 + 2**-8


def test_cells_of_a_study_are_the_same_on_every_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Left to free memory, the size of a pass, which is part of a cell's key, was another on a GPU of 80 GB."""
    asked: list[object] = []
    monkeypatch.setattr(study, "_start", lambda setup, of, name, task, makes: setup.work / name)
    monkeypatch.setattr(study, "run_grid", lambda setup, results, summarize, *flags: asked.extend(flags) or {})
    study.train(kit.Setup("cuda", False, tmp_path, lambda: 60.0), **stages.STAGES[7][0].arguments)
    assert asked[asked.index("--micro-tokens") + 1] == 8192


def test_a_start_that_was_not_carried_is_made_once_from_the_released_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[tuple[object, ...]] = []

    def warm_up(setup: kit.Setup, *arguments: object) -> float:
        called.append(arguments)
        out = Path(str(arguments[arguments.index("--out") + 1]))
        out.mkdir(parents=True)
        save_file({"w": torch.ones(2, 3), "norm": torch.ones(3)}, out / start.WEIGHTS)
        (out / "config.json").write_text("{}")
        return 0.0

    monkeypatch.setattr(study, "call", warm_up)
    monkeypatch.setattr(study, "weights", lambda setup: setup.work / "smollm2.gguf")
    setup = kit.Setup("cuda", False, tmp_path, lambda: 60.0)
    first, again = (study._start(setup, "first", "sums", "running-sums", makes=True) for _ in range(2))
    assert first == again == tmp_path / "sums"
    assert (tmp_path / "sums.start").exists()
    ((verb, kind, *flags),) = called
    asked = dict(zip(flags[::2], flags[1::2], strict=True))
    assert (verb, kind, asked["--device"], asked["--task"]) == ("lab", "warmup", "cuda", "running-sums")
    assert asked["--model"] == tmp_path / "smollm2.gguf"


@pytest.mark.parametrize(
    ("there", "makes"), [("parts/sums.start", True), ("studies/first-lag_16/cells/one", True), ("studies", False)]
)
def test_no_second_start_is_made_for_a_grid_that_has_begun_or_has_that_of_another_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: str, makes: bool
) -> None:
    (tmp_path / there).mkdir(parents=True)
    monkeypatch.setattr(study, "call", lambda *_: pytest.fail("made another start"))
    with pytest.raises(kit.Unfinished, match=r"sums\.start is not here"):
        study._start(kit.Setup("cuda", False, tmp_path, lambda: 60.0), "first", "sums", "running-sums", makes)


def test_results_make_a_page(tmp_path: Path) -> None:
    where, out, study = place(tmp_path), tmp_path / "out", tmp_path / "study"
    out.mkdir()
    batches = [{"loop": "graph", "best": 0.25}, {"loop": "torch", "best": 2.0, "error": "lost"}]
    record(where, status="ok", seconds=3.0, result={"model": "smollm2", "batches": batches})
    home.bring(where, out)
    assert [path.name for path in tables.write(out, study / "tables")] == ["measurements.csv", "batches.csv"]
    template = study / "page.md.j2"
    template.write_text(
        "{% for row in table('batches.csv').itertuples() %}{{ row.model }} {{ row.loop }} {{ row.best | fixed }}\n"
        "{% endfor %}{{ table('measurements.csv').status[0] }}\n"
    )
    assert pages.rendered(template).splitlines()[0].startswith("smollm2 graph 0.25")
