"""Release runs while processes are killed and the ledger fails: ``python -m tests.faults --runs 100``."""
