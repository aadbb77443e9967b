"""Where the rows of a private table can be other than in memory: files and databases, read by DuckDB."""
