"""What the commands share: options, tables, the display of a run and how it ended."""
