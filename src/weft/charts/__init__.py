"""Gantt charts of schedules, and the critical path that explains them."""

from weft.charts.build import chart_of
from weft.charts.chart import Bars, Chart, Inputs, Lane, Row, Unit
from weft.charts.critical import Bound, Step, critical_path, critical_steps
from weft.charts.gantt import SUFFIXES, write_chart, write_gantt

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
    "write_chart",
    "write_gantt",
]
