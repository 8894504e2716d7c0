"""Goals of measurements, and whether they are reached."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Goal:
    """A bound of what is measured."""

    bound: float
    at_least: bool = False  # else at most

    def __str__(self) -> str:
        return f"{'>=' if self.at_least else '<='} {self.bound:,.12g}"

    def verdict(self, measured: float) -> str:
        """Whether a figure is within the bound."""
        within = measured >= self.bound if self.at_least else measured <= self.bound
        return "reached" if within else "missed"
