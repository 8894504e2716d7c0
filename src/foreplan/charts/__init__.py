"""All pictures of the product: Gantt charts of schedules and runs, and plots."""
