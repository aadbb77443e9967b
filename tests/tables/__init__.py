"""What several tests use: schemas and tables, strategies that draw them, releases, plain reference implementations."""
