"""Where the rows of a private table can be other than in memory: files read by DuckDB, or a Spark cluster."""
