"""Parts of the benchmark of search."""
