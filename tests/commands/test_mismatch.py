"""`vcpo-bench lab mismatch`: the table of the page, JSON, CSV, and what is refused."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
from command_line import call, refused

PAGE = Path(__file__).parents[2] / "docs" / "mismatch.md"
SMALL = ("--prompts", "4", "--responses", "2")


def test_the_page_shows_what_the_command_prints() -> None:
    page = PAGE.read_text(encoding="utf-8")
    typed, _, rest = page.split("```\n")[1].partition("\n")
    assert typed.startswith("vcpo-bench lab mismatch ")
    shown = call(*typed.split()[1:])
    assert shown.exit_code == 0, shown.output

    def rows(text: str) -> dict[str, list[str]]:
        found = re.findall(r"^(weights|head|kv-cache|top-p|lag|all of them) +(.*)$", text, flags=re.MULTILINE)
        return {name: cells.split() for name, cells in found}

    said, measured = rows(rest), rows(shown.output)
    assert set(said) == set(measured)
    assert len(said) == 6
    for name in said:
        for column in (1, 2):
            assert float(said[name][column]) == pytest.approx(float(measured[name][column]), rel=0.1), name
    assert shown.output.rstrip().endswith(page.split("```")[1].rstrip().splitlines()[-1].split(", ")[-1])


def test_json_and_csv_have_every_number(tmp_path: Path) -> None:
    out = tmp_path / "gap.csv"
    shown = call(
        "lab",
        "mismatch",
        *SMALL,
        "--components",
        "weights(fp16),lag(1)",
        "--length",
        "4,99",
        "--json",
        "--out",
        str(out),
    )
    assert shown.exit_code == 0, shown.output
    found: dict[str, Any] = json.loads(shown.stdout)
    assert [row["path"] for row in found["rows"]] == ["exact path", "weights(to=fp16)", "lag(k=1)", "all of them"]
    assert found["rows"][2]["extrapolated_lengths"] == [99]
    assert {"value", "low", "high", "verdict"} == set(found["sum_of_squares"])
    written = list(csv.DictReader(out.read_text().splitlines()))
    for row, kept in zip(found["rows"], written, strict=True):
        assert float(kept["sd"]) == row["sd"]
        assert float(kept["ess_at_99"]) == row["ess_at_99"]


def test_one_component_has_no_sum_and_nothing_is_trained_without_lag() -> None:
    shown = call("lab", "mismatch", *SMALL, "--components", "head", "--json")
    found = json.loads(shown.stdout)
    assert found["sum_of_squares"] is None
    assert len(found["rows"]) == 2


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["--components", "cache"], "cache"),
        (["--length", "12.5"], "--length 12.5: must be a whole number"),
        (["--sampler", "vllm"], "--sampler: applies only to language models"),
        (["--task", "lookup"], "has an environment"),
        (["--out", "nowhere/gap.csv"], "does not exist"),
    ],
)
def test_bad_requests_are_one_line(typed: list[str], said: str) -> None:
    assert said in refused("lab", "mismatch", *SMALL, *typed)


def test_components_are_listed_and_explained() -> None:
    assert "kv-cache" in call("ls", "components").output
    assert "fp8" in call("show", "component", "kv-cache").output
