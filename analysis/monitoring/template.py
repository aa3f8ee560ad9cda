"""The texts of a signal of one's own and its test, for `naming.template.write_new`."""

MODULE = '''"""{title}: say here what it warns of."""

from vcpo_bench.analysis.monitoring.signal import Array, signal


@signal("weights", name="{name}")
def {module}(share_clipped: Array, kl_mu_theta_k3: Array) -> Array:
    """Tokens clipped, times token KL; greater is more dangerous."""
    return share_clipped * kl_mu_theta_k3
'''

TEST = '''"""{title} is what its formula says, and an online detector can watch it."""

from pathlib import Path

import numpy as np
import pandas as pd

from vcpo_bench.analysis.monitoring.signal import SIGNALS
from vcpo_bench.analysis.monitoring.stop_on_alarm import StopOnAlarm
from vcpo_bench.naming.plugins import load_plugin

FILE = Path(__file__).with_name("{module}.py")
if FILE.exists():  # beside its test it is a plug-in; in `analysis/monitoring/signals/` it is found without
    load_plugin(FILE)

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
