# SPDX-License-Identifier: Apache-2.0
"""Profiles: sums worked out by hand, and a real run whose parts must agree."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from spinkit import _paths
from spinkit.cli import main
from spinkit.simulate import _profile

PARAMETERS = {
    "accelerator.hpus": 4,
    "accelerator.contexts": 8,
    "hpu.clock_ghz": 2.5,
    "network.G_ps_per_byte": 20,
    "network.mtu_bytes": 4096,
}
# The card runs line 5 once and line 7 ten times for each packet.
PROGRAM = """#include <spin.h>
#include <stdio.h>

__handler int count(const ptl_payload_t p, void *state) {
    __asm__ volatile("nop; nop; nop; nop; nop");
    for (int i = 0; i < 10; i++)
        __asm__ volatile("nop; nop; nop");
    return DROP;
}

int main(void) {
    static char data[8200];
    ptl_handle_ni_t ni;
    PtlInit();
    PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni);
    spin_set_map(ni);
    PtlPTAlloc(ni, 0, PTL_EQ_NONE, 0, &(ptl_pt_index_t){0});
    ptl_me_t me = {.start = data, .length = sizeof data, .uid = PTL_UID_ANY, .match_id.rank = PTL_RANK_ANY,
                   .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM, .payload_handler = count,
                   .hpu_memory = PTL_INVALID_HANDLE};
    PtlCTAlloc(ni, &me.ct_handle);
    PtlMEAppend(ni, 0, &me, PTL_PRIORITY_LIST, NULL, &(ptl_handle_me_t){0});
    spin_barrier();
    ptl_md_t md = {.start = data, .length = sizeof data, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
    ptl_handle_md_t memory;
    PtlMDBind(ni, &md, &memory);
    PtlPut(memory, 0, sizeof data, PTL_NO_ACK_REQ, (ptl_process_t){.rank = 1 - spin_rank()}, 0, 0, 0, NULL, 0);
    PtlCTWait(me.ct_handle, 1, &(ptl_ct_event_t){0});
    spin_barrier();
    PtlFini();
    return 0;
}
"""


def handler(**changes: int) -> dict[str, int]:
    counts = {"calls": 2, "errors": 0, "bytes": 8192, "dmas": 1, "puts": 3, "occupancy_ps": 800_000}
    instructions = {"instructions": 300, "min_instructions": 100, "max_instructions": 200}
    cycles = {"cycles": 1000, "min_cycles": 400, "max_cycles": 600}
    full = {"full_packets": 2, "full_packet_cycles": 1000, "full_packet_occupancy_ps": 800_000}
    return {**counts, **instructions, **cycles, **full, **changes}


def profile(**changes: int) -> _profile.Profile:
    report: dict[str, Any] = {
        "machine": "m",
        "parameters": {key: {"value": str(value), "unit": ""} for key, value in PARAMETERS.items()},
        "handlers": {"h": handler(**changes), "never": handler(calls=0)},
        "profile": {
            "h": [
                {"function": "h", "file": "h.c", "line": 7, "instructions": 240},
                {"function": "memcpy", "file": None, "line": None, "instructions": 60},
            ]
        },
    }
    return _profile.read(report)


def test_rates_by_hand() -> None:
    found = profile()
    [one] = found.handlers
    # 500 cycles of 400 ps are 200 ns on one HPU, 50 ns on four; 400 ns on eight contexts give the same rate.
    assert one.rate == _profile.Rate(4096, 20e6, 4096 * 8 / 50, True)
    assert one.mean_wait_ns == 200
    assert one.per_call == _profile.Spread(100, 150, 200)
    assert found.line_gbit_per_s == 400
    assert found.verdict(one) == "h sustains 400 Gbit/s at 4096 B packets with 4 HPUs: yes"
    assert [(line.place, line.share) for line in one.lines] == [
        ("h.c:7", 0.8),
        ("memcpy (no line information)", 0.2),
    ]


@pytest.mark.parametrize(
    ("changes", "packets_per_s", "sustains"),
    [
        # 81.92 ns a packet at 400 Gbit/s: on four HPUs of 400 ps a cycle that is 819.2 cycles for a packet.
        ({"full_packet_cycles": 1638}, 1e12 / 81_900, True),
        ({"full_packet_cycles": 1639}, 1e12 / 81_950, False),
        # Waiting occupies contexts: 8 × 81.92 ns.
        ({"full_packet_occupancy_ps": 1_310_720}, 1e12 / 81_920, True),
        ({"full_packet_occupancy_ps": 1_310_736}, 1e12 / 81_921, False),
    ],
)
def test_line_rate_is_decided_to_the_picosecond(changes: dict[str, int], packets_per_s: float, sustains: bool) -> None:
    [one] = profile(**changes).handlers
    assert one.rate is not None
    assert (one.rate.packets_per_s, one.rate.sustains_line) == (pytest.approx(packets_per_s, rel=1e-12), sustains)


def test_without_full_packets_the_mean_packet_counts() -> None:
    [one] = profile(full_packets=0, bytes=4096).handlers
    assert one.rate == _profile.Rate(2048, 20e6, 2048 * 8 / 50, False)
    [one] = profile(full_packets=0, bytes=0).handlers
    assert one.rate is None
    assert one.calls_per_s == 20e6


def test_a_real_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("count.c").write_text(PROGRAM)
    subprocess.run([_paths.command("spincc"), "-g", "-O1", "count.c", "-o", "count"], check=True)
    result = CliRunner().invoke(main, ["profile", "-n", "2", "--json", "profile.json", "./count"])
    assert result.exit_code == 0, result.output
    assert "count sustains 400 Gbit/s at 4096 B packets with 4 HPUs: yes" in result.output
    assert '__asm__ volatile("nop; nop; nop; nop; nop");' in result.output
    [found] = json.loads(Path("profile.json").read_text())["handlers"]
    # Each of two ranks gets 8200 B in three packets.
    assert (found["name"], found["calls"], found["bytes"], found["errors"]) == ("count", 6, 2 * 8200, 0)
    lines = {line["line"]: line["instructions"] for line in found["lines"]}
    assert (lines[5], lines[7]) == (6 * 5, 6 * 10 * 3)
    assert sum(lines.values()) == found["instructions"]
    # The JSON is alone on standard output, also where the program prints.
    capfd.readouterr()
    Path("count.c").write_text(PROGRAM.replace("int main(void) {", 'int main(void) {\n    puts("here");', 1))
    subprocess.run([_paths.command("spincc"), "-g", "-O1", "count.c", "-o", "count"], check=True)
    capfd.readouterr()
    assert CliRunner().invoke(main, ["profile", "-n", "2", "--json", "-", "./count"]).stdout == ""
    printed = capfd.readouterr()
    assert json.loads(printed.out)["handlers"][0]["calls"] == 6
    assert printed.err.count("here\n") == 2


def test_a_program_that_fails_has_no_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["profile", "false"])
    assert (result.exit_code, result.stdout) == (1, "")
    assert "spinkit: spinrun ended with status 1" in result.stderr


@pytest.mark.parametrize("command", ["profile", "trace"])
def test_an_unknown_option_is_not_taken_for_the_program(command: str) -> None:
    result = CliRunner().invoke(main, [command, "--line", "3", "./count"])
    assert result.exit_code == 2
    assert "No such option" in result.stderr
