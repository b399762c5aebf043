"""Sets of records: which finished runs make one, and how they are made again."""
