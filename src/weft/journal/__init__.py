"""The journal of a run: durable, append-only, readable after any death."""
