"""QEMU: which accelerator works here, the machine's arguments, a guest run to its end."""
