# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    # What every module that runs programs takes.
    PROGRAMS = r"""
options:
  search_path:
    description:
      - Directories that are searched for programs, in this order, and no others. Name Slurm's own first where it is not
        in C(/usr).
    type: list
    elements: path
    default: [/usr/local/sbin, /usr/local/bin, /usr/sbin, /usr/bin, /sbin, /bin]
"""

    # What every module that writes on its host takes.
    LOCK = r"""
options:
  lock_timeout:
    description:
      - Seconds to wait for another run that changes the same on this host. After that the module fails and names who
        holds the lock.
      - A command that a killed run has left behind holds the lock until it has ended.
    type: int
    default: 300
"""

    # What every module takes that has systemd read its units anew.
    BUSY = r"""
options:
  busy:
    description:
      - What to do when a daemon-reload would take the GPUs from running containers. With V(fail) the module fails, with
        V(skip) it warns; in both cases it has changed nothing.
    type: str
    choices: [fail, skip]
    default: fail
"""

    # What the modules take that work on the accounting database itself.
    MARIADB = r"""
options:
  database:
    description:
      - Name of the database.
    type: str
    default: slurm_acct_db
  socket:
    description:
      - Socket of MariaDB, used as root; the client's default when empty.
    type: path
  defaults_file:
    description:
      - File with user, password and host for MariaDB's programs, readable by root alone, where the socket does not do.
    type: path
  timeout:
    description:
      - Seconds that one dump, load or count may take.
    type: int
    default: 14400
"""
