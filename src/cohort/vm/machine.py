"""A virtual machine as QEMU's arguments."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from cohort import host
from cohort.errors import UsageError

Accel = Literal["deterministic", "tcg", "kvm"]

# erms and fsrm would make the kernel copy and clear with `rep`, which TCG runs byte by byte;
# rdrand and rdseed would bring the host's randomness into the run.
X86_CPU = "max,-erms,-fsrm,-rdrand,-rdseed"

# A phone's, without pointer authentication, which is slow to emulate, and without an instruction
# for random numbers.
ARM_CPU = "cortex-a76"

# Virtual time counts instructions and jumps over idle time, and one thread runs all virtual CPUs:
# the run then depends on nothing of the host.
ACCEL_ARGS: dict[Accel, tuple[str, ...]] = {
    "deterministic": (
        *("-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off"),
        *("-rtc", "base=2024-01-01,clock=vm"),
    ),
    "tcg": ("-accel", "tcg,thread=multi"),
    "kvm": ("-accel", "kvm"),
}

# What makes a kernel end on failure, and every run see the same addresses and randomness.
CMDLINE = (
    *("nokaslr", "norandmaps", "random.trust_cpu=off"),
    *("panic=-1", "oops=panic"),
)

PORT = "org.cohort.records"
PMEM = "/dev/pmem0"
SECTOR = 512


@dataclass(frozen=True)
class Emulator:
    """QEMU for one machine architecture: the CPU it emulates, the guest's name of its serial
    port, and whether it has NVDIMMs without firmware. Without, the storage is a PCI device's."""

    program: str
    machine: str
    cpu: str
    console: str
    nvdimm: bool


EMULATORS = {
    "x86_64": Emulator("qemu-system-x86_64", "q35,nvdimm=on", X86_CPU, "ttyS0", nvdimm=True),
    # The seeds in its device tree would be random.
    "arm64": Emulator(
        "qemu-system-aarch64", "virt,dtb-randomness=off", ARM_CPU, "ttyAMA0", nvdimm=False
    ),
}


@dataclass(frozen=True)
class Latency:
    """What a request to the storage costs: fixed microseconds, and its size over 10^6 bytes/s."""

    read_us: int
    write_us: int
    mb_per_s: int


@dataclass(frozen=True)
class VmSpec:
    """A machine to boot; memory in MiB. Records and console go to files in `run_dir`.

    Without `latency` the storage answers at once, as /dev/pmem0; with it, it is /dev/dm-0.
    `nodes_mb` is the memory of each NUMA node that the firmware tells of, all of `memory_mb`;
    CPU n is in node n. With `keep_writes` the guest writes to the file `storage` itself.
    `guaranteed_mb` MiB are reserved for GCMA, in the device tree of an arm64 machine.
    """

    run_dir: Path
    kernel: Path
    accel: Accel
    memory_mb: int
    cpus: int
    initrd: Path | None = None
    storage: Path | None = None
    latency: Latency | None = None
    cmdline: tuple[str, ...] = field(default=())
    arch: str = "x86_64"
    nodes_mb: tuple[int, ...] = ()
    keep_writes: bool = False
    guaranteed_mb: int = 0

    @property
    def device_tree(self) -> Path:
        """The machine's device tree, where QEMU does not make it."""
        return self.run_dir / "machine.dtb"

    @property
    def console(self) -> Path:
        """What the guest's kernel prints."""
        return self.run_dir / "console.log"

    @property
    def records(self) -> Path:
        """What the guest reports, JSON lines."""
        return self.run_dir / "records.jsonl"

    @property
    def kernel_cmdline(self) -> str:
        """The guest kernel's command line."""
        console = f"console={emulator(self.arch).console}"
        return " ".join([console, *CMDLINE, *self._flash(), *self.cmdline])

    def _flash(self) -> list[str]:
        """Put the device-mapper target `flash` over the whole of the storage."""
        if self.storage is None or self.latency is None:
            return []
        sectors = self.storage.stat().st_size // SECTOR
        cost = self.latency
        target = f"flash {PMEM} {cost.read_us} {cost.write_us} {cost.mb_per_s}"
        return [f"dm-mod.waitfor={PMEM}", f'dm-mod.create="flash,,,rw,0 {sectors} {target}"']


def emulator(arch: str) -> Emulator:
    """QEMU for the architecture, or UsageError."""
    if arch not in EMULATORS:
        raise UsageError(f"no emulator for {arch}", f"there are: {', '.join(EMULATORS)}")
    return EMULATORS[arch]


# Of a machine with nodes: CPUs of one package on two nodes are what a kernel complains of.
_PACKAGES = ",cores=1,threads=1"


def board(spec: VmSpec) -> list[str]:
    """QEMU, and its arguments that decide what the machine's device tree says."""
    return [str(host.need(emulator(spec.arch).program)), *_board(spec)]


def _board(spec: VmSpec) -> list[str]:
    machine = emulator(spec.arch)
    memory = f"{spec.memory_mb}"
    if spec.storage is not None and machine.nvdimm:
        memory += f",slots=2,maxmem={spec.memory_mb + 8192}M"
    return [
        *("-M", machine.machine, "-m", memory),
        *(*ACCEL_ARGS[spec.accel], "-cpu", "host" if spec.accel == "kvm" else machine.cpu),
        *("-smp", f"{spec.cpus}{_PACKAGES if spec.nodes_mb else ''}"),
        *_node_arguments(spec.nodes_mb),
    ]


def arguments(spec: VmSpec) -> list[str]:
    """QEMU's argument vector."""
    return [str(host.need(emulator(spec.arch).program)), *_words(spec)]


def placeless(spec: VmSpec) -> list[str]:
    """The argument vector with names in place of this host's paths: what it says of the guest.

    Of all files only the storage need be there, which is asked for its size.
    """
    initrd = None if spec.initrd is None else Path("initrd")
    named = replace(spec, run_dir=Path("run"), kernel=Path("kernel"), initrd=initrd)
    words = [emulator(spec.arch).program, *_words(named)]
    return [word.replace(str(spec.storage), "storage") for word in words]


def _words(spec: VmSpec) -> list[str]:
    machine = emulator(spec.arch)
    return [
        *_board(spec),
        *(["-dtb", str(spec.device_tree)] if spec.guaranteed_mb else []),
        *("-nographic", "-nodefaults", "-no-user-config", "-no-reboot"),
        *("-chardev", f"file,id=console,path={spec.console}", "-serial", "chardev:console"),
        *_records_arguments(spec),
        *([] if spec.storage is None else _storage_arguments(spec, spec.storage, machine)),
        *("-kernel", str(spec.kernel)),
        *([] if spec.initrd is None else ["-initrd", str(spec.initrd)]),
        *("-append", spec.kernel_cmdline),
    ]


def _node_arguments(nodes_mb: tuple[int, ...]) -> list[str]:
    words = []
    for node, size_mb in enumerate(nodes_mb):
        words += ["-object", f"memory-backend-ram,id=node{node},size={size_mb}M"]
        words += ["-numa", f"node,nodeid={node},cpus={node},memdev=node{node}"]
    return words


def _records_arguments(spec: VmSpec) -> list[str]:
    # ioeventfd=off: the guest's driver spins until its write is taken. Taken by the main loop,
    # that is after a time of the host's choosing; taken in the virtual CPU's own exit, at once.
    return [
        *("-device", "virtio-serial-pci,ioeventfd=off"),
        *("-chardev", f"file,id=records,path={spec.records}"),
        *("-device", f"virtserialport,chardev=records,name={PORT}"),
    ]


def _storage_arguments(spec: VmSpec, image: Path, machine: Emulator) -> list[str]:
    """Memory, because it answers at once; share=off: the guest's writes stay its own.

    That of a PCI device is taken by the kernel's flash-store; the file's size is a power of two.
    """
    size = image.stat().st_size
    share = "on" if spec.keep_writes else "off"
    device = "nvdimm" if machine.nvdimm else "ivshmem-plain"
    return [
        "-object",
        f"memory-backend-file,id=store,share={share},size={size},mem-path={image}",
        *("-device", f"{device},memdev=store"),
    ]
