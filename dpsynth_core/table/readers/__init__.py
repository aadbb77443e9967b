"""Files as tables: one reader for each format, and limits that all of them keep."""
