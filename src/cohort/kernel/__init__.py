"""The kernel: its source, Cohort put on it, its configuration, its build and its KUnit suites."""
