# SPDX-License-Identifier: Apache-2.0
"""The headers of the SDK can be combined with those of the system, in any order."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from spinkit import _paths

CHECKOUT = Path(__file__).resolve().parents[2]
PROGRAM = """
__handler int take(const ptl_payload_t p, void *state) {
    (void)p, (void)state;
    return SUCCESS;
}
int main(void) {
    ptl_me_t me;
    me.payload_handler = take;
    return signal(SIGINT, SIG_DFL) == SIG_ERR || (wait(NULL) == -1 && me.payload_handler == NULL);
}
"""


@pytest.mark.parametrize("suffix", ["c", "cpp"])
@pytest.mark.parametrize("before", [True, False])
def test_system_headers_come_before_or_after(suffix: str, before: bool, tmp_path: Path) -> None:
    system = ["<signal.h>", "<sys/wait.h>", "<unistd.h>", "<pthread.h>", "<stdio.h>"]
    order = [*system, "<spin.h>"] if before else ["<spin.h>", *system]
    source = tmp_path / f"program.{suffix}"
    source.write_text("".join(f"#include {name}\n" for name in order) + PROGRAM)
    warnings = ["-Wall", "-Wextra", "-Werror"]
    compiler = "cc" if suffix == "c" else "c++"
    include = f"-I{CHECKOUT / 'sdk' / 'include'}"
    for command in (
        [compiler, "-fsyntax-only", include, *warnings, source],
        [_paths.command("spincc"), *warnings, source, "-o", tmp_path / "program"],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
