# SPDX-License-Identifier: MIT
"""What a child takes over from its parent: the agent has it as if it were started without a jail."""

import ctypes
import os

from case import ALICE, CLAUDE, ROOT, equal, has, holds, test
from conform import BOTH, STAND_IN, conform

SHOW = ("grep Cpus_allowed_list /proc/self/status; "
        "chrt -p $$ | sed 's/pid [0-9]*//'; nice; ionice; cat /proc/self/personality /proc/self/timerslack_ns; "
        "head -n 1 /proc/$$/numa_maps | cut -d' ' -f2; uname -m")
# set_mempolicy(2) with MPOL_BIND and MPOL_INTERLEAVE, as numactl(8) does; prctl(2) with PR_SET_TIMERSLACK
PYTHON = ("import ctypes, os, sys\nlibc = ctypes.CDLL(None, use_errno=True)\nif libc.{call}: sys.exit(os.strerror(ctypes.get_errno()))\n"
          "os.execv(sys.argv[1], sys.argv[1:])\n")
POLICY = "syscall({}, {}, ctypes.byref(ctypes.c_ulong(1)), ctypes.c_ulong(64))"
SET_MEMPOLICY = {"x86_64": 238, "aarch64": 237}[os.uname().machine]

WAYS = {
    "as it is": [],
    "processors": ["taskset", "-c", "0"],
    "other processors": ["taskset", "-c", str(os.cpu_count() - 1)],
    "batch": ["chrt", "-b", "0"],
    "idle": ["chrt", "-i", "0"],
    "niceness": ["nice", "-n", "7"],
    "batch and niceness": ["chrt", "-b", "0", "nice", "-n", "3"],
    "disk idle": ["ionice", "-c3"],
    "disk low": ["ionice", "-c2", "-n7"],
    "layout": ["setarch", os.uname().machine, "-R"],
    "personality": ["linux32"],
    "memory bound": ["python3", "-c", PYTHON.format(call=POLICY.format(SET_MEMPOLICY, 2))],
    "memory interleaved": ["python3", "-c", PYTHON.format(call=POLICY.format(SET_MEMPOLICY, 3))],
    "slack": ["python3", "-c", PYTHON.format(call="prctl(29, ctypes.c_ulong(1234567))")],
}


@conform(users=BOTH, of=tuple(WAYS))
def an_attribute_of_the_caller(side, way):
    status, out, err = side.pipes(command=[*WAYS[way], side.path, "exec", "sh", "-c", SHOW])
    equal((status, err), (0, b""))
    equal(len(out.splitlines()), 9, out)
    return out


@test(needs="bus")
def what_the_user_may_not_have(lab):
    """Root gives the caller a priority that the user's limits refuse: it is not kept, and that is said."""
    lab.install_agent(ALICE, source=STAND_IN)

    def real_time():
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(3))

    for before, word in ((real_time, b"scheduling policy"), (lambda: os.nice(-5), b"scheduling policy"),
                         (best_disk, b"I/O priority")):
        result = lab.run([CLAUDE, "exec", "sh", "-c", SHOW], before=before)
        equal(result.status, 0)
        has(result.err, word)
        has(result.err, b"Operation not permitted")
        equal(len(result.err.splitlines()), 1, result.err)
        usual = lab.run([CLAUDE, "exec", "sh", "-c", SHOW])
        equal((usual.out, usual.err), (result.out, b""))


def best_disk():
    """ioprio_set(2): the real-time class, level 0."""
    number = {"x86_64": 251, "aarch64": 30}[os.uname().machine]
    equal(ctypes.CDLL(None).syscall(number, 1, 0, 1 << 13), 0)


@test(needs="bus")
def what_root_may_have_is_kept(lab):
    """The same priorities of root's own caller."""
    lab.install_agent(ROOT, source=STAND_IN)

    def real_time():
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(3))

    for before, word in ((real_time, b"SCHED_RR"), (lambda: os.nice(-5), b"\n-5\n"), (best_disk, b"realtime: prio 0")):
        result = lab.run([CLAUDE, "exec", "sh", "-c", SHOW], ROOT, before=before)
        equal((result.status, result.err), (0, b""))
        has(result.out, word)


@test(needs="bus")
def what_a_child_does_not_take_over(lab):
    """SCHED_RESET_ON_FORK: a caller with a priority that is its own alone."""
    lab.install_agent(ALICE, source=STAND_IN)

    def real_time():
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(3))

    result = lab.run([CLAUDE, "exec", "sh", "-c", SHOW], before=real_time)
    equal((result.status, result.err), (0, b""))
    holds(b"SCHED_OTHER" in result.out, result.out)
