"""Waiting for what happens in other processes: jobs, pages without a browser, pages in a browser."""
