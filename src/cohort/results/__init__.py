"""From the records of runs to metrics, tables, plots and the report."""
