"""The data card: what a reader who was not there must know, in plain language."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from dpsynth_core.mechanisms.parameters import parameters
from dpsynth_core.privacy.budget import format_amount
from dpsynth_core.review.gate import PublishableRelease
from dpsynth_core.review.wording import ERROR_UNIT, choice, claim, costs, error_lines, literal, meaning, unit
from dpsynth_core.runs.expected_error import NOT_COVERED
from dpsynth_core.table.column import Column

MAX_LABELS = 12
"""Labels named in the card; the schema has them all."""


def data_card(release: PublishableRelease) -> str:
    """Markdown text; every name that came from a file is escaped."""
    publication = release.publication
    parts = [
        f"# {literal(publication.title)}",
        "**Synthetic data.** No row represents a person. The rows were drawn from a noisy summary of a private table.",
        *([literal(publication.description)] if publication.description.strip() else []),
        _published(release),
        "## What is guaranteed",
        _guarantee(release),
        "## What the rows are good for",
        _use(release),
        *_accuracy(release),
        *(["## Private tests", _tests(release)] if release.comparisons else []),
        "## Columns",
        _columns(release.schema.columns),
        "## How it was made",
        _method(release),
        "## Files",
        _files(release),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _published(release: PublishableRelease) -> str:
    publication = release.publication
    facts = {
        "Publisher": literal(publication.publisher),
        "Licence": literal(publication.license),
        "Published": publication.published.isoformat() if publication.published else "",
        "Rows": ", ".join(f"{rows:,}" for rows in release.lengths),
        "Rows of the original": f"{publication.original_rows:,}" if publication.original_rows else "",
    }
    return _bullets(f"{name}: {value}" for name, value in facts.items() if value.strip())


def _guarantee(release: PublishableRelease) -> str:
    guarantee, several = release.guarantee, len(release.tables)
    each = f" They were made with epsilon {format_amount(release.config.each.epsilon)} each." if several > 1 else ""
    together = f"This holds for all {several} tables together.{each}" if several > 1 else ""
    parts = costs(guarantee)
    lines = [
        f"**{claim(guarantee)}**",
        " ".join(part for part in (meaning(guarantee), together) if part),
        f"This is the sum of what each part cost:\n\n{_bullets(map(literal, parts))}" if parts else "",
        choice(release.publication),
        f"The unit of protection is {unit(guarantee.rows_per_person)}. The number of rows of the original counts as "
        "public. Anything else that is released from the same original adds to this loss.",
        _bullets(literal(caveat) for caveat in guarantee.caveats),
    ]
    return "\n\n".join(line for line in lines if line)


def _use(release: PublishableRelease) -> str:
    lines = [
        "Use the rows to try out code, to teach, and for a first look at single columns and at the pairs of columns "
        "that the method preserves.",
        "Small counts are mostly noise: a rare combination of values may be present or missing by chance.",
        "An ordinary test or confidence interval treats the rows as a sample of people. It ignores the added noise and "
        "can find differences that do not exist. Confirm important results on the original.",
    ]
    if len(release.tables) == 1 and release.publication.original_rows is None:
        lines.append("The original may have a different number of rows.")
    return _bullets(lines)


def _accuracy(release: PublishableRelease) -> tuple[str, ...]:
    """What the rows say about their own error; nothing where it was not estimated."""
    if release.expected_error is None:
        return ()
    each = " It holds for each table." if len(release.tables) > 1 else ""
    return (
        "## How accurate the rows are",
        "The rows were taken for an original and released again with simulated noise, by the same method at the same "
        f"epsilon. The private table was not used for this estimate. {ERROR_UNIT}{each}",
        _bullets(literal(line) for line in error_lines(release.expected_error)),
        NOT_COVERED,
    )


def _tests(release: PublishableRelease) -> str:
    about = (
        "These were made on the original rows with noise of their own; the stated loss includes them. A high p-value "
        "does not show that groups are alike. `private_tests.json` has them for machines."
    )
    return f"{about}\n\n{_bullets(literal(test.finding) for test in release.comparisons)}"


def _columns(columns: Iterable[Column]) -> str:
    rows = [
        f"| {literal(c.name)} | {c.kind} | {_range(c)} | {'yes' if c.nullable else 'no'} | {c.origin} |"
        for c in columns
    ]
    return "\n".join(
        ["| column | kind | values | may be missing | source of its facts |", "|---|---|---|---|---|", *rows]
    )


def _range(column: Column) -> str:
    if column.is_numeric:
        return literal(f"{column.lower} to {column.upper}" + (f" {column.unit}" if column.unit else ""))
    named = ", ".join(literal(label) for label in column.labels[:MAX_LABELS])
    more = len(column.labels) - MAX_LABELS
    return f"{named} and {more} more" if more > 0 else named


def _method(release: PublishableRelease) -> str:
    mechanism = release.config.mechanism
    chosen = asdict(mechanism)
    settings = [f"{p.title}: {literal(p.say(chosen[p.name]))}" for p in parameters(type(mechanism))]
    return "\n\n".join([f"**{mechanism.title}.** {mechanism.summary}", mechanism.paper, _bullets(settings)])


def _files(release: PublishableRelease) -> str:
    rows = (
        "`synthetic*.csv`, `synthetic*.parquet`: the rows. In the CSV, texts that a spreadsheet would treat as a "
        "formula begin with an apostrophe; the Parquet file has them unchanged, with types."
    )
    if release.rows_in_all is not None:
        rows = "`synthetic.parquet`: the rows, with types. They are too many for a text file."
    return _bullets(
        [
            rows,
            "`schema.json`: the public facts. `configuration.json`: the exact mechanism, parameters and budget.",
            "`croissant.json`: table, columns and guarantee for machines (Croissant 1.0, MLCommons).",
            "`reproduce.py`: runs the same pipeline on another table with this schema, or on simulated rows. The noise "
            "is fresh each time, so the rows differ.",
            "`SHA256SUMS`: checksums of all files; verify them with `sha256sum -c SHA256SUMS`.",
        ]
    )


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
