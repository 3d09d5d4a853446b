# SPDX-License-Identifier: Apache-2.0
"""All units, each with the relevant parameter sets."""

import pytest
from units import QUICK, Case, cases, run


@pytest.mark.parametrize("case", list(cases(QUICK)), ids=lambda case: case.name)
def test_unit(case: Case) -> None:
    if log := run(case):
        pytest.fail(log, pytrace=False)
