"""What if machines came or went: what a plan is expected to give then. It changes nothing.

The package is not called what_if, since `weft.what_if` is the function.
"""

from weft.whatif.afterwards import of_run
from weft.whatif.answer import ask
from weft.whatif.outlook import Alternative, Outlook, WhatIf
from weft.whatif.stage import Stage, before_start

__all__ = ["Alternative", "Outlook", "Stage", "WhatIf", "ask", "before_start", "of_run"]
