# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    # What every module that writes to slurmdbd takes.
    DOCUMENTATION = r"""
options:
  search_path:
    description:
      - Directories that are searched for programs, in this order, and no others. Name Slurm's own first where it is not
        in C(/usr).
    type: list
    elements: path
    default: [/usr/local/sbin, /usr/local/bin, /usr/sbin, /usr/bin, /sbin, /bin]
  lock_timeout:
    description:
      - Seconds to wait for another writer of accounting on this host. After that the module fails and names who holds
        the lock.
      - A command that a killed run has left behind holds the lock until it has ended.
    type: int
    default: 300
requirements:
  - Slurm 22.05 or newer, on a host where C(sacctmgr) works
  - root, or another user with AdminLevel C(Administrator) who can write to C(/run)
"""

    # What the modules that may remove something take.
    SAVING = r"""
options:
  save_dir:
    description:
      - Directory on the target in which the state is saved before anything is removed, readable by its owner alone.
        C(restore_accounting.yml) brings it back. The newest hundred of each cluster are kept.
      - Where it cannot be saved, nothing is removed.
    type: path
    default: /var/lib/gpuops-tenancy/saved
"""

    # What the modules that talk to slurmctld need.
    SCHEDULER = r"""
options: {}
requirements:
  - Slurm 22.05 or newer, on a host where C(scontrol) works
  - root, SlurmUser, or another user with AdminLevel C(Operator); C(PrivateData) hides other people's jobs from anybody else
"""
