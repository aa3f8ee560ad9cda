"""Writes the page of the scorecard, its verdicts, onsets and the tables of its registration, from the shipped tables.

    python tools/scorecard/page.py            # after run.py; without training
    python tools/scorecard/page.py --register # the tables of the registration instead; only before the first run

Facts 6 and 23 read tables of the phase study: run this again after `tools/phase_study/page.py`. A test fails when the
page is not current, or when the registration says something else than the code.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from study_pages.markers import filled

from scorecard.catalog import all_facts
from scorecard.non_inferiority import non_inferiority, profile
from scorecard.places import DOCS, FOLDER, NON_INFERIORITY, PAGE, PROFILE, REGISTRATION, VERDICTS
from scorecard.plan import plan_table, rule_table
from scorecard.render import TOOL, page
from scorecard.tables import RUNS, Tables


def main() -> None:
    """Judge every fact and write; or write the rules."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--register", action="store_true")
    if parser.parse_args().register:
        REGISTRATION.write_text(registration(REGISTRATION.read_text()))
        return
    tables = Tables.read(FOLDER, DOCS)
    text, verdicts = page(PAGE.read_text(), all_facts(), tables)
    PAGE.write_text(text)
    tables.with_onsets().to_csv(FOLDER / RUNS, index=False)
    non_inferiority(tables).to_csv(NON_INFERIORITY, index=False, float_format="%.6g")
    profile(tables).to_csv(PROFILE, index=False, float_format="%.6g")
    verdicts.to_csv(VERDICTS, index=False, float_format="%.6g")


def registration(text: str) -> str:
    """The registration with its tables of rules and runs made anew."""
    facts = all_facts()
    return filled(text, {"rules": rule_table(facts), "plan": plan_table(facts)}, TOOL)


if __name__ == "__main__":
    main()
