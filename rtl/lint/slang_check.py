# SPDX-License-Identifier: Apache-2.0
"""Elaborates the sources with slang, a second reader of the language, and fails for any warning in our files."""

import sys

from pyslang.driver import Driver

# Options beyond slang's default warnings. Defaults of unique cases define the result for unexpected values; unconnected
# outputs are those of the core that PsPIN does not use.
OPTIONS = ["-Wextra", "-Wwidth-trunc", "-Wwidth-expand", "-Wno-case-redundant-default", "-Wno-empty-output-connection"]


def main(arguments: list[str]) -> int:
    """Run the command."""
    driver = Driver()
    driver.addStandardArgs()
    words = ["slang", *OPTIONS, "--suppress-warnings", "../out/rtl/core", "--lint-only", *arguments]
    if not (driver.parseCommandLine(" ".join(words)) and driver.processOptions() and driver.parseAllSources()):
        return 1
    compilation = driver.createCompilation()
    driver.reportCompilation(compilation, True)
    clean = driver.reportDiagnostics(False)
    return 0 if clean and driver.diagEngine.numWarnings == 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
