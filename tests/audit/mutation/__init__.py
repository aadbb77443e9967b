"""Mistakes made in the source itself: planted by hand or generated, one at a time, and whether the audit notices."""
