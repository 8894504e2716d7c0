"""Selective rescheduling: Zhao and Sakellariou, Table 1 and Figures 3 and 4."""
