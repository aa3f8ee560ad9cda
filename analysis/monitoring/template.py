"""The texts of a signal of one's own and its test, for `naming.template.write_new`."""

SEPARATOR = "_"

MODULE = '''"""{title}: say here what it warns of."""

from typing import ClassVar

from vcpo_bench.analysis.monitoring.signal import Array, Role, Signal, Updates, column


class {cls}(Signal):
    """Greater is more dangerous."""

    name: ClassVar[str] = "{name}"
    summary: ClassVar[str] = "tokens clipped, times token KL"
    role: ClassVar[Role] = "weights"
    columns: ClassVar[tuple[str, ...]] = ("share_clipped", "kl_mu_theta_k3")

    def formula(self, steps: Updates) -> Array:
        """Values [S] at each update, from this update and earlier ones alone."""
        return column(steps, "share_clipped") * column(steps, "kl_mu_theta_k3")
'''

TEST = '''"""{title} is what its formula says, and an online detector can watch it."""

from pathlib import Path

import numpy as np
import pandas as pd

from vcpo_bench.analysis.monitoring.signal import SIGNALS
from vcpo_bench.analysis.monitoring.stop_on_alarm import StopOnAlarm
from vcpo_bench.naming.plugins import load_plugin

load_plugin(Path(__file__).with_name("{module}.py"))
STEPS = pd.DataFrame({{"step": [0, 1], "share_clipped": [0.1, 0.5], "kl_mu_theta_k3": [0.01, 0.2]}})


def test_it_is_the_product() -> None:
    np.testing.assert_allclose(SIGNALS.parse("{name}").of(STEPS), [0.001, 0.1])


def test_without_a_column_nothing_is_said() -> None:
    assert np.isnan(SIGNALS.parse("{name}").of(STEPS.drop(columns="share_clipped"))).all()


def test_a_detector_watches_it_online() -> None:
    stop = StopOnAlarm("{name}(window=1,threshold=0.05)")
    said = [stop.observe(row) for row in STEPS.to_dict("records")]
    assert said == ["", "alarm: {name} 0.1 > 0.05 at step 1"]
'''
