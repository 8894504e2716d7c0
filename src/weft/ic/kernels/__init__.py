"""Plain functions on dags, compiled when weft is built."""
