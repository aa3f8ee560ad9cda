"""`vcpo-bench results cite`."""

import re
from pathlib import Path

import pytest
import yaml
from command_line import call, refused

import vcpo_bench
from vcpo_bench.commands.support.bibtex import papers
from vcpo_bench.methods import METHODS
from vcpo_bench.methods.assembly.papers import known_papers

ROOT = Path(__file__).parents[2]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())
PLUG_IN = '''
from dataclasses import dataclass
from vcpo_bench.methods.clip import Clip


@dataclass(frozen=True, kw_only=True)
class Mine(Clip):
    """Mine."""

    name = "mine-of-tomorrow"
    summary = "mine"
    reference = "Mine 2901.00001; Hers 2901.00002"
'''


def read(text: str) -> dict[str, dict[str, str]]:
    """The entries of a BibTeX file by key: `@KIND{KEY, NAME = {VALUE}, ...}`; outside of entries, anything but an @."""
    entries: dict[str, dict[str, str]] = {}
    assert text.count("{") == text.count("}")
    entry = re.compile(r"^@(\w+)\{([\w:-]+),\n(.*?)^\}$", re.MULTILINE | re.DOTALL)
    assert "@" not in entry.sub("", text)
    for kind, key, body in entry.findall(text):
        assert key not in entries, f"two entries {key}"
        fields = re.findall(r"^  (\w+) = \{(.*)\},$", body, re.MULTILINE)
        assert len(fields) == len(body.splitlines()), f"{kind} {key}: {body}"
        assert all(value.count("{") == value.count("}") and value for _, value in fields)
        entries[key] = dict(fields)
    return entries


def numbers(name: str) -> list[str]:
    return re.findall(r"[0-9]{4}\.[0-9]{5}", str(METHODS.kinds[name].reference))


def shown(*names: str) -> str:
    return "\n\n".join(papers(names).entries)


def test_the_suite_alone() -> None:
    (entry,) = read(call("results", "cite").stdout).values()
    assert entry["version"] == vcpo_bench.__version__
    assert entry["title"].replace("{", "").replace("}", "") == CITATION["title"]


@pytest.mark.parametrize(
    ("state", "note"),
    [
        ({"commit": "0123abcd", "uncommitted": False}, "Commit 0123abcd"),
        ({"commit": "0123abcd", "uncommitted": True}, "Commit 0123abcd, with changes"),
        ({"commit": None, "uncommitted": None}, None),
    ],
)
def test_the_commit_is_cited_where_it_is_known(
    state: dict[str, object], note: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vcpo_bench.commands.support.bibtex.code_state", lambda: state)
    (entry,) = read(call("results", "cite").stdout).values()
    assert entry.get("note") == note


def test_every_method_of_a_folder_is_cited(finished: Path) -> None:
    answer = call("results", "cite", str(finished))
    text = answer.stdout
    assert answer.stderr == ""
    assert read(text)["arxiv_1707_06347"]["title"] == "{Proximal Policy Optimization Algorithms}"  # clip is PPO's
    assert "% reinforce: Williams 1992" in text


def test_a_paper_of_several_methods_is_one_entry_that_names_them() -> None:
    text = call("results", "cite", "vcpo", "clip(high=0.28)+ess").stdout
    assert "% vcpo: VCPO 2602.17616\n% ess: VCPO 2602.17616\n@misc{arxiv_2602_17616," in text
    assert read(text)["arxiv_2602_17616"]["author"].startswith("Luke J. Huang and Zhuoyang Zhang and ")


def test_the_table_agrees_with_the_citation_file() -> None:
    for one in CITATION["references"]:
        paper = known_papers()[one["identifiers"][0]["value"].removeprefix("arXiv:")]
        assert paper.title == one["title"]
        assert paper.authors == " and ".join(f"{a['given-names']} {a['family-names']}" for a in one["authors"])


@pytest.mark.parametrize("name", sorted(METHODS.kinds))
def test_every_method_and_part_is_cited_by_the_papers_that_it_names(name: str) -> None:
    entries = read(shown(name))
    assert [entry["eprint"] for entry in entries.values()] == numbers(name)
    assert shown(name).startswith(f"% {name}: ")


def test_the_whole_catalog_is_one_bibliography() -> None:
    entries = read(shown(*sorted(METHODS.kinds)))
    named = {number for name in METHODS.kinds for number in numbers(name)}
    assert {entry["eprint"] for entry in entries.values()} == named
    assert {entry["eprint"] for entry in entries.values() if "author" in entry} == set(known_papers())


def test_every_paper_of_the_table_is_named_by_a_method() -> None:
    assert set(known_papers()) <= {number for name in METHODS.kinds for number in numbers(name)}


@pytest.mark.parametrize("number", sorted(known_papers()))
def test_titles_and_authors_are_what_bibtex_reads(number: str) -> None:
    title, authors = known_papers()[number]
    assert title == title.strip()
    assert not set("&%#_\t") & set(title)
    assert title.count("$") % 2 == 0
    names = authors.split(" and ")
    assert "others" not in names[:-1]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"\{[^{}]+\}|[^\W\d_][^\d{}&%#:;]*", one) for one in names), names


def test_a_method_that_the_table_does_not_know_is_cited_by_number(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(PLUG_IN)
    answer = call("results", "cite", "mine-of-tomorrow", "clip", "--plugin", str(tmp_path / "mine.py"))
    assert answer.stderr == "by number only, without title and authors: 2901.00001, 2901.00002\n"
    entries = read(answer.stdout)
    assert entries["arxiv_2901_00001"] == {
        "title": "{Mine}",
        "year": "2029",
        "eprint": "2901.00001",
        "archiveprefix": "arXiv",
        "url": "https://arxiv.org/abs/2901.00001",
    }
    assert entries["arxiv_2901_00002"]["title"] == "{Hers}"


def test_an_unknown_method_is_one_line() -> None:
    assert "did you mean vcpo" in refused("results", "cite", "vcop")
