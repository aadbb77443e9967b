"""Metadata for machines: Croissant 1.0 (MLCommons), a JSON-LD vocabulary on top of schema.org.

Croissant has no words for differential privacy, so its figures are schema.org ``PropertyValue`` entries under
``additionalProperty``, each with a stable ``propertyID``; readers that do not know them skip them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dpsynth_core.privacy.budget import Budget
from dpsynth_core.review.export import FileFacts
from dpsynth_core.review.gate import PublishableRelease
from dpsynth_core.review.wording import choice, claim, cost_line, meaning, unit
from dpsynth_core.table.column import Column

CONFORMS_TO = "http://mlcommons.org/croissant/1.0"
FORMATS = {
    "csv": "text/csv",
    "parquet": "application/x-parquet",
    "json": "application/json",
    "md": "text/markdown",
    "py": "text/x-python",
}
_CROISSANT_TERMS = (
    *("citeAs", "column", "equivalentProperty", "extract", "field", "fileProperty", "fileObject", "fileSet", "format"),
    *("includes", "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet", "references"),
    *("regex", "repeated", "replace", "samplingRate", "separator", "source", "subField", "transform"),
)
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{term: f"cr:{term}" for term in _CROISSANT_TERMS},
}


def croissant(release: PublishableRelease, files: Mapping[str, FileFacts]) -> str:
    """JSON-LD text.

    Args:
        release: What is published.
        files: The bundle's other files by name, for their hashes.
    """
    publication = release.publication
    facts: dict[str, Any] = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS_TO,
        "name": publication.title,
        "description": f"{publication.description} Synthetic rows. {claim(release.guarantee)}".strip(),
        "version": "1.0.0",
        "rai:personalSensitiveInformation": claim(release.guarantee),
        "additionalProperty": _privacy(release),
        "distribution": [_file(name, facts) for name, facts in files.items()],
        "recordSet": [_records(release, name) for name in files if name.endswith(".parquet")],
    }
    if publication.license.strip():
        facts["license"] = publication.license
    if publication.publisher.strip():
        facts["publisher"] = {"@type": "sc:Organization", "name": publication.publisher}
    if publication.published is not None:
        facts["datePublished"] = publication.published.isoformat()
    return json.dumps(facts, indent=2, ensure_ascii=False)


def _privacy(release: PublishableRelease) -> list[dict[str, Any]]:
    guarantee, order = release.guarantee, release.config
    budget = guarantee.budget or Budget.of(1)  # the gate has refused what has none
    doubt = "" if guarantee.status == "proven" else ", not proven: see status"
    values: dict[str, Any] = {
        "privacyDefinition": f"differential privacy{doubt}",
        "status": guarantee.status,
        "statusMeaning": guarantee.meaning,
        "epsilon": guarantee.epsilon,
        "epsilonExact": str(budget.epsilon),
        "delta": guarantee.delta,
        "deltaExact": str(budget.delta),
        "meaning": meaning(guarantee),
        **{f"cost{number}": cost_line(cost) for number, cost in enumerate(guarantee.parts, start=1)},
        "unitOfProtection": unit(guarantee.rows_per_person),
        "rowsPerPerson": guarantee.rows_per_person,
        "neighbouringRelation": guarantee.neighbours,
        "mechanism": order.mechanism.key,
        "tables": order.copies,
        **{f"caveat{number}": caveat for number, caveat in enumerate(guarantee.caveats, start=1)},
    }
    if release.publication.original_rows is not None:
        values["originalRows"] = release.publication.original_rows
    if release.publication.chosen_by is not None:
        values |= {"chosenBy": release.publication.chosen_by, "choice": choice(release.publication)}
    return [
        {"@type": "sc:PropertyValue", "propertyID": f"dp:{name}", "name": name, "value": v}
        for name, v in values.items()
    ]


def _file(name: str, facts: FileFacts) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "contentUrl": name,
        "contentSize": f"{facts.size} B",
        "encodingFormat": FORMATS[name.rsplit(".", maxsplit=1)[-1]],
        "sha256": facts.sha256,
    }


def _records(release: PublishableRelease, file: str) -> dict[str, Any]:
    """The columns of one table. Read from the Parquet file, where names are as they are and values have types."""
    identifier = file.removesuffix(".parquet") + "_rows"
    return {
        "@type": "cr:RecordSet",
        "@id": identifier,
        "name": identifier,
        "description": "Synthetic rows; none represents a person.",
        "field": [
            {
                "@type": "cr:Field",
                # A number, because the column's name may be any text and this is part of an address.
                "@id": f"{identifier}/{number}",
                "name": column.name,
                "description": _described(column),
                "dataType": _data_type(column),
                "source": {"fileObject": {"@id": file}, "extract": {"column": column.name}},
            }
            for number, column in enumerate(release.schema, start=1)
        ],
    }


def _described(column: Column) -> str:
    missing = "; may be missing" if column.nullable else ""
    if column.is_numeric:
        return f"{column.kind} from {column.lower} to {column.upper} {column.unit}".rstrip() + missing
    return f"{column.kind}, {len(column.labels)} labels{missing}"


def _data_type(column: Column) -> str:
    if column.kind in ("continuous", "integer", "date"):
        return {"continuous": "sc:Float", "integer": "sc:Integer", "date": "sc:Date"}[column.kind]
    kinds = {type(label) for label in column.labels}
    if kinds == {bool}:
        return "sc:Boolean"
    return "sc:Integer" if kinds == {int} else "sc:Float" if kinds <= {int, float} else "sc:Text"
