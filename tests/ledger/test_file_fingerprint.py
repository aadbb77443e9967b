from __future__ import annotations

import io
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpsynth_core.audit.reading import write_workbook
from dpsynth_core.ledger.file_fingerprint import file_fingerprints, file_sketch
from dpsynth_core.ledger.fingerprint import fingerprint
from dpsynth_core.ledger.ledger import Ledger
from dpsynth_core.ledger.row_sketch import shared_share
from dpsynth_core.privacy.budget import Budget

KEY = bytes(range(32))


def test_decimal_commas_blank_lines_and_codes_count_as_when_columns_were_typed() -> None:
    data = b"age;dose;code;flag;note\n31;0,5;007;TRUE;x,y\n\n45;27,5;7;false;NA\n;;;;\n"
    typed = pd.DataFrame(
        {
            "age": pd.array([31, 45, None], dtype="Int64"),
            "dose": [0.5, 27.5, None],
            "code": ["007", "7", None],
            "flag": pd.array([True, False, None], dtype="boolean"),
            "note": ["x,y", None, None],
        }
    )
    assert file_fingerprints(data, KEY)[:-1] == (fingerprint(typed, KEY),)


@pytest.mark.parametrize("whole", [2**53 + 1, 2**62 + 3, -(2**63)])
def test_long_whole_numbers_keep_their_digits(whole: int) -> None:
    assert file_fingerprints(f"n\n{whole}\n1\n".encode(), KEY)[:-1] == (
        fingerprint(pd.DataFrame({"n": [whole, 1]}), KEY),
    )


def test_a_column_of_commas_with_one_word_stays_text() -> None:
    typed = pd.DataFrame({"a": ["0,5", "word"], "b": [1, 2]})
    assert file_fingerprints(b"a;b\n0,5;1\nword;2\n", KEY)[:-1] == (fingerprint(typed, KEY),)


def test_a_workbook_has_the_account_of_its_filled_rows() -> None:
    record = [12.5, 0.1, 3, "red", 1, "007", "low", True, "yes", "2024-01-02", "2024-01-02"]
    other = [99.5, "NA", 9, "green", 2.5, "7", "high", False, "no", "2024-01-03", "2024-01-04"]
    typed = pd.DataFrame([record, other]).replace("NA", np.nan)
    assert file_fingerprints(write_workbook([record, [None] * 11, other]), KEY)[:-1] == (fingerprint(typed, KEY),)


def test_parquet_decimals_are_found_under_the_name_they_had() -> None:
    out = io.BytesIO()
    cells = [Decimal("123456789012345678.123456789012345678"), Decimal("0.3")]
    table = pa.table({"x": pa.array(cells, pa.decimal128(38, 18)), "n": pa.array([2**63 - 1, 3], pa.uint64())})
    pq.write_table(table, out)
    before = pd.DataFrame(
        {"x": table["x"].cast(pa.float64(), safe=False).to_numpy(), "n": table["n"].cast(pa.int64()).to_numpy()}
    )
    names = file_fingerprints(out.getvalue(), KEY)
    assert fingerprint(before, KEY) in names


def test_a_file_that_no_guess_can_read_has_a_name_too() -> None:
    broken = b'a,b\n1,"2\n'
    assert file_fingerprints(broken, KEY) != file_fingerprints(broken + b"3\n", KEY)
    assert file_fingerprints(broken, KEY) == file_fingerprints(broken, KEY)


def test_an_account_is_found_under_an_earlier_name(tmp_path_factory: pytest.TempPathFactory) -> None:
    ledger = Ledger(f"sqlite:///{tmp_path_factory.mktemp('ledger') / 'ledger.db'}", key=KEY)
    assert ledger.known_name(["new", "old"]) == "new"
    ledger.open_account("old", total=Budget.of(1))
    assert ledger.known_name(["new", "old"]) == "old"
    ledger.open_account("new", total=Budget.of(1))
    assert ledger.known_name(["new", "old"]) == "new"


@pytest.mark.parametrize("line", [b"1;1;1;1;1;1;1;1", b'"', b"7,7,7,7", b"\xff\xfe", b""])
def test_a_line_that_makes_the_file_look_otherwise_hides_no_rows(line: bytes) -> None:
    rows = np.random.default_rng(0).integers(0, 10**6, (80, 2))
    lines = [b"age,income", *(b"%d,%d" % (a, b) for a, b in rows)]
    first, second = (file_sketch(b"\n".join(text), KEY) for text in (lines, [line, *lines[1:-1]]))
    assert shared_share(first, second) > 0.9
