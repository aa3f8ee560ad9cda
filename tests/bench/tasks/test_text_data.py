"""Where the items of gsm8k and math come from: files, folders, the hub, the sample; and what is said when not."""

import json
import sys
from pathlib import Path
from types import ModuleType

import pyarrow
import pyarrow.parquet
import pytest

from vcpo_bench.bench.tasks.text import text_task
from vcpo_bench.bench.tasks.text.items.data_task import load_splits
from vcpo_bench.errors import UsageError


def rows(count: int, first: int = 0) -> list[dict[str, str]]:
    return [
        {"question": f"What is {n}+1?", "answer": f"{n}+1={n + 1}\n#### {n + 1}"} for n in range(first, first + count)
    ]


def write(path: Path, content: list[dict[str, str]]) -> Path:
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(content), path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in content) + "\n")
    return path


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_a_file_is_split_without_overlap(tmp_path: Path, ending: str) -> None:
    path = write(tmp_path / f"data.{ending}", rows(50))
    task = text_task(f"gsm8k(data={path})")
    train, held_out = task.items("train"), task.items("held_out")
    assert (len(train), len(held_out)) == (40, 10)
    assert not {item.prompt for item in train} & {item.prompt for item in held_out}
    assert train[0].prompt.startswith("What is 0+1?")
    assert train[0].answer == "1"
    assert task.item(0, 0, 0) in train


def test_a_large_file_holds_out_about_256_spread_evenly(tmp_path: Path) -> None:
    task = text_task(f"gsm8k(data={write(tmp_path / 'data.jsonl', rows(5000))})")
    held_out = [int(item.answer) for item in task.items("held_out")]
    assert 250 <= len(held_out) <= 270
    assert max(held_out) > 4900


def test_a_folder_and_a_test_file(tmp_path: Path) -> None:
    write(tmp_path / "train.parquet", rows(7))
    write(tmp_path / "test.jsonl", rows(3, first=100))
    own = write(tmp_path / "own.jsonl", rows(2, first=200))
    folder = text_task(f"gsm8k(data={tmp_path})")
    assert (len(folder.items("train")), len(folder.items("held_out"))) == (7, 3)
    both = text_task(f"gsm8k(data={tmp_path},test={own})")
    assert [item.answer for item in both.items("held_out")] == ["201", "202"]
    assert both.canonical != folder.canonical


def test_the_canonical_expression_holds_the_data_to_their_hash(tmp_path: Path) -> None:
    path = write(tmp_path / "data.jsonl", rows(10))
    canonical = text_task(f"gsm8k(data={path})").canonical
    assert ",sha=" in canonical
    assert text_task(canonical).canonical == canonical
    write(path, rows(10, first=1))
    with pytest.raises(UsageError, match="the data changed"):
        text_task(canonical)


def test_math_prefers_the_answer_field_to_the_box(tmp_path: Path) -> None:
    content = [{"problem": "p", "solution": r"\boxed{1}"}] * 4
    content.append({"problem": "q", "solution": r"see \boxed{2}", "answer": "3"})
    task = text_task(f"math(data={write(tmp_path / 'm.jsonl', content)})")
    assert [item.answer for item in task.items("held_out")] == ["3"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.jsonl", None, "does not exist; give a file, or data=sample"),
        ("a.csv", "question,answer", "is not a .jsonl or .parquet file"),
        ("a.jsonl", "", "contains no rows"),
        ("a.jsonl", "{}", "row 1 has no text in 'question'"),
        ("a.jsonl", '{"question": "x"}', "row 1 has no text in 'answer'; its fields: question"),
        ("a.jsonl", '{"question": "x", "answer": 5}', "row 1 has no text in 'answer'"),
        ("a.jsonl", "[1]", "line 1 is not an object"),
        ("a.jsonl", "{", "line 1 is not JSON"),
        ("a.jsonl", '{"question": "x", "answer": "no marks"}', "0 of 1 training rows have an answer"),
        ("a.parquet", "not parquet", "cannot be read as parquet"),
    ],
)
def test_unreadable_data_are_one_clear_line(tmp_path: Path, name: str, content: str | None, message: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_text(content)
    with pytest.raises(UsageError, match=r"\A[^\n]*\Z") as error:
        text_task(f"gsm8k(data={path})").items("train")
    assert message in str(error.value)


def test_a_folder_without_files_and_a_test_file_with_the_hub_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"holds no train\.jsonl or train\.parquet"):
        text_task(f"gsm8k(data={tmp_path})")
    with pytest.raises(UsageError, match="the hub has a test split of its own"):
        text_task("gsm8k(test=a.jsonl)")


def test_without_the_package_the_hub_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    load_splits.cache_clear()
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(UsageError, match=r"pip install datasets.*gsm8k\(data=FILE\.jsonl\), or gsm8k\(data=sample\)"):
        text_task("gsm8k").items("train")


def fake_hub(monkeypatch: pytest.MonkeyPatch, load: object) -> None:
    load_splits.cache_clear()
    module = ModuleType("datasets")
    module.load_dataset = load  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "datasets", module)


def test_an_unreachable_hub_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(*_: object, **__: object) -> None:
        raise ConnectionError("no route\nand a long trace")

    fake_hub(monkeypatch, load)
    with pytest.raises(UsageError, match=r"^math: cannot load DigitalLearningGmbH/MATH-lighteval.*\(no route\)[^\n]*$"):
        text_task("math").items("train")


def test_the_hub_gives_both_splits_and_a_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def load(repository: str, configuration: str, split: str) -> list[dict[str, str]]:
        asked.append((repository, configuration, split))
        return rows(4 if split == "train" else 2, first=10 * len(asked))

    fake_hub(monkeypatch, load)
    task = text_task("gsm8k")
    assert (len(task.items("train")), len(task.items("held_out"))) == (4, 2)
    assert asked == [("openai/gsm8k", "main", "train"), ("openai/gsm8k", "main", "test")]
    assert task.canonical.startswith("gsm8k(sha=")


def test_items_are_read_once_per_process(tmp_path: Path) -> None:
    path = write(tmp_path / "data.jsonl", rows(10))
    assert text_task(f"gsm8k(data={path})").items("train") is text_task(f"gsm8k(data={path})").items("train")


@pytest.mark.parametrize("name", ["gsm8k", "math"])
def test_the_sample_has_forty_items_of_our_own(name: str) -> None:
    task = text_task(f"{name}(data=sample)")
    items = [*task.items("train"), *task.items("held_out")]
    assert len({item.prompt for item in items}) == 40
    assert task.canonical == f"{name}(data=sample)"
