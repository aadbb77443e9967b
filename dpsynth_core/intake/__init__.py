"""Bringing a table in: reading files, example data, schema suggestions, private estimates."""
