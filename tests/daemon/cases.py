# SPDX-License-Identifier: MIT
"""What the service owes its callers, one function each."""

from fixture import *  # noqa: F403

USER = 1000
CASES = []


def case(function):
    CASES.append(function)
    return function


@case
def activation_and_launch_as_root(machine, watch):
    """The bus starts the service; root gets a session that has root's identity and nothing else."""
    with Caller(0) as root:
        session, path, lifeline = root.launch(b"run", b"\xff\n", b"")
        assert len(session) == 16 and path == PATH + "/session/" + session and "fd" in lifeline
        facts = warnings(root, path, "fd 6")
        assert "uid 0 gid 0" in facts, facts
        assert "argument 2 bytes" in facts and "argument 0 bytes" in facts, facts
        assert "leads 1" in facts and "environment 0" in facts, facts
        fds = [int(line.split()[1]) for line in facts if line.startswith("fd ")]
        assert fds == [0, 1, 2, 3, 5, 6], fds
        assert root.manager("ListSessions")[0][0] == session
        root.manager("StopSession", "sa{sv}", session, {})
        assert root.manager("ListSessions") == []
        assert os.listdir("/run/claude-sandbox/sessions") == []
