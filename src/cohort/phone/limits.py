"""What the guest has room for: the bounds of guest/ and of its kernel's configuration.

More than that ends a guest after its boot; the lab refuses it before.
"""

MAX_SLOTS = 128
"""Processes and apps together."""
MAX_ROLES = 8
MAX_ROUNDS = 1000
MAX_LAUNCHES = 20000
MAX_WRITES = 128
MAX_BENCHES = 32
"""Programs of a bench."""
MAX_PROGRAMS = 16
"""Programs that exit, started together."""
MAX_POOL = 4096
"""Kernel objects kept alive."""
MAX_CPUS = 8
MAX_ADJ = 1000
"""Of oom_score_adj, either way."""
MAX_NUMBER = 1 << 40
"""Of any number: in bytes or nanoseconds it still fits in 64 bits."""
