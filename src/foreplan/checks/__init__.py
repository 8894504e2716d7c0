"""The validators: of schedules, and of runs."""
