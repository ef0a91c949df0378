"""The page of several models at once: what every plan did, and when which model ran on which core."""

from __future__ import annotations

from collections.abc import Sequence

from bokeh.models import Range1d
from bokeh.plotting import figure

from ov_autoplace._base.text import milliseconds
from ov_autoplace.application.answer import ApplicationPlan
from ov_autoplace.application.tables import parts_table, plans_table
from ov_autoplace.explain.summary import Fact
from ov_autoplace.measure.workload import Span
from ov_autoplace.report.bars import HALF, Bars, draw_bars, draw_labels
from ov_autoplace.report.charts import plain, rows_chart
from ov_autoplace.report.document import chart, document, facts_list, header, section
from ov_autoplace.report.palette import device_styles
from ov_autoplace.report.tables import note, table

__all__ = ["application_page"]

_MOST_BARS = 8000
_RUNS = (
    "A row is a caller, a thread that runs requests from their beginning to their end. A bar is an "
    "inference, in the colour of its model, and its label is the core on which the caller was. Drag or zoom "
    "to look closer."
)


def application_page(title: str, answer: str, facts: Sequence[Fact], plan: ApplicationPlan) -> str:
    """The whole document."""
    charts: list[figure] = []
    plans, parts = plans_table(plan), parts_table(plan)
    body = [
        header(title, answer),
        section("Summary", facts_list(facts)),
        section(plans.title, table(plans), tag="measured and predicted"),
        section(parts.title, table(parts, _swatches(plan))),
    ]
    chosen = plan.plan.name
    ordered = sorted(plan.results.items(), key=lambda item: item[0] != chosen)
    for number, (name, result) in enumerate(ordered):
        if result.spans:
            drawn = chart(charts, _runs_chart(f"runs-{number}", result.spans, plan))
            body.append(section(f"Who ran when: {name}", note(_RUNS), drawn, tag="measured"))
    return document(title, body, charts, {})


def _names(plan: ApplicationPlan) -> list[str]:
    """The models, in the order in which spans number them."""
    return list(plan.application.members) if plan.application is not None else []


def _swatches(plan: ApplicationPlan) -> dict[str, str]:
    names = _names(plan)
    return {name: style.colour for name, style in zip(names, device_styles(len(names)), strict=True)}


def _runs_chart(name: str, spans: Sequence[Span], plan: ApplicationPlan) -> figure:
    """Every inference of a short time, a row for each caller."""
    names, bars = _names(plan), Bars()
    styles = device_styles(len(names))
    callers = sorted({span.caller for span in spans})
    for span in spans[:_MOST_BARS]:
        row = -float(callers.index(span.caller))
        seconds, style = span.end - span.begin, styles[span.model]
        bars.add(
            span.begin,
            seconds,
            row - HALF,
            row + HALF,
            colour=style.colour,
            ink=style.on_colour,
            label=f"core {span.processor}",
            title=names[span.model],
            text=f"{milliseconds(seconds)} ms from {milliseconds(span.begin)} ms on, core {span.processor}",
        )
    rows = [_row(caller, spans, names) for caller in callers]
    drawn = rows_chart(name, rows, "ms", 58, tools="xpan,xwheel_zoom,xbox_zoom,reset,save")
    longest = max(span.end for span in spans)
    drawn.x_range = Range1d(-0.005e3 * longest, 1.01e3 * longest)
    draw_bars(drawn, bars)
    draw_labels(drawn, bars, "labels")
    return plain(drawn)


def _row(caller: int, spans: Sequence[Span], names: Sequence[str]) -> str:
    """A caller with the models that it ran."""
    models = dict.fromkeys(names[span.model] for span in spans if span.caller == caller)
    return f"caller {caller + 1}\n{', '.join(models)}"
