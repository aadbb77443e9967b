"""The tables of the ledger's database. Rows are only ever inserted.

Amounts are exact fractions, stored as text because no database rounds text.
"""

from __future__ import annotations

import sqlalchemy as sa


def _text(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text, nullable=False) for name in names]


TABLES = sa.MetaData()
KEYS = sa.Table("dpsynth_key", TABLES, sa.Column("id", sa.Integer, primary_key=True), *_text("digest"))
ACCOUNTS = sa.Table(
    "dpsynth_accounts",
    TABLES,
    sa.Column("fingerprint", sa.String(200), primary_key=True),
    sa.Column("rows_per_person", sa.Integer, nullable=False),
    *_text("label", "epsilon", "delta", "created"),
)
CHARGES = sa.Table(
    "dpsynth_charges",
    TABLES,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("fingerprint", sa.ForeignKey(ACCOUNTS.c.fingerprint), nullable=False, index=True),
    sa.Column("run_id", sa.String(200), nullable=False, unique=True),
    *_text("purpose", "epsilon", "delta", "details", "created"),
    sqlite_autoincrement=True,
)
SETTLEMENTS = sa.Table(
    "dpsynth_settlements",
    TABLES,
    sa.Column("charge", sa.ForeignKey(CHARGES.c.id), primary_key=True, autoincrement=False),
    *_text("state", "reason", "settled"),
)
RESULTS = sa.Table(
    "dpsynth_results",
    TABLES,
    sa.Column("charge", sa.ForeignKey(CHARGES.c.id), primary_key=True, autoincrement=False),
    *_text("result"),
)
DECISIONS = sa.Table(
    "dpsynth_decisions",
    TABLES,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("fingerprint", sa.ForeignKey(ACCOUNTS.c.fingerprint), nullable=False, index=True),
    sa.Column("ticket", sa.String(200), nullable=False, unique=True),
    *_text("release", "choice", "reviewer", "note", "decided", "details"),
    sqlite_autoincrement=True,
)
LOOKS = sa.Table(
    "dpsynth_looks",
    TABLES,
    sa.Column("fingerprint", sa.ForeignKey(ACCOUNTS.c.fingerprint), primary_key=True),
    *_text("first"),
)
"""Data sets of which somebody has seen private diagnostics, and since when."""
SUBMISSIONS = sa.Table(
    "dpsynth_submissions",
    TABLES,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("fingerprint", sa.ForeignKey(ACCOUNTS.c.fingerprint), nullable=False, index=True),
    sa.Column("charge", sa.ForeignKey(CHARGES.c.id), nullable=False),
    sa.Column("ticket", sa.String(200), nullable=False, unique=True),
    *_text("release", "bundle", "evidence", "subject", "name", "submitted", "details"),
    sqlite_autoincrement=True,
)
"""Releases that somebody has handed in for review."""
DECLARATIONS = sa.Table(
    "dpsynth_declarations",
    TABLES,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("fingerprint", sa.ForeignKey(ACCOUNTS.c.fingerprint), nullable=False, index=True),
    *_text("kind", "about", "details", "subject", "name", "declared"),
    sqlite_autoincrement=True,
)
"""What people have stated about a data set, and who did."""
CHAIN = sa.Table(
    "dpsynth_chain",
    TABLES,
    sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("fingerprint", sa.String(200), nullable=False, index=True),
    *_text("kind", "item", "previous", "digest"),
)
"""One link for every account, charge, settlement with its result, decision, look, submission and declaration, in the
order of their entry."""
