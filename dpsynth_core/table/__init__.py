"""What a table is: its declared facts, its rows as integers, where they come from."""
