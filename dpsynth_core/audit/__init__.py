"""An audit of every registered mechanism that can fail: see ``docs/audit.md``."""
