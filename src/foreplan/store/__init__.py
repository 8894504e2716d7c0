"""What results are made from, and which of them still hold: known across runs."""
