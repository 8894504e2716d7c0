"""What is generated, run and compared: benchmarks and the papers' experiments."""
