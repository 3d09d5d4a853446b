# SPDX-License-Identifier: Apache-2.0
"""Results as JSON without dates, paths or durations: the same inputs give the same bytes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import isfinite
from typing import Any

from spinkit.common._version import __version__
from spinkit.experiments import _demonstrations
from spinkit.experiments._claims import Claim, Expected, Sample, Verdict
from spinkit.experiments._outcome import Demonstration, Point, Results, Run


def _point(results: Results, point: Point) -> dict[str, Any]:
    return {
        "machine": point.machine,
        "series": point.series.name,
        "nic": point.series.nic,
        "mode": point.series.mode,
        results.experiment.sweep.axis: point.value,
        results.experiment.measure.key: point.measured,
        "data_ok": point.data_ok,
        **point.line,  # all further values that the program prints
    }


def _run(run: Run) -> dict[str, Any]:
    return {
        "machine": run.machine,
        "series": [series.name for series in run.series],
        "nic": run.series[0].nic,
        "report": run.report,
    }


def stated(claim: Claim) -> dict[str, Any]:
    """Return the definition of a claim, as in JSON."""
    return {
        "name": claim.name,
        "text": claim.text,
        "source": claim.source,
        "tested": claim.statement,
        "at_least": claim.at_least,
        "at_most": claim.at_most,
        "one_sided": claim.one_sided,
        "paper": claim.paper,
        "class": claim.kind,
        "regression": claim.regression,
        "expected": [_expected(expected) for expected in claim.expected],
    }


def _expected(expected: Expected) -> dict[str, Any]:
    return {
        "models": list(expected.models),
        "machines": list(expected.machines),
        "values": list(expected.values),
        "at_least": expected.interval.least,
        "at_most": expected.interval.most,
        "reason": expected.reason,
        "shown": [
            {
                "set": list(shown.changes),
                **({"flags": list(shown.flags)} if shown.flags else {}),
                "models": list(shown.models),
                "machines": list(shown.claim.machines),
                "values": list(shown.claim.values),
                "at_least": shown.claim.at_least,
                "at_most": shown.claim.at_most,
            }
            for shown in expected.shown
        ],
    }


def _number(sample: Sample, claim: Claim) -> dict[str, Any]:
    least = sample.stated.least
    return {
        "machine": sample.machine,
        "value": None if claim.of_runs else sample.value,
        "number": sample.number,
        "at_least": least if isfinite(least) else None,
        "holds": sample.holds,
    }


def _demonstration(one: Demonstration) -> dict[str, Any]:
    claim = one.verdict.claim
    return {
        "reason": one.expected.reason,
        "set": list(one.shown.changes),
        **({"flags": list(one.shown.flags)} if one.shown.flags else {}),
        "numbers": [_number(sample, claim) for sample in one.verdict.tested],
        "at_least": claim.at_least,
        "at_most": claim.at_most,
        "holds": one.verdict.holds,
        "explained": one.explained,
    }


def _verdict(verdict: Verdict, shown: Sequence[Demonstration]) -> dict[str, Any]:
    claim = verdict.claim
    explanation = _demonstrations.explanation(verdict, shown)
    return {
        **stated(claim),
        "model": verdict.model,
        "here": verdict.worst.number,
        "at": verdict.worst.point,
        "ratio": verdict.ratio,
        "samples": verdict.samples,
        "failed": verdict.failed,
        "differing": verdict.differing,
        "holds": verdict.holds,
        "fails": verdict.fails,
        "reason": verdict.reason,
        "explained": None if explanation is None else [explanation.least, explanation.most],
        "numbers": [
            {
                **_number(sample, claim),
                "reason": None if sample.expected is None else sample.expected.reason,
            }
            for sample in verdict.tested
        ],
        "shown": [_demonstration(one) for one in shown],
    }


def to_table(results: Results) -> dict[str, Any]:
    """Lay out results: every point, every run's report (handlers, counters), every claim."""
    shown = _demonstrations.by_claim(results)
    return {
        "experiment": results.experiment.name,
        "spinkit": __version__,
        "quick": results.quick,
        "points": [_point(results, point) for point in results.points],
        "runs": [_run(run) for run in results.runs],
        "claims": [
            _verdict(verdict, shown.get((verdict.claim.name, verdict.model), [])) for verdict in results.verdicts
        ],
    }


def to_json(content: dict[str, Any]) -> bytes:
    """Write laid-out results."""
    return (json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
