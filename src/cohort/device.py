"""A machine that is reached by adb or ssh: what `cohort status` reads there, copied here."""

import subprocess
from pathlib import Path

from cohort import host
from cohort.errors import HostError, UsageError
from cohort.sysfs import SYSFS

LIMIT_S = 60.0
"""For an answer: a device that is short of memory takes seconds to start a shell."""
_ALIVE_S = 5
"""After so long without a word ssh asks whether the machine is still there, three times."""
_MARK = "\x01"
"""Stands before the name of each file; no file of these has it."""

_LIVE = f"proc/vmstat proc/buddyinfo proc/meminfo proc/zoneinfo $(find {SYSFS} -type f)"
_REST = "$(find sys/fs/cgroup -name memory.stat) proc/[0-9]*/vnode"
_FILES = """\
cd / || exit 1
for f in %s; do
  [ -f "$f" ] || continue
  printf '\\001%%s\\n' "$f"
  cat "$f"
done 2>/dev/null
"""
# Of a process's words it matters only whether it has any: a kernel thread has none.
_PROCESSES = """\
for f in proc/[0-9]*/cmdline; do
  printf '\\001%s\\n' "$f"
  if [ -n "$(head -c 1 "$f")" ]; then echo 1; fi
done 2>/dev/null
"""


def fetch(target: str, into: Path, *, live: bool = False) -> None:
    """Copy the files of `target` (`adb`, `adb:SERIAL` or `ssh:HOST`) below the directory `into`.

    `live` takes only what a look of `--watch` reads. Raises UsageError for another target,
    MissingTool without adb or ssh, HostError if the machine does not answer within LIMIT_S seconds.
    """
    script = _FILES % _LIVE if live else f"{_FILES % f'{_LIVE} {_REST}'}{_PROCESSES}"
    try:
        done = host.run([*_command(target), f"{script}exit 0"], limit_s=LIMIT_S)
    except subprocess.TimeoutExpired as error:
        raise HostError(f"{target} does not answer within {LIMIT_S:.0f} s", _SILENT) from error
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise HostError(f"{target} does not answer: {said[0]}", _HINTS[target.partition(":")[0]])
    for part in done.stdout.split(_MARK)[1:]:
        name, _, content = part.partition("\n")
        path = into / name
        if not path.resolve().is_relative_to(into.resolve()):
            raise HostError(f"{target} names a file outside its directories: {name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


_SILENT = (
    "it may be too short of memory to start a shell: try again when it is not, or have it copy the"
    " files to where --root finds them"
)
_HINTS = {
    "adb": "`adb devices` lists them; /sys may need `adb root`",
    "ssh": "it must let you in without a password: try `ssh HOST true`",
}


def _command(target: str) -> list[str | Path]:
    """The words before the script."""
    way, _, name = target.partition(":")
    if way == "adb":
        return [host.need("adb"), *(["-s", name] if name else []), "exec-out"]
    if way == "ssh" and name and not name.startswith("-"):
        options = ("BatchMode=yes", "ConnectTimeout=10", f"ServerAliveInterval={_ALIVE_S}")
        return [host.need("ssh"), *(x for option in options for x in ("-o", option)), name]
    raise UsageError(f"--on {target}: not a machine", "say adb, adb:SERIAL or ssh:HOST")
