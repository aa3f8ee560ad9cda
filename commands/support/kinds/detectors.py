"""Detectors: the calibrated alarms that ship with the package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vcpo_bench.commands.support.kinds.base import Listing, PageKind, facts
from vcpo_bench.naming.grammar import first_name

if TYPE_CHECKING:
    from vcpo_bench.analysis.monitoring.calibration import Calibration, Rate


class DetectorKind(PageKind):
    """The detectors that `run --stop-on-alarm` and the monitor choose from, by the signal they watch."""

    singular, plural = "detector", "detectors"

    def listing(self) -> Listing:
        """Signal, measured false alarms, recall and lead of each."""
        from vcpo_bench.analysis.monitoring.calibration import load_calibrations

        rows = [
            (
                one.detector.signal,
                _rate(one.false_alarms),
                _rate(one.recall),
                "-" if one.median_lead is None else f"{one.median_lead:g}",
            )
            for one in load_calibrations()
        ]
        note = "False alarms per 1,000 updates of healthy runs. Recall: share of collapses announced in time."
        return Listing(("signal", "false alarms", "recall", "median lead (updates)"), rows, note)

    def page(self, name: str) -> list[str]:
        """The detectors of one signal, or the one that an expression describes, with what was measured of them."""
        from vcpo_bench.analysis.monitoring.calibration import load_calibrations
        from vcpo_bench.analysis.monitoring.stop_on_alarm import stop_detector

        known = load_calibrations()
        signal = first_name(name)
        found = [one for one in known if one.detector.signal == signal]
        if name != signal:
            found = [stop_detector(name, "full")]
        if not found:
            raise self.unknown(name, {one.detector.signal for one in known})
        return [line for one in found for line in _page(one)]


def _page(one: Calibration) -> list[str]:
    lead = "" if one.median_lead is None else f"{one.median_lead:g} updates before the collapse (median)"
    return [
        one.detector.text,
        *facts(
            [
                ("alarms", one.words),
                ("recall", _rate(one.recall)),
                ("lead", lead),
                ("use", f'vcpo-bench run --detector "{one.detector.text}"'),
            ]
        ),
    ]


def _rate(rate: Rate | None) -> str:
    return "-" if rate is None else f"{rate.value:.2g} [{rate.low:.2g}, {rate.high:.2g}]"
