#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Turns a bare Debian root file system into the image of every cluster host. Runs once, inside a container.
# Slurm, MariaDB and nftables are only downloaded: site.yml installs them, as it would on bare hosts, but needs no network for it.
set -eu
export DEBIAN_FRONTEND=noninteractive

printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d   # no daemon starts while the image is made
chmod 0755 /usr/sbin/policy-rc.d
rm -f /etc/apt/apt.conf.d/docker-clean                     # it would empty the cache of packages
echo 'APT::Keep-Downloaded-Packages "true";' > /etc/apt/apt.conf.d/90keep

apt-get update -q
apt-get install -qy --no-install-recommends \
    systemd systemd-sysv dbus python3 python3-apt iproute2 procps ca-certificates openssh-server netcat-openbsd sudo less
apt-get install -qy --no-install-recommends --download-only \
    munge mariadb-server slurmdbd slurmctld slurmd slurm-client slurm-wlm-basic-plugins nftables \
    libpam-slurm-adopt libpam-systemd dbus-user-session polkitd cron at

rm -f /usr/sbin/policy-rc.d /etc/ssh/ssh_host_*
[ -d /root/.ssh ] || mkdir -m 0700 /root/.ssh
# All names are in /etc/hosts; any other one fails at once instead of waiting for a server that cannot be reached.
sed -i 's/^hosts:.*/hosts: files/' /etc/nsswitch.conf
# Nothing here has a console, a disk to check or a clock to set.
systemctl mask getty.target console-getty.service \
    apt-daily.timer apt-daily-upgrade.timer e2scrub_all.timer fstrim.timer dpkg-db-backup.timer

# GPUs without a driver: opening one answers ENXIO where the device cgroup allows it and EPERM where it does not.
cat > /usr/local/sbin/demo-gpu-devices <<'EOF'
#!/bin/sh
count=$(cat /etc/demo-gpu-devices)
n=0
while [ "$n" -lt "$count" ]; do
    [ -e "/dev/nvidia$n" ] || mknod -m 0666 "/dev/nvidia$n" c 195 "$n"
    n=$((n + 1))
done
EOF
chmod 0755 /usr/local/sbin/demo-gpu-devices
cat > /etc/systemd/system/demo-gpu-devices.service <<'EOF'
[Unit]
Description=GPU device nodes of the demonstration cluster
ConditionPathExists=/etc/demo-gpu-devices
Before=slurmd.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/sbin/demo-gpu-devices

[Install]
WantedBy=multi-user.target
EOF
systemctl enable demo-gpu-devices.service
: > /etc/machine-id
