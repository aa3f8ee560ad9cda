"""A divergence is written with its symbols: typeset in figures and LaTeX, Unicode where text is read."""

from __future__ import annotations

import io

from matplotlib.figure import Figure

from vcpo_bench.records.steps import DIAGNOSTICS
from vcpo_bench.reports.plots.method_style import drawing
from vcpo_bench.reports.symbols import MATH, typeset
from vcpo_bench.reports.writers.tex import to_pgf
from vcpo_bench.reports.writers.tex_text import escape

KL = "D_KL(μ‖θ)"


def labeled(label: str) -> Figure:
    figure = Figure(figsize=(3.0, 2.0))
    typeset(figure.subplots().set_ylabel(label))
    return figure


def test_recorded_labels_use_the_symbol() -> None:
    assert DIAGNOSTICS["kl_mu_theta_k3"].axis_label() == KL
    assert DIAGNOSTICS["kl_mu_theta_k1"].axis_label() == f"{KL}, k1"


def test_figures_typeset_the_symbols_they_know_and_nothing_else() -> None:
    with drawing():
        figure, plain = labeled(f"{KL}, k1"), labeled("cost in $ and $")
        assert figure.axes[0].get_ylabel() == rf"{MATH[KL]}, k1"
        assert figure.axes[0].yaxis.label.get_parse_math()
        assert plain.axes[0].get_ylabel() == "cost in $ and $"
        assert not plain.axes[0].yaxis.label.get_parse_math()
        for kind in ("svg", "pdf"):
            figure.savefig(io.BytesIO(), format=kind)


def test_the_pgf_of_a_figure_holds_mathematics_that_pdflatex_knows() -> None:
    with drawing():
        text = to_pgf(labeled(f"{KL}, a_b"))
    assert r"D_{\mathrm{KL}}(\mu\,\|\,\theta)" in text
    assert r", a\_b" in text, "text beside it is still escaped"
    assert text.isascii()


def test_tables_for_latex_set_the_symbol_as_mathematics() -> None:
    assert escape(f"{KL}, 5%") == rf"{MATH[KL]}, 5\%"
    assert escape("‖∇ log π‖") == r"$\|$$\nabla$ log $\pi$$\|$"
    assert all(escape(symbol) == math for symbol, math in MATH.items())
