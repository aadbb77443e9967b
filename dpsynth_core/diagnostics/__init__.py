"""How far a synthetic table is from the original. What is computed against private rows is itself private."""
