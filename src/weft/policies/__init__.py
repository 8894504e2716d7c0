"""When to replan, and whether to take the new plan: one short file per policy."""
