# SPDX-License-Identifier: MIT
"""The contract, as any program on the machine meets it over the system bus."""

from case import equal, holds, test
from machine import ALICE


@test(needs="bus")
def bus_is_real(lab):
    """The real daemon at the real path, open to ordinary users; polkit answers through it."""
    result = lab.run(["/usr/bin/busctl", "--system", "list", "--activatable", "--no-legend"], user=ALICE)
    names = {line.split()[0] for line in result.out.decode().splitlines()}
    holds("org.freedesktop.PolicyKit1" in names, "polkit can be activated")
    result = lab.run(["/usr/bin/busctl", "--system", "get-property", "org.freedesktop.PolicyKit1",
                      "/org/freedesktop/PolicyKit1/Authority", "org.freedesktop.PolicyKit1.Authority",
                      "BackendName"], user=ALICE)
    equal(result.out, b's "js"\n', "polkit's own backend")
