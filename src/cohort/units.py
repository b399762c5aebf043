"""Sizes in bytes that more than one part of the lab counts in. It imports nothing of the lab."""

KIB, MIB = 1 << 10, 1 << 20

PAGE, LARGE_PAGE = 4096, 16384
"""The smallest page a machine has, which is a block of order 0, and the page of a machine whose
kernel was made for larger ones."""
