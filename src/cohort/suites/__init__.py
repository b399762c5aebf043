"""Tests that others wrote, run under several policies: their results must not differ."""
