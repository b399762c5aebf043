"""The phone: its workload, what its guest is started with, its storage."""
