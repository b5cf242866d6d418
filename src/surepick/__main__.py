"""`python -m surepick` is the command `surepick`."""

from surepick.cli import main

main()
