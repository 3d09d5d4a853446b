"""`python -m spinkit`."""

from spinkit.cli import main

main()
