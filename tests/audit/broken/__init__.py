"""Mechanisms, sources, releases and walks that are broken on purpose: what the audit must find.

None of them is registered or reachable from the app. Each repeats a mistake that was made somewhere.
"""
