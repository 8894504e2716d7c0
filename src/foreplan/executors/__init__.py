"""Where tasks run for real: this machine, a Dask cluster, or what other packages declare."""
