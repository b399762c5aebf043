"""`python -m cohort` is the `cohort` command."""

from cohort.cli import main

main()
