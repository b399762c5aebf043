"""Cohort's lab: builds the kernel, boots a phone on it, measures it, compares policies."""

__version__ = "0.1.0"
