# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which names a tenant, a team or a user may have. Private to the collection gpuops.tenancy.

Slurm accepts C(root), C(slurm) and C(1003) as user names, and a POSIX group that carries the name of an account
such as C(docker) or C(sudo) is a way to root: so every name is checked here before anything else happens.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

# Letters, digits, dot, underscore, hyphen; a letter or digit first, and a letter somewhere.
NAME = r"^([a-z]|[0-9][0-9._-]*[a-z])[a-z0-9._-]*$"
USER_LENGTH = 32  # useradd and utmp
ACCOUNT_LENGTH = 64

# Users and groups that Linux distributions, Slurm, GPU and storage software and container engines bring along.
_SYSTEM = """
root daemon bin sys sync games man lp mail news uucp proxy www-data backup list irc gnats nobody nogroup adm tty disk
kmem dialout fax voice cdrom floppy tape sudo audio dip operator src shadow utmp video sasl plugdev staff users input
sgx kvm render crontab netdev wheel halt shutdown ftp lock mem systemd messagebus dbus polkitd polkit sshd ssh uuidd
tss tcpdump syslog landscape rtkit avahi colord geoclue pulse usbmux dnsmasq rpc rpcuser statd nfsnobody nscd nslcd
sssd ldap openldap slapd kdc chrony ntp ntpd postfix postdrop exim apache nginx httpd haproxy squid named bind unbound
mysql mariadb postgres redis memcached mongodb rabbitmq elasticsearch influxdb prometheus grafana alertmanager
node-exporter telegraf nagios icinga zabbix docker podman containerd lxd libvirt libvirt-qemu qemu ceph gluster weka
lustre beegfs gpfs nvidia nvidia-persistenced nvidia-dcgm dcgm fabricmanager opensm ibacm munge slurm slurmd slurmctld
slurmdbd slurmrestd admin administrator sysadmin ansible guest anonymous ubuntu debian centos rocky almalinux fedora
ec2-user cloud-user vagrant pi jenkins gitlab-runner
"""
SYSTEM = frozenset(_SYSTEM.split())
SYSTEM_PREFIXES = ("systemd-", "debian-", "snap-")


@dataclass(frozen=True)
class Policy:
    """What the site says about names and QOS; the rest of the rules is fixed."""

    operators: frozenset[str] = field(default_factory=frozenset)
    platform_account: str = "platform"
    reserved: frozenset[str] = field(default_factory=frozenset)
    retired: frozenset[str] = field(default_factory=frozenset)
    site_qos: frozenset[str] | None = None  # None: not known here
    block_qos: str = "blocked"


def fold(value: object) -> object:
    """Slurm folds names to lower case. Only ASCII: U+212A would otherwise turn into a plain k."""
    return value.lower() if isinstance(value, str) and value.isascii() else value


def fold_text(text: str) -> str:
    """Slurm's own folding of descriptions: ASCII letters, nothing else."""
    return "".join(char.lower() if char.isascii() else char for char in text)


def shape(name: str, length: int) -> str | None:
    """Why `name` cannot be written into any back end, or None."""
    if name == "":
        return "is empty; Slurm takes an empty name for every object of the cluster: write a name, or remove the line"
    if len(name) > length:
        return f"has {len(name)} characters; at most {length} are possible"
    for char, what in (("\n", "a line break"), (" ", "a blank"), ("'", "a quote"), ('"', "a quote"), ("`", "a quote")):
        if char in name:
            return f"contains {what}; {ALLOWED}"
    if not re.fullmatch(NAME, name):
        bad = sorted({char for char in name if not re.fullmatch("[a-z0-9._-]", char)})
        if bad:
            return "contains {}; {}".format(", ".join(repr(char) for char in bad), ALLOWED)
        if not name[0].isalnum():
            return f"starts with {name[0]!r}; the first character is a letter or a digit"
        return "has no letter; system tools take such a name for a number, so it needs at least one letter"
    return None


ALLOWED = "allowed are a-z, 0-9, '.', '_' and '-', the first one a letter or a digit"


def refused(name: str, policy: Policy, account: bool) -> str | None:
    """Why a well-formed `name` is not for a tenant's use, or None."""
    if account and name in (policy.platform_account, "root"):
        return "is the operators' own account and never part of a tenant; choose another name"
    if name in policy.operators:
        return "is an operator's name, and operators are managed apart from tenants; choose another name"
    if name in SYSTEM or name.startswith(SYSTEM_PREFIXES):
        return "is a system account or group; choose another name"
    if name in policy.reserved or name == policy.platform_account:
        return "is reserved on this site; choose another name"
    if name in policy.retired:
        return (
            "is retired: it belonged to somebody who left, and Slurm would revive the old association with its "
            "history; choose a name that was never used"
        )
    return None


def near(word: str, known: Iterable[str]) -> str:
    """'; did you mean X?' or an empty text."""
    found = difflib.get_close_matches(word, sorted(known), n=2, cutoff=0.6)
    return "; did you mean {}?".format(" or ".join(found)) if found else ""
