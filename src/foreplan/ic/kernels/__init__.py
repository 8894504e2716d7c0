"""Plain functions on dags, compiled when foreplan is built."""
