"""The runs of rules 1.0 made again: the words that were registered, and no run missing."""

import pandas as pd
import prediction_again
import pytest
from prediction_again import FIRST, PLACE, fates, told

from vcpo_bench.analysis.prediction.panel import TOO_FEW
from vcpo_bench.errors import UsageError


def test_the_registered_words() -> None:
    assert told(0.51, 0.9) == "can tell"
    assert told(0.2, 0.49) == "cannot"
    assert told(0.4, 0.9) == "undecided"
    assert told(float("nan"), float("nan")) == TOO_FEW


def test_fates_side_by_side_and_none_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    first = pd.read_csv(FIRST)
    assert len(first) == 672
    now = first.assign(event="stall").sample(frac=1.0, random_state=0)
    monkeypatch.setattr(prediction_again, "events", lambda results: now)
    both = fates(None, first)  # type: ignore[arg-type]
    assert len(both) == len(first)
    assert set(both["event"]) == {"stall"}
    assert both["event_first"].value_counts().to_dict() == first["event"].value_counts().to_dict()
    assert not both.duplicated(PLACE).any()
    monkeypatch.setattr(prediction_again, "events", lambda results: now.iloc[1:])
    with pytest.raises(UsageError, match="671 runs, of which 671 are among the 672 first ones"):
        fates(None, first)  # type: ignore[arg-type]
