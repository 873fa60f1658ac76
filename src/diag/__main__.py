"""`python -m diag`."""

from diag.cli import main

main()
