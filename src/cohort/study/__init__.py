"""Studies: a paper's figure or table, made again and set beside what the paper saw."""
