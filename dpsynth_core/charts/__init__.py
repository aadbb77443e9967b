"""Plotly figures from results: one theme, and always a table and a sentence that say the same."""
