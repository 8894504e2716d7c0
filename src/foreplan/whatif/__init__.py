"""What if machines came or went: what a plan is expected to give then. It changes nothing.

The package is not called what_if, since `foreplan.what_if` is the function.
"""

from foreplan.whatif.answer import Alternative, Outlook, WhatIf, ask
from foreplan.whatif.stage import Stage, before_start, of_run

__all__ = ["Alternative", "Outlook", "Stage", "WhatIf", "ask", "before_start", "of_run"]
