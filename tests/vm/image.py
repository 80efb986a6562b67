# SPDX-License-Identifier: MIT
"""
The images that are booted: Debian as a person has it. Each is kept below CACHE (tests/images.py).

    ROOT    the tree of files, in which the product is built natively
    disk    the same as a file system, never written to: each machine has an overlay
    kernel  initrd
"""

import os
import shutil
import subprocess

import images

CACHE = "/var/cache/claude-sandbox-vm"
VERSION = {"bookworm": 12, "trixie": 13}
DISK_BYTES = 8 << 30

# A machine that somebody logs in to, and what cases look with
PACKAGES = """apparmor bash-completion dbus-user-session dbus-bin dnsmasq-base ifupdown initramfs-tools iproute2
    iputils-ping kmod less libpam-systemd linux-image-amd64 openssh-client openssh-server procps python3 sudo
    systemd-sysv systemd-timesyncd tmux udev util-linux-extra zstd""".split()
OF_VERSION = {"bookworm": ["isc-dhcp-client"], "trixie": ["dhcpcd-base", "pkexec"]}
LATER = ["systemd-resolved"]               # kept in /root/later: what a case installs in the running machine
MODULES = ("virtio_blk", "virtio_pci", "virtio_net", "ext4")

# What only the tests need of the machine: its control on a port of its own, apart from every network.
CONTROL = """[Unit]
Description=Control of a machine under test
DefaultDependencies=no
After=systemd-remount-fs.service systemd-udev-trigger.service
Before=shutdown.target
Conflicts=shutdown.target

[Service]
ExecStartPre=/bin/sh -c 'modprobe -a virtio_console virtio_net; [ -e /var/lib/vm/done ] || tar -C / -xf /dev/vdb'
ExecStart=/usr/bin/python3 /var/lib/vm/control.py
Restart=always
RestartSec=1
KillMode=process
StandardError=journal+console

[Install]
WantedBy=sysinit.target
"""

SETUP = r"""set -eu
echo vm >/etc/hostname
printf '127.0.0.1\tlocalhost\n127.0.1.1\tvm\n::1\tlocalhost ip6-localhost\n' >/etc/hosts
printf '/dev/vda / ext4 errors=remount-ro 0 1\n' >/etc/fstab
printf 'auto lo\niface lo inet loopback\nallow-hotplug uplink\niface uplink inet dhcp\n' >/etc/network/interfaces
for i in 1 2; do
	name=$(echo uplink world | cut -d ' ' -f $i)
	printf '[Match]\nMACAddress=02:00:00:00:99:0%s\n[Link]\nName=%s\n' $i $name >/etc/systemd/network/10-$name.link
done
useradd -m -s /bin/bash -G sudo alice; echo alice:alice-pw | chpasswd
useradd -m -s /bin/bash bob; echo bob:bob-pw | chpasswd
for home in /root /home/alice /home/bob; do
	install -d -m 0700 -o "$(stat -c %u $home)" -g "$(stat -c %g $home)" $home/.ssh
done
ssh-keygen -q -t ed25519 -N '' -C vm -f /root/.ssh/id_ed25519
cp /root/.ssh/id_ed25519.pub /root/.ssh/authorized_keys
printf 'Host *\nStrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\n' >/root/.ssh/config
for user in alice bob; do
	for name in id_ed25519 authorized_keys config; do
		install -m 0600 -o $user -g $user /root/.ssh/$name /home/$user/.ssh/$name
	done
done
printf 'MaxStartups 100:30:200\nMaxSessions 100\nUseDNS no\n' >/etc/ssh/sshd_config.d/vm.conf
rm -f /etc/machine-id /etc/resolv.conf
: >/etc/machine-id
systemctl enable -q vm-control.service
systemctl disable -q systemd-timesyncd.service
systemctl mask -q apt-daily.timer apt-daily-upgrade.timer man-db.timer e2scrub_all.timer fstrim.timer \
	dpkg-db-backup.timer logrotate.timer e2scrub_reap.service
"""


def packages(suite):
    return sorted({*PACKAGES, *OF_VERSION[suite], *images.of_script("quickstart")})


def run(command, log, limit=images.LIMIT):
    with open(log, "ab") as f:
        result = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=f, stderr=f, timeout=limit, check=False)
    if result.returncode != 0:
        with open(log, encoding="utf-8", errors="replace") as f:
            raise images.Unavailable(f"{command[0]} failed:\n{f.read()[-3000:]}")


def make(suite, place):
    """Everything of one image in the directory place."""
    log, root = f"{place}/log", f"{place}/root"
    with open(f"{place}/sources", "w", encoding="utf-8") as f:
        f.write(images.sources(suite))
    with open(f"{place}/setup", "w", encoding="utf-8") as f:
        f.write(SETUP)
    with open(f"{place}/vm-control.service", "w", encoding="utf-8") as f:
        f.write(CONTROL)
    with open(f"{place}/initramfs", "w", encoding="utf-8") as f:
        f.write("MODULES=list\nCOMPRESS=gzip\n")
    with open(f"{place}/modules", "w", encoding="utf-8") as f:
        f.write("\n".join(MODULES) + "\n")
    # the kernel's package makes the initrd: what goes into it has to be there before
    run(["mmdebstrap", "--mode=root", "--variant=important", "--aptopt=APT::Install-Recommends \"false\"",
         "--aptopt=Acquire::Languages \"none\"", "--include=" + ",".join(packages(suite)),
         "--essential-hook=mkdir -p \"$1\"/etc/initramfs-tools/conf.d \"$1\"/usr/share/initramfs-tools/modules.d",
         f"--essential-hook=cp {place}/initramfs \"$1\"/etc/initramfs-tools/conf.d/vm",
         f"--essential-hook=cp {place}/modules \"$1\"/usr/share/initramfs-tools/modules.d/vm",
         f"--customize-hook=cp {place}/vm-control.service \"$1\"/etc/systemd/system/",
         "--customize-hook=mkdir \"$1\"/root/later; chroot \"$1\" sh -c 'cd /root/later; apt-get -q download "
         + " ".join(LATER) + "'",
         f"--customize-hook=chroot \"$1\" sh <{place}/setup", suite, root, f"{place}/sources"], log)
    boot = os.listdir(f"{root}/boot")
    for name, prefix in (("kernel", "vmlinuz-"), ("initrd", "initrd.img-")):
        shutil.copy(f"{root}/boot/{next(f for f in boot if f.startswith(prefix))}", f"{place}/{name}")
    with open(f"{place}/disk", "wb") as f:
        f.truncate(DISK_BYTES)
    run(["mke2fs", "-q", "-F", "-t", "ext4", "-E", "root_owner=0:0,lazy_itable_init=1,lazy_journal_init=1", "-d", root,
         f"{place}/disk"], log)


def image(suite):
    """The directory of the image, made when it is not there. Return: path."""
    images.need({"mmdebstrap": "mmdebstrap", "qemu-system-x86_64": "qemu-system-x86", "qemu-img": "qemu-utils",
                 "mke2fs": "e2fsprogs"})
    # a new list, a new script: another image
    parts = [CONTROL, SETUP, *MODULES, *packages(suite), *LATER, str(DISK_BYTES)]
    return images.kept(CACHE, suite, parts, lambda place: make(suite, place))
