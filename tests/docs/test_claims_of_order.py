"""Pages do not say that something was fixed before runs that are older."""

from pathlib import Path

from page_prose import STUDIES, prose

DOCS = STUDIES.parent
SOURCE = (DOCS.parent / "analysis" / "monitoring" / "signal.py").read_text(encoding="utf-8")


def test_when_the_primary_endpoint_of_prediction_was_named() -> None:
    assert "named before any run" not in prose(DOCS / "analysis.md")
    said = "It was named after a [first study](studies/first-comparison.md) had been judged"
    assert said in prose(DOCS / "analysis.md")
    assert "It was named after 70 runs of an [earlier study](first-comparison.md) had been judged" in prose(
        STUDIES / "points.md"
    )
    assert "This page held 70 runs" in prose(STUDIES / "first-comparison.md")


def test_which_tables_are_corrected() -> None:
    corrected = {path.stem for path in (STUDIES / "prediction" / "tables").glob("*.csv") if "p_holm" in heading(path)}
    assert corrected == {"auroc", "increment", "hazard"}
    assert "the tables `auroc`, `increment` and `hazard` have p-values after Holm's correction" in prose(
        DOCS / "analysis.md"
    )


def heading(table: Path) -> list[str]:
    """The names of the columns of a table."""
    return table.read_text(encoding="utf-8").splitlines()[0].split(",")


def test_when_the_signs_of_signals_were_chosen() -> None:
    assert "before any run" not in SOURCE.split('"""')[1]


def test_what_the_pages_on_prediction_ask() -> None:
    page, boundary = (prose(STUDIES / name / "README.md") for name in ("prediction", "boundary"))
    assert "The question of this page is which runs fail, over all configurations." in page
    assert "asks which seeds of one configuration fail, where seeds differ in fate" in page
    assert "# Which seed will fail?" in boundary


def test_over_which_tasks_results_are() -> None:
    boundary = (STUDIES / "boundary" / "README.md").read_text(encoding="utf-8")
    assert "\n## Task by task\n" in boundary
    for page in (DOCS / "findings.md", DOCS.parent / "README.md"):
        assert "two exceptions: *Which seed will fail* gives means over three tasks and *Which configuration" in prose(
            page
        )
        assert "each task is reported separately" not in prose(page)
