# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which keys a file knows, in which release. Private to the gpuops.tenancy collection.

The lists were taken from the parsers themselves: each key was put into a file and read by the programs of 22.05 and
of 24.11; NamespaceType alone is from Slurm's change log. Keys that a release still reads only to say that they have
been removed are left out. A key that exists in 24.11 but not in 22.05 is given the first release known to have it;
what lies outside the table (a newer key, a plugin's own) is for the ``*_options_extra`` variables, which the programs
check while the file is staged.
"""

from __future__ import annotations

import difflib

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf.version import (
    ConfigError,
    Version,
    show,
)

_SLURM_CONF = """
AccountingStorageBackupHost AccountingStorageEnforce AccountingStorageExternalHost AccountingStorageHost
AccountingStorageParameters AccountingStoragePort AccountingStorageTRES
AccountingStorageType AccountingStorageUser AccountingStoreFlags AcctGatherEnergyType
AcctGatherFilesystemType AcctGatherInterconnectType AcctGatherNodeFreq AcctGatherProfileType
AllowSpecResourcesUsage AuthAltParameters AuthAltTypes AuthInfo AuthType BatchStartTimeout BcastExclude
BcastParameters BurstBufferType CertmgrParameters CertmgrType CliFilterPlugins ClusterName CommunicationParameters
CompleteWait CpuFreqDef CpuFreqGovernors CredType DataParserParameters DebugFlags DefCpuPerGPU DefMemPerCPU
DefMemPerGPU DefMemPerNode DependencyParameters DisableRootJobs EioTimeout EnforcePartLimits Epilog EpilogMsgTime
EpilogSlurmctld FairShareDampeningFactor FederationParameters FirstJobId GetEnvTimeout GpuFreqDef GresTypes
GroupUpdateForce GroupUpdateTime HashPlugin HealthCheckInterval HealthCheckNodeState HealthCheckProgram InactiveLimit
InteractiveStepOptions JobAcctGatherFrequency JobAcctGatherParams JobAcctGatherType JobCompHost JobCompLoc
JobCompParams JobCompPass JobCompPort JobCompType JobCompUser JobContainerType JobFileAppend JobRequeue
JobSubmitPlugins KillOnBadExit KillWait LaunchParameters Licenses LogTimeFormat MCSParameters MCSPlugin MailDomain
MailProg MaxArraySize MaxBatchRequeue MaxDBDMsgs MaxJobCount MaxMemPerCPU MaxMemPerNode MaxNodeCount MaxStepCount
MaxTasksPerNode MessageTimeout MinJobAge MpiDefault MpiParams NamespaceType NodeFeaturesPlugins OverTimeLimit PlugStackConfig
PluginDir PowerParameters PowerPlugin PrEpParameters PrEpPlugins PreemptExemptTime PreemptMode PreemptParameters
PreemptType PriorityCalcPeriod PriorityDecayHalfLife PriorityFavorSmall PriorityFlags PriorityMaxAge
PriorityParameters PrioritySiteFactorParameters PrioritySiteFactorPlugin PriorityType PriorityUsageResetPeriod
PriorityWeightAge PriorityWeightAssoc PriorityWeightFairshare PriorityWeightJobSize PriorityWeightPartition
PriorityWeightQOS PriorityWeightTRES PrivateData ProctrackType Prolog PrologEpilogTimeout PrologFlags PrologSlurmctld
PropagatePrioProcess PropagateResourceLimits PropagateResourceLimitsExcept RebootProgram ReconfigFlags RequeueExit
RequeueExitHold ResumeFailProgram ResumeProgram ResumeRate ResumeTimeout ResvEpilog ResvOverRun ResvProlog
ReturnToService SbcastParameters SchedulerParameters SchedulerTimeSlice SchedulerType ScronParameters SelectType
SelectTypeParameters SlurmSchedLogFile SlurmSchedLogLevel SlurmUser SlurmctldAddr SlurmctldDebug SlurmctldHost
SlurmctldLogFile SlurmctldParameters SlurmctldPidFile SlurmctldPort SlurmctldPrimaryOffProg SlurmctldPrimaryOnProg
SlurmctldSyslogDebug SlurmctldTimeout SlurmdDebug SlurmdLogFile SlurmdParameters SlurmdPidFile SlurmdPort
SlurmdSpoolDir SlurmdSyslogDebug SlurmdTimeout SlurmdUser SrunEpilog SrunPortRange SrunProlog StateSaveLocation
SuspendExcNodes SuspendExcParts SuspendExcStates SuspendProgram SuspendRate SuspendTime SuspendTimeout
SwitchParameters SwitchType TCPTimeout TLSParameters TLSType TaskEpilog TaskPlugin TaskPluginParam TaskProlog TmpFS
TopologyParam TopologyPlugin TrackWCKey TreeWidth UnkillableStepProgram UnkillableStepTimeout UsePAM VSizeFactor
WaitTime X11Parameters
"""

_SLURMDBD_CONF = """
AllResourcesAbsolute AllowNoDefAcct ArchiveDir ArchiveEvents ArchiveJobs ArchiveResvs ArchiveScript ArchiveSteps
ArchiveSuspend ArchiveTXN ArchiveUsage AuthAltParameters AuthAltTypes AuthInfo AuthType CommitDelay
CommunicationParameters DbdAddr DbdBackupHost DbdHost DbdPort DebugFlags DebugLevel DebugLevelSyslog DefaultQOS
DisableCoordDBD HashPlugin LogFile LogTimeFormat MaxQueryTimeRange MessageTimeout PidFile PluginDir PrivateData
PurgeEventAfter PurgeJobAfter PurgeResvAfter PurgeStepAfter PurgeSuspendAfter PurgeTXNAfter PurgeUsageAfter SlurmUser
StorageBackupHost StorageHost StorageLoc StorageParameters StoragePass StoragePort StorageType StorageUser TCPTimeout
TLSParameters TLSType TrackSlurmctldDown TrackWCKey
"""

_CGROUP_CONF = """
AllowedRAMSpace AllowedSwapSpace CgroupMountpoint CgroupPlugin ConstrainCores ConstrainDevices ConstrainRAMSpace
ConstrainSwapSpace EnableControllers IgnoreSystemd IgnoreSystemdOnFailure MaxRAMPercent MaxSwapPercent
MemorySwappiness MinRAMSpace SignalChildrenProcesses SystemdTimeout
AllowedKmemSpace ConstrainKmemSpace MaxKmemPercent MinKmemSpace
"""

_KEYS = {
    "slurm.conf": tuple(_SLURM_CONF.split()),
    "slurmdbd.conf": tuple(_SLURMDBD_CONF.split()),
    "cgroup.conf": tuple(_CGROUP_CONF.split()),
}

# First release with the key, for those that 22.05 refuses.
_SINCE: dict[tuple[str, str], Version] = {
    ("slurm.conf", "HashPlugin"): (23, 2),
    ("slurm.conf", "SuspendExcStates"): (23, 2),
    ("slurm.conf", "MaxBatchRequeue"): (24, 11),
    ("slurm.conf", "PreemptParameters"): (24, 11),
    ("slurm.conf", "DataParserParameters"): (24, 11),
    ("slurm.conf", "CertmgrParameters"): (24, 11),
    ("slurm.conf", "CertmgrType"): (24, 11),
    ("slurm.conf", "TLSParameters"): (24, 11),
    ("slurm.conf", "TLSType"): (24, 11),
    ("slurm.conf", "NamespaceType"): (25, 11),
    ("slurmdbd.conf", "HashPlugin"): (23, 2),
    ("slurmdbd.conf", "AllResourcesAbsolute"): (24, 11),
    ("slurmdbd.conf", "DisableCoordDBD"): (24, 5),
    ("slurmdbd.conf", "TLSParameters"): (24, 11),
    ("slurmdbd.conf", "TLSType"): (24, 11),
    ("cgroup.conf", "EnableControllers"): (24, 11),
    ("cgroup.conf", "SignalChildrenProcesses"): (24, 11),
    ("cgroup.conf", "SystemdTimeout"): (24, 11),
}

# First release whose daemons die on the key.
_UNTIL: dict[tuple[str, str], Version] = {
    ("cgroup.conf", "AllowedKmemSpace"): (23, 11),
    ("cgroup.conf", "ConstrainKmemSpace"): (23, 11),
    ("cgroup.conf", "MaxKmemPercent"): (23, 11),
    ("cgroup.conf", "MinKmemSpace"): (23, 11),
}


def keys(file: str) -> tuple[str, ...]:
    return _KEYS[file]


def spelled(file: str, key: str) -> str | None:
    """The key as Slurm writes it; Slurm itself ignores case."""
    wanted = key.lower()
    return next((known for known in _KEYS[file] if known.lower() == wanted), None)


def supports(file: str, key: str, version: Version) -> bool:
    known = spelled(file, key)
    if known is None:
        return False
    return _SINCE.get((file, known), (0, 0)) <= version < _UNTIL.get((file, known), (99, 0))


def require(file: str, key: str, version: Version) -> str:
    """The key's proper spelling, or an error that says why the file must not have it."""
    known = spelled(file, key)
    if known is None:
        near = difflib.get_close_matches(key, _KEYS[file], n=1)
        hint = f"did you mean {near[0]}?" if near else "a key that is not in the table belongs into options_extra"
        raise ConfigError(f"{file}: {key} is not a known key; {hint}")
    since, until = _SINCE.get((file, known)), _UNTIL.get((file, known))
    if since is not None and version < since:
        raise ConfigError(
            f"{file}: {known} is known from Slurm {show(since)} on, this is {show(version)}; remove it "
            "(or put it into options_extra when this release does have it)"
        )
    if until is not None and version >= until:
        raise ConfigError(f"{file}: {known} was removed in Slurm {show(until)} and the daemons die on it; remove it")
    return known
