"""Gantt charts of schedules and runs, and the critical path that explains them."""

from weft.charts.build import chart_of
from weft.charts.chart import Bars, Chart, Inputs, Lane, Row, Unit
from weft.charts.critical import Bound, Step, critical_path, critical_steps
from weft.charts.gantt import SUFFIXES, write_chart, write_gantt, write_run_gantt
from weft.charts.run_build import run_chart_of

__all__ = [
    "SUFFIXES",
    "Bars",
    "Bound",
    "Chart",
    "Inputs",
    "Lane",
    "Row",
    "Step",
    "Unit",
    "chart_of",
    "critical_path",
    "critical_steps",
    "run_chart_of",
    "write_chart",
    "write_gantt",
    "write_run_gantt",
]
