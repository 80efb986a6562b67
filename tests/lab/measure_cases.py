# SPDX-License-Identifier: MIT
"""What the rows of verify say of jails that are not as they began."""

from bus_cases import Held
from case import equal, test
from machine import ALICE, ROOT
from verify_cases import verify


@test(60, needs="bus")
def what_an_agent_made_is_its_own(lab):
    """In a session that runs, what lies in private directories, listens or has namespaces of its own is the agent's."""
    made = r"""
cd; rm -f .claude.json
mkdir -p .config/other .config/gh more/deep /tmp/more /run/user/1 /run/secrets
echo mine | tee .netrc .Xauthority /tmp/.netrc /run/secrets/mine /run/user/1/bus /dev/mine >/dev/null
chmod 700 /tmp /run
rm -f /dev/fd /dev/core; rmdir /dev/shm
(unshare -Ur tail -f /dev/null || true) 2>/dev/null &
python3 -c '
import signal, socket
s = socket.socket(socket.AF_UNIX); s.bind("/tmp/socket"); s.listen(1); d = socket.socket(socket.AF_UNIX); d.bind("/run/docker.sock"); d.listen(1)
t = socket.socket(); t.bind(("127.0.0.1", 5432)); t.listen(1)
print("ready", flush=True)
signal.pause()' &
read x; exit 3
"""
    for user in (ALICE, ROOT):
        with Held(lab, user, made) as held:
            verify(lab, held.id, user=user).passes()
            equal(held.end(), 3, "its agent")
