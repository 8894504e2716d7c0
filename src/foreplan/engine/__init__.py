"""The decision core, sans I/O: events in, commands out."""
