"""All units, each with the parameters that make a difference."""

import pytest
from units import Case, cases, run


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: case.name)
def test_unit(case: Case) -> None:
    if log := run(case):
        pytest.fail(log, pytrace=False)
