# SPDX-License-Identifier: Apache-2.0
"""Draws the waveforms of docs/pspin-integration.md from the shell's activity: `make -C rtl guide`.

Each has its place in the guide behind a comment with its name. With `--check` the guide is compared, and not written.
"""

import os
import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

VCD = Path(tempfile.mkdtemp()) / "shell.vcd"
os.environ["WAVES"] = str(VCD)
import frames  # noqa: E402
import shell  # noqa: E402
from nic_model import UDP, flow  # noqa: E402
from test_shell import END, FIRST, LAST  # noqa: E402

GUIDE = shell.HERE.parents[2] / "docs" / "pspin-integration.md"
PLACE = re.compile(r"(<!-- waveform (?P<name>[\w-]+) -->\n)(?:```text\n.*?```\n)?", re.DOTALL)
SCOPE = ["TOP", "pspin_nic", "u_unit", "u_pspin"]
ME, PEER, PORT = 0x0A00_0002, 0x0A00_0001, 9

Sample = dict[str, int]


@dataclass(frozen=True)
class Waveform:
    """Ports from the cycle before `begins` until the one after the next that `ends`.

    A group of ports starts with its valid, which determines when its vectors are shown. A number after a port limits it
    to that many low bits.
    """

    begins: Callable[[Sample], object]
    ends: Callable[[Sample], object]
    groups: tuple[str, ...]


ENABLE, STATE = shell.ABI["ControlEnable"], shell.ABI["ControlState"]
PACKETS = range(shell.ABI["MapPacket"], shell.ABI["MapProgram"])
WAVEFORMS = {
    "register-write": Waveform(
        lambda now: now["ctrl_aw_valid_i"] and now["ctrl_aw_addr_i"] == ENABLE,
        lambda now: now["ctrl_b_valid_o"],
        (
            "ctrl_aw_valid_i ctrl_aw_ready_o ctrl_aw_addr_i",
            "ctrl_w_valid_i ctrl_w_ready_o ctrl_w_data_i ctrl_w_strb_i",
            "ctrl_b_valid_o ctrl_b_ready_i ctrl_b_resp_o",
        ),
    ),
    "register-read": Waveform(
        lambda now: now["ctrl_ar_valid_i"] and now["ctrl_ar_addr_i"] == STATE,
        lambda now: now["ctrl_r_valid_o"],
        ("ctrl_ar_valid_i ctrl_ar_ready_o ctrl_ar_addr_i", "ctrl_r_valid_o ctrl_r_ready_i ctrl_r_data_o ctrl_r_resp_o"),
    ),
    "packet-in": Waveform(
        lambda now: now["nic_aw_valid_i"] and now["nic_aw_addr_i"] in PACKETS,
        lambda now: now["her_valid_i"] and now["her_ready_o"],
        (
            "nic_aw_valid_i nic_aw_ready_o nic_aw_addr_i nic_aw_len_i",
            "nic_w_valid_i nic_w_ready_o nic_w_data_i:16 nic_w_last_i",
            "nic_b_valid_o nic_b_ready_i nic_b_resp_o",
            "her_valid_i her_ready_o her_message_i her_eom_i her_address_i her_size_i her_transfer_i her_user_i",
        ),
    ),
    "feedback": Waveform(
        lambda now: now["feedback_valid_o"] and now["feedback_last_o"],
        lambda now: now["feedback_valid_o"] and now["feedback_ready_i"],
        (
            "feedback_valid_o feedback_ready_i feedback_message_o feedback_address_o feedback_size_o feedback_user_o "
            "feedback_kind_o feedback_last_o",
        ),
    ),
    "packet-out": Waveform(
        lambda now: now["send_tvalid_o"],
        lambda now: now["send_tvalid_o"] and now["send_tready_i"] and now["send_tlast_o"],
        (
            "send_tvalid_o send_tready_i send_tdata_o:16 send_tkeep_o:16 send_tlast_o "
            "send_size_o send_node_o send_flow_o send_context_o",
        ),
    ),
    "host-read": Waveform(
        lambda now: now["host_ar_valid_o"],
        lambda now: now["host_r_valid_i"] and now["host_r_ready_o"] and now["host_r_last_i"],
        (
            "host_ar_valid_o host_ar_ready_i host_ar_id_o host_ar_user_o host_ar_addr_o host_ar_len_o",
            "host_r_valid_i host_r_ready_o host_r_id_i host_r_data_i:16 host_r_resp_i host_r_last_i",
        ),
    ),
    "host-write": Waveform(
        lambda now: now["host_aw_valid_o"],
        lambda now: now["host_b_valid_i"] and now["host_b_ready_o"],
        (
            "host_aw_valid_o host_aw_ready_i host_aw_id_o host_aw_user_o host_aw_addr_o host_aw_len_o",
            "host_w_valid_o host_w_ready_i host_w_data_o:16 host_w_strb_o:16 host_w_last_o",
            "host_b_valid_i host_b_ready_o host_b_id_i host_b_resp_i",
        ),
    ),
}


def record() -> tuple[list[Sample], dict[str, int]]:
    """Let a message of four packets pass; return the ports in each cycle, and their widths."""
    card = shell.Card([flow(UDP, PORT, ME, 1, END)], bytes(range(shell.RECORD)))
    card.lines.insert(0, f"waves {VCD}")
    for number in range(4):
        payload = (LAST if number == 3 else FIRST) + bytes([number] * 106)
        card.receive(frames.Packet(PEER, ME, UDP, payload, (40_000, PORT)).frame())
    result = card.play()
    assert len(result.sent) == 4
    widths, names = {}, {}
    now: Sample = {}
    cycles: list[Sample] = []
    scope: list[str] = []
    with VCD.open(encoding="ascii") as lines:
        for line in lines:
            words = line.split()
            if not words:
                continue
            if words[0] == "$scope":
                scope.append(words[2])
            elif words[0] == "$upscope":
                scope.pop()
            elif words[0] == "$var" and scope == SCOPE:
                names.setdefault(words[3], []).append(words[4])
                widths[words[4]] = int(words[2])
            elif line[0] == "#":
                # A cycle has an even time, at which its inputs and outputs are settled, and an odd one, after its edge.
                if now and int(line[1:]) % 2:
                    cycles.append(dict(now))
            elif line[0] == "b" and len(words) == 2:
                now |= dict.fromkeys(names.get(words[1], []), int(words[0][1:].replace("x", "0"), 2))
            elif line[0] in "01x":
                now |= dict.fromkeys(names.get(words[0][1:], []), int(line[0] == "1"))
    return cycles, widths


def draw(waveform: Waveform, cycles: list[Sample], widths: dict[str, int]) -> str:
    """Return the lines of a waveform, one column per cycle."""
    begin = next(index for index, now in enumerate(cycles) if waveform.begins(now))
    end = next(index for index in range(begin, len(cycles)) if waveform.ends(cycles[index]))
    shown = cycles[begin - 1 : end + 2]
    rows: list[tuple[str, list[str], list[bool]]] = []  # with the new values of a vector in a cycle
    for group in waveform.groups:
        valid, *others = group.split()
        is_new = [True, *(bool(now[valid] and now[others[0]]) for now in shown)]
        for port in (valid, *others):
            name, _, bits = port.partition(":")
            if widths[name] == 1:
                rows.append((name, [str(now[name]) for now in shown], []))
                continue
            width = int(bits or widths[name])
            digits = (width + 3) // 4
            values = [f"{now[name] & (1 << width) - 1:0{digits}X}" if now[valid] else "" for now in shown]
            if digits > 8:  # for an address of 64 bits, the nonzero part
                least = max(len(value.lstrip("0")) for value in values)
                values = [value[-least:] for value in values]
            rows.append((f"{name}[{width - 1}:0]" if bits else name, values, is_new))
    cell = 1 + max(2, max((len(value) for _, values, is_new in rows if is_new for value in values), default=0))
    column = max(len(name) for name, _, _ in rows) + 2
    lines = ["cycle".ljust(column) + "".join(f" {index - 1}".ljust(cell) for index in range(len(shown))).rstrip()]
    for name, values, is_new in rows:
        text = ""
        for index, value in enumerate(values):
            before = values[index - 1] if index else value
            if is_new:
                begins = value != before or bool(value and is_new[index])
                text += ("|" if begins else " ") + (value if begins else "").ljust(cell - 1)
            else:
                level = "¯" if value == "1" else "_"
                edge = level if value == before else "/" if value == "1" else "\\"
                text += edge + level * (cell - 1)
        lines.append((name.ljust(column) + text).rstrip())
    return "\n".join(lines)


def main() -> int:
    """Run the command."""
    guide = GUIDE.read_text(encoding="utf-8")
    cycles, widths = record()
    places = [found["name"] for found in PLACE.finditer(guide)]
    assert sorted(places) == sorted(WAVEFORMS), f"the guide has places for {places}"

    def drawn(found: re.Match[str]) -> str:
        return f"{found[1]}```text\n{draw(WAVEFORMS[found['name']], cycles, widths)}\n```\n"

    text = PLACE.sub(drawn, guide)
    if "--check" not in sys.argv:
        GUIDE.write_text(text, encoding="utf-8")
    elif text != guide:
        print(f"{GUIDE.name} has other waveforms than the hardware: make -C rtl guide", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
