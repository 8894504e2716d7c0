"""Commands and functions on a Dask cluster."""
