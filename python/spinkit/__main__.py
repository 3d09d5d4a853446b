# SPDX-License-Identifier: Apache-2.0
"""`python -m spinkit`."""

from spinkit.cli import main

if __name__ == "__main__":  # the workers of a local cluster import this module too
    main()
