# SPDX-License-Identifier: Apache-2.0
"""The points of a sweep, as `--set` names them."""

from __future__ import annotations

import pytest
from spinkit._errors import SpinkitError
from spinkit.sweeps import _grid


@pytest.mark.parametrize(
    ("text", "keys", "values"),
    [
        ("a.b=1,2,4", ["a.b"], ["1", "2", "4"]),
        ("a.b=7", ["a.b"], ["7"]),
        ("a.b=-7,1e-3", ["a.b"], ["-7", "1e-3"]),
        ("a.b=50:200:50", ["a.b"], ["50", "100", "150", "200"]),
        ("a.b=50:180:50", ["a.b"], ["50", "100", "150"]),
        ("a.b=1:3", ["a.b"], ["1", "2", "3"]),
        ("a.b=0.1:0.4:0.1", ["a.b"], ["0.1", "0.2", "0.3", "0.4"]),
        ("a.b=1:64:x4", ["a.b"], ["1", "4", "16", "64"]),
        ("a.b=8,10:12", ["a.b"], ["8", "10", "11", "12"]),
        ("a.b=[4,4],[8,2]", ["a.b"], ["[4,4]", "[8,2]"]),
        ("a.b = cut-through , x", ["a.b"], ["cut-through", "x"]),
        ("a.b/a.c=20/6.7,8/1", ["a.b", "a.c"], [("20", "6.7"), ("8", "1")]),
    ],
)
def test_values_are_lists_ranges_and_pairs(text: str, keys: list[str], values: list[str | tuple[str, ...]]) -> None:
    axis = _grid.parse(text)
    assert list(axis.keys) == keys
    assert list(axis.values) == [(one,) if isinstance(one, str) else one for one in values]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a.b", "expected KEY=VALUES"),
        ("=1", "expected KEY=VALUES"),
        ("a.b=", "expected KEY=VALUES"),
        ("a/=1/2", "expected KEY=VALUES"),
        ("a.b=1,,2", "a value is missing"),
        ("a.b=1,1", "a value occurs twice"),
        ("a.b=1,1:2", "a value occurs twice"),
        ("a.b/a.b=1/2", "a parameter occurs twice"),
        ("a.b/a.c=1/2,3", "expected 2 values with slashes between them, found 3"),
        ("a.b=2-8", "the range from 2 to 8 is written 2:8"),
        ("a.b=1,2..8", "the range from 2 to 8 is written 2:8"),
        ("a.b=1:x", "1:x is no range"),
        ("a.b=3:1", "no range that grows"),
        ("a.b=1:3:0", "no range that grows"),
        ("a.b=0:8:x2", "no range that grows"),
        ("a.b=1:8:x1", "no range that grows"),
        ("a.b=1:inf", "no range that grows"),
        ("a.b=1:nan", "no range that grows"),
        ("a.b=1:2:3:4", "no range that grows"),
        ("a.b=0:1:0.000001", "more than 100000 values"),
    ],
)
def test_what_is_no_axis_is_refused(text: str, message: str) -> None:
    with pytest.raises(SpinkitError) as error:
        _grid.parse(text)
    assert str(error.value).startswith(text)
    assert message in str(error.value)


def test_points_are_all_combinations() -> None:
    points = _grid.points([_grid.parse("a.b=1,2"), _grid.parse("a.c/a.d=20/x,8.5/true")])
    assert [point.settings for point in points] == [
        ("a.b=1", "a.c=20", "a.d=x"),
        ("a.b=1", "a.c=8.5", "a.d=true"),
        ("a.b=2", "a.c=20", "a.d=x"),
        ("a.b=2", "a.c=8.5", "a.d=true"),
    ]
    assert points[3].values == {"a.b": 2, "a.c": 8.5, "a.d": True}
    assert points[0].description == "a.b = 1, a.c = 20, a.d = x"
    with pytest.raises(SpinkitError, match=r"^a\.b is an axis already$"):
        _grid.points([_grid.parse("a.b=1"), _grid.parse("a.c/a.b=1/2")])


def test_axes_of_python_are_those_of_options() -> None:
    axes = _grid.of_mapping({"a.b": [1, 2], "a.c": "x", "a.d": (True, 6.7)})
    assert axes == [_grid.parse("a.b=1,2"), _grid.parse("a.c=x"), _grid.parse("a.d=true,6.7")]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8", 8),
        ("1_024", 1024),
        ("-3", -3),
        ("6.70", 6.7),
        ("1e3", 1000.0),
        ("true", True),
        ("x8", "x8"),
        ("[1]", "[1]"),
    ],
)
def test_numbers_are_numbers(text: str, value: object) -> None:
    assert (_grid.typed(text), type(_grid.typed(text))) == (value, type(value))
