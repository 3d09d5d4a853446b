# SPDX-License-Identifier: Apache-2.0
"""Routing of an HPU's accesses: each goes to one destination, which answers it."""

from collections import Counter
from typing import Any

import cocotb
from common import start
from sv_types import enum, struct

ACCESS, Atop, Cause = struct("word_request_t"), enum("atop_e"), enum("cause_e")
PLACES = ("l1", "pe", "driver")


@cocotb.test()
async def random_accesses(dut) -> None:
    bench = await start(dut)
    rng = bench.rng
    access: dict[str, Any] | None = None  # requested by the core
    waits: str | None = None  # destination of the outstanding access
    asked = False  # a remote memory has a request that it has not accepted
    stop = abort = False
    seen: Counter[str] = Counter()
    for now in range(7_000):
        # A stopped handler is cancelled once its remote access is accepted and answered.
        if not stop:
            stop = bench.happens(0.02)
        elif abort:
            stop = abort = bench.happens(0.5)
        else:
            abort = waits != "pe" and not asked and bench.happens(0.3)
        if abort:
            access, asked = None, False
        elif access is None and bench.happens(0.6):
            is_atomic = bench.happens(0.2)
            access = {
                "we": rng.getrandbits(1),
                "atop": rng.choice([Atop.AtopAdd, Atop.AtopLr, Atop.AtopSwap]) if is_atomic else Atop.AtopNone,
                "address": rng.getrandbits(32),
                "be": rng.getrandbits(4),
                "wdata": rng.getrandbits(32),
                "second": bench.happens(0.1),
                "allowed": bench.happens(0.8),
                "own": bench.happens(0.5),
                "register": bench.happens(0.3),
                "common": rng.getrandbits(32),
            }
            if is_atomic and bench.happens(0.7):
                access["address"] &= ~3
        dut.req_i.value = access is not None
        fields = access or {}
        names = ("we", "atop", "address", "be", "wdata")
        dut.request_i.value = ACCESS.pack(**{name: fields[name] for name in names} if access else {})
        dut.second_i.value, dut.allowed_i.value = fields.get("second", 0), fields.get("allowed", 0)
        dut.is_own_l1_i.value, dut.common_i.value = fields.get("own", 0), fields.get("common", 0)
        dut.has_register_i.value = fields.get("register", 0)
        dut.stop_i.value, dut.abort_i.value = stop, abort
        answers = waits is not None and not (abort and waits == "driver")
        answers = answers and bench.happens(0.15 if waits == "driver" else 0.6)
        data = {place: rng.getrandbits(32) for place in PLACES}
        for place in PLACES:
            getattr(dut, f"{place}_rvalid_i").value = answers and waits == place
            getattr(dut, f"{place}_rdata_i").value = data[place]
        ready = {"l1": bench.happens(0.6), "pe": bench.happens(0.5), "driver": True}
        dut.l1_gnt_i.value, dut.pe_ready_i.value = ready["l1"], ready["pe"]
        await bench.read()

        goes: str | None = None
        if access and (waits is None or answers) and (not stop or asked):
            if access["atop"] != Atop.AtopNone and access["address"] % 4:
                goes = "misaligned"
            elif access["register"] and (access["second"] or not access["allowed"]):
                goes = "driver"
            elif not access["allowed"] and not access["second"]:
                goes = "denied"
            else:
                goes = "l1" if access["own"] else "pe"
        for place in PLACES:
            assert bool(getattr(dut, f"{place}_valid_o").value) == (goes == place), (now, place, goes)
        granted = goes in PLACES and ready[goes]
        assert bool(dut.gnt_o.value) == granted, now
        assert bool(dut.denied_o.value) == (goes in ("denied", "misaligned")), now
        if goes in ("denied", "misaligned"):
            stores = access["we"] and access["atop"] == Atop.AtopNone
            cause = Cause.CauseStore if stores else Cause.CauseLoad
            assert dut.denied_cause_o.value == (Cause.CauseMisaligned if goes == "misaligned" else cause), now
        if goes in ("l1", "pe"):
            expected = {name: access[name] for name in ("we", "atop", "be", "wdata")} | {"address": access["common"]}
            assert int(dut.request_o.value) == ACCESS.pack(**expected), now
        assert bool(dut.rvalid_o.value) == answers, now
        if answers:
            assert int(dut.rdata_o.value) == data[waits], now
        assert bool(dut.remote_busy_o.value) == (goes == "pe" or (waits == "pe" and not answers)), now

        asked = goes == "pe" and not granted
        seen[f"{goes} held" if goes in PLACES and not granted else str(goes)] += 1
        seen["forgotten"] += abort and waits == "driver"
        if answers or (abort and waits == "driver"):
            waits = None
        if granted:
            waits = goes
        # A core with a denied access continues only after its reset; here it makes another request.
        if granted or goes in ("denied", "misaligned"):
            access = None
        await bench.next()
    assert len(seen) == 9, seen
    assert min(seen.values()) > 8, seen
