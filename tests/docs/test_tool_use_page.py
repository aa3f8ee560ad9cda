"""What the page on tool use says by hand of the cost of lag is in its tables."""

import pandas as pd
from page_prose import STUDIES, prose

FOLDER = STUDIES / "tool-use"
TEXT = prose(FOLDER / "README.md")


def test_what_lag_costs_uncorrected_reinforce() -> None:
    lost = -pd.read_csv(FOLDER / "lag.csv").query("method == 'reinforce'").set_index("task")["value"]
    levels = pd.read_csv(FOLDER / "levels.csv").query("method == 'reinforce' and staleness == 0").set_index("task")
    share = lost / levels["final_reward"]
    guess = f"{lost['guess']:.2f} of reward on `guess` ({share['guess']:.0%} of what it has at lag 0)"
    lookup = f"{lost['lookup']:.2f} on `lookup` ({share['lookup']:.0%})"
    said = f"Lag 8 costs uncorrected `reinforce` {guess} and {lookup}, and VCPO no more than the margin on either"
    assert said in TEXT
    assert (lost > 0.05).all()


def test_what_it_costs_vcpo() -> None:
    own = pd.read_csv(FOLDER / "lag.csv").query("method == 'vcpo'")
    assert own["verdict"].str.contains("equivalent").all()
