"""Detectors: the calibrated alarms that ship with the package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vcpo_bench.commands.support.kinds.base import Kind, Listing, facts
from vcpo_bench.naming.grammar import first_name

if TYPE_CHECKING:
    from vcpo_bench.analysis.monitoring.calibration import Calibration, Rate


class DetectorKind(Kind):
    """The detectors that `run --stop-on-alarm` and the monitor choose from, by the signal they watch."""

    singular, plural = "detector", "detectors"

    def listing(self) -> Listing:
        """Signal, measured false alarms, recall and lead of each."""
        from vcpo_bench.analysis.monitoring.calibration import load_calibrations

        rows = [
            (
                calibration.detector.signal,
                _rate(calibration.false_alarms),
                _rate(calibration.recall),
                "-" if calibration.median_lead is None else f"{calibration.median_lead:g}",
            )
            for calibration in load_calibrations()
        ]
        note = "False alarms per 1,000 updates of healthy runs. Recall: share of collapses announced in time."
        return Listing(("signal", "false alarms", "recall", "median lead (updates)"), rows, note)

    def page(self, name: str) -> list[str]:
        """The detectors of one signal, or the one that an expression describes, with what was measured of them."""
        from vcpo_bench.analysis.monitoring.calibration import load_calibrations
        from vcpo_bench.analysis.monitoring.stop_on_alarm import stop_detector

        known = load_calibrations()
        signal = first_name(name)
        of_signal = [calibration for calibration in known if calibration.detector.signal == signal]
        if name != signal:
            of_signal = [stop_detector(name, "full")]
        if not of_signal:
            raise self.unknown(name, {calibration.detector.signal for calibration in known})
        return [line for calibration in of_signal for line in _page(calibration)]


def _page(calibration: Calibration) -> list[str]:
    lead = (
        "" if calibration.median_lead is None else f"{calibration.median_lead:g} updates before the collapse (median)"
    )
    return [
        calibration.detector.text,
        *facts(
            [
                ("alarms", calibration.words),
                ("recall", _rate(calibration.recall)),
                ("lead", lead),
                ("use", f'vcpo-bench run --detector "{calibration.detector.text}"'),
            ]
        ),
    ]


def _rate(rate: Rate | None) -> str:
    return "-" if rate is None else f"{rate.value:.2g} [{rate.low:.2g}, {rate.high:.2g}]"
