"""Results as JSON: the same inputs give the same bytes, so no dates, paths or durations."""

from __future__ import annotations

import json
from typing import Any

from spinkit import __version__
from spinkit._claims import Verdict
from spinkit._run import Point, Results, Run


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


def _verdict(verdict: Verdict) -> dict[str, Any]:
    claim = verdict.claim
    return {
        "name": claim.name,
        "text": claim.text,
        "source": claim.source,
        "tested": claim.statement,
        "at_least": claim.at_least,
        "at_most": claim.at_most,
        "one_sided": claim.one_sided,
        "paper": claim.paper,
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
    }


def to_json(results: Results) -> bytes:
    """Write results: every point, every run's report (handlers, counters), every claim."""
    content = {
        "experiment": results.experiment.name,
        "spinkit": __version__,
        "quick": results.quick,
        "points": [_point(results, point) for point in results.points],
        "runs": [_run(run) for run in results.runs],
        "claims": [_verdict(verdict) for verdict in results.verdicts],
    }
    return (json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
