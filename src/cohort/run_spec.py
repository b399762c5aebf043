"""What is asked of a run: its policy, workload, seed and machine, before anything is made."""

from dataclasses import dataclass
from math import inf
from pathlib import Path

from cohort import switches
from cohort.errors import UsageError
from cohort.kernel.build import KernelSpec
from cohort.phone.workload import Workload
from cohort.policy import MOST_MEMORY_MB, Policy
from cohort.units import PAGE
from cohort.vm import accel as accelerators


@dataclass(frozen=True)
class RunSpec:
    """What to run. Memory in MiB and the limit in seconds; None for what fits the workload.

    `change` replaces numbers of the workload by their dotted keys. `cmdline` is added to the guest
    kernel's command line after the policy's. `kernel` is None for the build the policy names
    for `arch` and pages of `page_size` bytes, of `tree` or the fetched one. `fresh` runs again even
    if the result is there, and `one_commit` refuses one that is there and of another commit.
    """

    policy: Policy
    workload: str
    launches: int | None = None
    seed: int = 1
    accel: accelerators.Wish = "deterministic"
    memory_mb: int | None = None
    timeout_s: float | None = None
    kernel: KernelSpec | None = None
    cmdline: tuple[str, ...] = ()
    change: tuple[tuple[str, int], ...] = ()
    fresh: bool = False
    one_commit: bool = False
    arch: str = "x86_64"
    page_size: int = PAGE
    tree: Path | None = None

    def __post_init__(self) -> None:
        switches.check(self.policy.cmdline, f"policy {self.policy.name}: cmdline")
        switches.check(self.cmdline, "kernel command line")
        switches.check(self.words, f"policy {self.policy.name} and kernel command line")
        if self.launches is not None and self.launches < 1:
            raise UsageError(
                f"launches must be at least 1, not {self.launches}",
                "without --launches there are as many as the workload says",
            )
        if self.memory_mb is not None and not 1 <= self.memory_mb <= MOST_MEMORY_MB:
            raise UsageError(
                f"memory must be 1 to {MOST_MEMORY_MB} MiB, not {self.memory_mb}",
                "--memory 2048 is a phone of 2 GiB; without it there is what the workload says",
            )
        if self.timeout_s is not None and not 0 < self.timeout_s < inf:
            raise UsageError(
                f"the limit must be more than 0 seconds, not {self.timeout_s:g}",
                "without --timeout it is what the launches may take on a busy host",
            )
        self._check_kernel()

    def _check_kernel(self) -> None:
        """UsageError for a switch of Cohort's beside a kernel without it; and for a machine that no
        kernel is for."""
        kernel, given = self.kernel_spec, switches.values(self.cmdline)
        if given and not kernel.has_cohort:
            raise UsageError(
                f"kernel command line: {next(iter(given))}=: the kernel of policy"
                f" {self.policy.name}, {','.join(kernel.configs)}, has no Cohort",
                "leave it out, or take a policy of another kernel: none",
            )

    @property
    def words(self) -> tuple[str, ...]:
        """What is added to the guest kernel's command line: the policy's words, and the run's."""
        words = (*self.policy.cmdline, *self.cmdline)
        return tuple(switches.whole(word, self.page_size) for word in words)

    @property
    def kernel_spec(self) -> KernelSpec:
        """The kernel to build for this run."""
        if self.kernel is not None:
            return self.kernel
        return KernelSpec.variant(self.policy.kernel, self.arch, self.tree, self.page_size)

    @property
    def config(self) -> str | None:
        """The kernel's fragments, as --config takes them, where they are not the policy's own."""
        asked = self.kernel_spec
        try:
            own = KernelSpec.variant(
                self.policy.kernel, asked.arch, asked.tree, page_size=asked.page_size
            )
        except UsageError:  # for this machine there is none
            return ",".join(asked.configs)
        return None if asked.configs == own.configs else ",".join(asked.configs)

    def memory_of(self, workload: Workload) -> int:
        """Memory of the run's machine, MiB: what is asked for, or what the workload says."""
        return workload.memory_mb if self.memory_mb is None else self.memory_mb
