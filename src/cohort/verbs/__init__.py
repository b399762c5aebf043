"""The verbs of the command: one module each, with `command`."""
