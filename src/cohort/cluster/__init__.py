"""Runs on the workers of a Dask cluster.

`engine` is the side of the command, `node` what it sends to a worker, `job` the shipped lab's own
process there, `content` how files travel.
"""
