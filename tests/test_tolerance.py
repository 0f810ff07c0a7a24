"""Each test pins one sentence about comparing printed numbers within a tolerance."""

import pytest
from tolerance import agree

TABLE = "step   loss\n   0   4.31\n 100   1.08\n"


@pytest.mark.parametrize(
    "new, tolerance",
    [
        (TABLE, None),
        (TABLE.replace("1.08", "1.12"), 0.05),
        (TABLE.replace("1.08", "1.17"), "10%"),
        (TABLE.replace("   4.31", "   4.33"), "1%"),
        (TABLE.replace("  1.08", " 10.00"), 9),  # a digit more moves no column
        (TABLE.replace(" 1.08", "-0.01"), 1.1),
    ],
)
def test_numbers_within_the_tolerance_agree(new, tolerance):
    assert agree(new, TABLE, tolerance)


@pytest.mark.parametrize(
    "new, tolerance",
    [
        (TABLE.replace("1.08", "1.09"), None),
        (TABLE.replace("1.08", "1.14"), 0.05),
        (TABLE.replace("1.08", "1.20"), "10%"),
        (TABLE.replace("1.08", "-1.08"), 0.05),
        (TABLE.replace("1.08", "nan"), 10),
        (TABLE.replace("loss", "Loss"), 10),
        (TABLE + "200 1.0\n", 10),
        (TABLE.replace(" 100   1.08\n", ""), 10),
    ],
)
def test_what_lies_further_away_or_is_no_number_differs(new, tolerance):
    assert not agree(new, TABLE, tolerance)


@pytest.mark.parametrize("tolerance", ["a tenth", "0.1", True, [0.1]])
def test_a_tolerance_that_is_none_is_refused(tolerance):
    with pytest.raises(ValueError, match="expected a number or a share such as '10%'"):
        agree(TABLE, TABLE, tolerance)
