#!/bin/sh
# SPDX-License-Identifier: MIT
#
# In the machine under test: what stands at the other end of its cable, in a network namespace: a router that gives
# addresses (DHCP) and names (DNS), the internet behind it, and internal machines. Nothing leaves the emulator.
set -eu

udevadm settle
if ! ip netns list | grep -qw world; then
	ip netns add world
	ip link set world netns world
fi
in_world() {
	ip netns exec world "$@"
}
in_world ip link set lo up
in_world ip link set world up
in_world ip address replace 192.168.77.1/24 dev world
for address in 93.184.216.34 1.1.1.1 10.1.2.3 169.254.169.254; do
	in_world ip address replace $address/32 dev lo
done
in_world sysctl -q -w net.ipv4.ip_forward=1
mkdir -p /run/vm
in_world dnsmasq --conf-file=/dev/null --pid-file=/run/vm/dnsmasq.pid --dhcp-leasefile=/run/vm/leases --user=root \
	--no-resolv --no-hosts --bind-interfaces --interface=world --interface=lo --dhcp-authoritative \
	--dhcp-range=192.168.77.50,192.168.77.99,2m --dhcp-option=option:domain-search,home.example \
	--address=/name.example/93.184.216.34 --log-facility=/run/vm/dnsmasq.log
in_world python3 /var/lib/vm/echo.py >/run/vm/echo.log 2>&1 &
