# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from spinkit._errors import SpinkitError
from spinkit.common._toml import Place, convert
from spinkit.experiments._claims import Claim, ClaimTable, Measured, Scope, Verdict, build_claim

SCOPE = Scope(("int", "dis"), ("slow", "fast"), (4, 8, 8192))
TIMES = {
    ("int", "slow", 4): 100,
    ("int", "fast", 4): 80,
    ("int", "slow", 8): 200,
    ("int", "fast", 8): 150,
    ("int", "slow", 8192): 4000,
    ("int", "fast", 8192): 2000,
    ("dis", "slow", 4): 160,
    ("dis", "fast", 4): 100,
    ("dis", "slow", 8): 300,
    ("dis", "fast", 8): 180,
    ("dis", "slow", 8192): 9000,
    ("dis", "fast", 8192): 3000,
}
CARDS = {"cards": [{"dma_bytes": 0}, {"dma_bytes": 30}], "handlers": {"add": {"calls": 2, "instructions": 7}}}
MEASURED = Measured(
    times=TIMES,
    lines={place: {"bytes": place[2] % 10, "hpus": place[2] // 4, "wait_ps": 2500} for place in TIMES},
    reports={
        (machine, series): CARDS | {"end_ps": end}
        for machine, series, end in (("int", "slow", 3), ("int", "fast", 1), ("dis", "slow", 5), ("dis", "fast", 2))
    },
)


BETWEEN = {"at_least": 1.3, "at_most": 1.4, "reason": "r"}
EXPECTED = {"relation": "speedup", "of": "fast", "against": "slow", "machines": ["int"], "to": 8, "at_least": 1.5}


def claim(**keys: Any) -> dict[str, Any]:
    keys = {"from_": None} | keys
    start = keys.pop("from_")
    return {"name": "c", "text": "t", "source": "§0", **keys, **({} if start is None else {"from": start})}


def built(keys: dict[str, Any], scope: Scope) -> Claim:
    """Read a claim; one that lacks a bound is about a sentence that has only one."""
    needed = {"at_most"} if keys["relation"] in ("order", "wider", "largest") else {"at_least", "at_most"}
    if len(needed - keys.keys()) == 1 and keys["relation"] != "close":
        keys = {"one_sided": "no more is said"} | keys
    place = Place(Path("x.toml"), "claim[0]")
    return build_claim(convert(keys, ClaimTable, place), place, scope)


def verdict_of(**keys: Any) -> Verdict:
    return built(claim(**keys), SCOPE).test(MEASURED, SCOPE.values)


def test_reduction_is_one_minus_the_quotient() -> None:
    verdict = verdict_of(
        relation="reduction", of="fast", against="slow", machines=["int"], values=[8], paper=0.5, at_least=0.25
    )
    assert (verdict.holds, verdict.worst.number, verdict.ratio, verdict.samples) == (True, 0.25, 0.5, 1)


def test_reduction_out_of_bounds_on_either_side() -> None:
    keys = {"relation": "reduction", "of": "fast", "against": "slow", "machines": ["int"], "values": [8]}
    assert not verdict_of(**keys, at_least=0.26).holds
    assert not verdict_of(**keys, at_most=0.24).holds
    assert verdict_of(**keys, at_least=0.24, at_most=0.26).holds


def test_speedup_reports_the_point_nearest_to_its_bound() -> None:
    verdict = verdict_of(relation="speedup", of="fast", against="slow", at_least=1.3)
    # int: 1.25, 1.333, 2; dis: 1.6, 1.667, 3
    assert not verdict.holds
    assert (verdict.worst.number, verdict.worst.point, verdict.samples, verdict.failed) == (1.25, "int, 4", 6, 1)


def test_value_is_what_is_measured_in_its_unit() -> None:
    verdict = verdict_of(relation="value", of="slow", machines=["dis"], values=[8192], paper=0.01, at_most=0.009)
    assert (verdict.holds, verdict.worst.number, verdict.claim.format(0.009)) == (True, 0.009, "0.009 µs")
    count = Scope(SCOPE.machines, SCOPE.series, SCOPE.values, "", float)
    found = built(claim(relation="value", of="slow", machines=["int"], at_least=101), count)
    verdict = found.test(MEASURED, SCOPE.values)
    assert (verdict.failed, verdict.worst.number, verdict.claim.format(100.0)) == (1, 100, "100")


def test_order_is_strict_or_has_a_tolerance() -> None:
    assert verdict_of(relation="order", order="slow > fast").holds
    assert not verdict_of(relation="order", order="fast > slow").holds
    equal = {"relation": "order", "machines": ["int"], "values": [4]}
    assert not verdict_of(**equal, order="slow > slow").holds
    assert verdict_of(**equal, order="slow >= slow").holds
    # 80 / 100 is 20 % below.
    assert verdict_of(**equal, order="fast >= slow", tolerance=0.2).holds
    assert not verdict_of(**equal, order="fast >= slow", tolerance=0.19).holds


def test_wider_compares_differences_of_two_machines() -> None:
    verdict = verdict_of(relation="wider", of="fast", against="slow", on="dis", than="int")
    # 60/20, 120/50, 6000/2000
    assert (verdict.holds, verdict.worst.number, verdict.samples) == (True, 2.4, 3)
    assert not verdict_of(relation="wider", of="fast", against="slow", on="int", than="dis").holds
    # In the other direction there is no difference that could be exceeded.
    assert not verdict_of(relation="wider", of="slow", against="fast", on="dis", than="int").holds


def test_largest_compares_a_reduction_with_all_others() -> None:
    keys = {"relation": "largest", "of": "fast", "against": "slow", "values": [8192]}
    # int: 20 %, 25 %, 50 %; dis: 37.5 %, 40 %, 66.7 %
    assert verdict_of(**keys, machines=["dis"]).worst.number == pytest.approx(4 / 3)
    assert not verdict_of(**keys, machines=["int"]).holds


def test_close_is_a_distance_in_either_direction() -> None:
    keys = {"relation": "close", "machines": ["int"], "values": [4]}
    assert verdict_of(**keys, of="fast", against="slow", at_most=0.2001).holds
    assert not verdict_of(**keys, of="fast", against="slow", at_most=0.19).holds
    assert not verdict_of(**keys, of="slow", against="fast", at_most=0.24).holds


def test_an_order_has_an_upper_bound_too() -> None:
    keys = {"relation": "order", "order": "slow > fast", "machines": ["int"]}
    # 1.25, 1.333, 2
    assert verdict_of(**keys, at_most=2).holds
    assert verdict_of(**keys, at_most=1.9).failed == 1
    assert verdict_of(**keys, at_least=1.3, at_most=2).failed == 1


def test_a_difference_that_is_expected() -> None:
    # 1.25 at 4, 1.333 at 8
    four = {"values": [4], "at_least": 1.2, "at_most": 1.3, "reason": "small"}
    verdict = verdict_of(**EXPECTED, expected=[four, BETWEEN])
    assert (verdict.holds, verdict.fails, verdict.differing) == (False, False, 2)
    assert verdict.word == "differs (2 of 2 points; expected)"
    verdict = verdict_of(**EXPECTED, expected=[BETWEEN])
    assert (verdict.fails, verdict.failed, verdict.differing, verdict.reason) == (True, 1, 1, "r")
    assert verdict.word == "differs (1 of 2 points)"
    assert verdict_of(**EXPECTED, expected=[four]).worst.point == "int, 8"


def test_a_difference_that_is_expected_and_does_not_come_fails() -> None:
    keys = EXPECTED | {"at_least": 1.2}
    verdict = verdict_of(**keys, expected=[BETWEEN | {"values": [8]}])
    assert (verdict.fails, verdict.failed, verdict.word) == (True, 1, "holds, though expected to differ")


def test_expectations_belong_to_models() -> None:
    scope = Scope(SCOPE.machines, SCOPE.series, SCOPE.values, models=("one", "other"))
    found = built(claim(**EXPECTED, expected=[BETWEEN | {"at_least": 1.2, "models": ["other"]}]), scope)
    assert found.test(MEASURED, SCOPE.values, "one").fails
    assert not found.test(MEASURED, SCOPE.values, "other").fails


def test_ranges_select_values() -> None:
    assert verdict_of(relation="order", order="slow > fast", from_=8).samples == 4
    assert verdict_of(relation="order", order="slow > fast", to=4).samples == 2


def reported(**keys: Any) -> Verdict:
    return verdict_of(relation="reported", at_least=0, at_most=3000, **keys)


def test_a_number_of_the_report_is_tested_once_for_each_machine() -> None:
    verdict = reported(of="fast", key="cards.1.dma_bytes")
    assert (verdict.worst.number, verdict.samples, verdict.worst.point) == (30, 2, "int")
    assert verdict.claim.format(30) == "30 B"
    verdict = reported(of="slow", key="handlers.add.instructions", per="handlers.add.calls")
    assert (verdict.worst.number, verdict.claim.format(3.5)) == (3.5, "3.5")
    # 30 bytes in a run with 4 + 8 + 2 bytes.
    assert reported(of="slow", key="cards.1.dma_bytes", per="bytes").worst.number == 30 / 14
    assert reported(of="slow", key="cards.1.dma_bytes", against="fast", per="bytes").worst.number == 1


def test_a_number_that_the_program_prints_is_tested_at_each_point() -> None:
    verdict = reported(of="fast", key="hpus", machines=["int"])
    assert (verdict.worst.number, verdict.samples, verdict.worst.point) == (1, 3, "int, 4")
    assert reported(of="fast", key="hpus", per="bytes", values=[8192]).worst.number == 2048 / 2
    verdict = reported(of="fast", key="wait_ps", to=4)
    assert (verdict.worst.number, verdict.claim.format(2.5)) == (2.5, "2.5 ns")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"key": "cards.2.dma_bytes"}, "claim c: fast on int: cards.2.dma_bytes is not there"),
        ({"key": "cards.x.dma_bytes"}, "claim c: fast on int: cards.x.dma_bytes is not there"),
        ({"key": "handlers.add"}, "claim c: fast on int: handlers.add is no number but {'calls'"),
        ({"key": "size"}, "claim c: fast on int, 4: size is not there"),
        ({"key": "cards.1.dma_bytes", "per": "cards.0.dma_bytes"}, "claim c: cards.0.dma_bytes is 0, which allows"),
        ({"key": "cards.1.dma_bytes", "values": [4]}, "x.toml: claim[0].values: has no meaning for cards.1.dma_bytes"),
        ({"key": "cards.1.dma_bytes", "from_": 4}, "x.toml: claim[0].from: has no meaning for cards.1.dma_bytes"),
        ({"key": "hpus", "per": "cards.1.dma_bytes"}, "x.toml: claim[0].per: is a number of the run"),
    ],
)
def test_mistakes_in_what_is_reported(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(SpinkitError) as error:
        reported(of="fast", **keys)
    assert str(error.value).startswith(message)


def test_series_that_share_a_run_have_no_sums_of_their_own() -> None:
    keys = claim(relation="reported", of="fast", key="cards.1.dma_bytes", per="bytes", at_least=0, at_most=9)
    with pytest.raises(SpinkitError, match="per: names a number of points, but series share the run"):
        built(keys, replace(SCOPE, shared_run=True))


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"relation": "bigger"}, "claim[0].relation: invalid value 'bigger'"),
        ({"relation": "speedup", "of": "fast"}, "claim[0].against: missing"),
        ({"relation": "speedup", "of": "fst", "against": "slow"}, "claim[0].of: fst is not a series"),
        ({"relation": "speedup", "of": "fast", "against": "slow"}, "claim[0].at_least: missing"),
        ({"relation": "close", "of": "fast", "against": "slow", "at_least": 1.0}, "claim[0].at_least: has no meaning"),
        (
            {"relation": "order", "order": "slow > fast", "at_most": 2, "one_sided": "so"},
            "claim[0].one_sided: the claim",
        ),
        ({**EXPECTED, "expected": [{"at_least": 1.0, "reason": "r"}]}, "claim[0].expected[0].at_most: missing"),
        ({**EXPECTED, "expected": [BETWEEN | {"at_least": 9}]}, "claim[0].expected[0].at_most: must be at least 9"),
        ({**EXPECTED, "expected": [BETWEEN | {"models": ["x"]}]}, "claim[0].expected[0].models[0]: x is not among"),
        ({**EXPECTED, "expected": [BETWEEN | {"machines": ["dis"]}]}, "claim[0].expected[0].machines[0]: dis is not"),
        ({**EXPECTED, "expected": [BETWEEN | {"values": [8192]}]}, "claim[0].expected[0].values[0]: 8192 is no value"),
        ({"relation": "order", "order": "slow < fast"}, "claim[0].order: expected series joined by"),
        ({"relation": "order", "order": "slow > fst"}, "claim[0].order: fst is not a series"),
        ({"relation": "order", "order": "slow > fast", "machines": ["x"]}, "claim[0].machines[0]: x is not among"),
        ({"relation": "order", "order": "slow > fast", "values": [5]}, "claim[0].values[0]: 5 is not in sweep.values"),
        ({"relation": "order", "order": "slow > fast", "values": [4], "to": 8}, "claim[0].values: give values, or"),
        ({"relation": "order", "order": "slow > fast", "from_": 9000}, "claim[0].from: no value"),
        ({"relation": "order", "order": "slow > fast", "colour": 1}, "claim[0].colour: unknown key"),
        ({"relation": "order", "order": "slow > fast", "paper": "x"}, "claim[0].paper: expected a number"),
    ],
)
def test_mistakes_name_the_key(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(SpinkitError) as error:
        verdict_of(**keys)
    assert str(error.value).startswith(f"x.toml: {message}")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            {"relation": "speedup", "of": "fast", "against": "slow", "at_least": 1},
            "claim[0].at_most: missing; a sentence",
        ),
        (
            {"relation": "speedup", "of": "fast", "against": "slow", "at_most": 1},
            "claim[0].at_least: missing; a sentence",
        ),
        ({"relation": "speedup", "of": "fast", "against": "slow", "one_sided": "so"}, "claim[0].at_least: missing"),
        ({"relation": "order", "order": "slow > fast"}, "claim[0].at_most: missing; a"),
        ({"relation": "close", "of": "fast", "against": "slow"}, "claim[0].at_most: missing; a"),
        (
            {"relation": "close", "of": "fast", "against": "slow", "at_most": 1, "one_sided": "so"},
            "claim[0].one_sided: the claim has all its bounds",
        ),
        (
            {"relation": "order", "order": "slow > fast", "at_least": 2, "at_most": 1},
            "claim[0].at_most: must be at least 2.0, is 1.0",
        ),
    ],
)
def test_a_claim_has_both_bounds_or_says_why_not(keys: dict[str, Any], message: str) -> None:
    place = Place(Path("x.toml"), "claim[0]")
    with pytest.raises(SpinkitError) as error:
        build_claim(convert(claim(**keys), ClaimTable, place), place, SCOPE)
    assert str(error.value).startswith(f"x.toml: {message}")


@pytest.mark.parametrize("relation", ["reduction", "speedup", "order", "largest", "close"])
def test_nothing_is_compared_with_a_count_of_zero(relation: str) -> None:
    series = {"order": "slow >= fast"} if relation == "order" else {"of": "fast", "against": "slow"}
    bounds = {"at_most": 1.0} if relation in ("reduction", "speedup", "close") else {}
    found = built(claim(relation=relation, **series, **bounds), SCOPE)
    zero = dict.fromkeys(TIMES, 0)
    with pytest.raises(SpinkitError, match=r"claim c: (slow|fast) on (int|dis), \d+: the measured number is 0"):
        found.test(Measured(zero), SCOPE.values)


STORED = replace(SCOPE, data={"slow": "published", "fast": "formula"})


@pytest.mark.parametrize(
    ("keys", "scope", "kind"),
    [
        ({}, SCOPE, "simulated"),
        ({"source": "talk, “Broadcast”; it names no size"}, SCOPE, "simulated"),
        ({"source": "our own sum: 3 + 4 ns"}, SCOPE, "ours"),
        ({"source": "§5.3; the eight cores are ours"}, SCOPE, "ours"),
        ({"source": "sPIN §5.3; on PsPIN's card"}, SCOPE, "ours"),
        ({"source": "bound of a rank's link"}, SCOPE, "ours"),
        ({"class": "ours"}, SCOPE, "ours"),
        ({}, STORED, "formula"),
        ({}, replace(SCOPE, data={"slow": "published"}), "simulated"),
        ({}, replace(SCOPE, data={"fast": "frozen"}), "frozen"),
        ({"source": "our own"}, replace(SCOPE, data={"fast": "frozen"}), "frozen"),
        ({"class": "formula"}, replace(SCOPE, data={"fast": "frozen"}), "formula"),
    ],
)
def test_the_class_follows_from_source_and_series(keys: dict[str, Any], scope: Scope, kind: str) -> None:
    assert built(claim(**EXPECTED, at_most=2) | keys, scope).kind == kind


def test_only_a_claim_of_ours_is_a_regression_test() -> None:
    keys = claim(**EXPECTED, at_most=2, regression=True)
    assert built(keys | {"source": "our own"}, SCOPE).regression
    with pytest.raises(SpinkitError) as error:
        built(keys, SCOPE)
    assert "claim[0].regression: only a claim of ours has such bounds, and this one is simulated" in str(error.value)
