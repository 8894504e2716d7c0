"""When to replan, and whether to take the new plan."""
