"""A seccomp filter: the system calls that a worker may not make, and of some calls with which arguments.

Each is denied with an error, which its caller sees as the kernel's own. Calls that are newer than the tables below, and
those of another architecture than the process's own, count as unknown to the kernel.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys
from typing import Collection, Dict, Iterable, List, Optional, Tuple

# The names of calls with their numbers on x86_64 and aarch64.
# What administers the machine, reads or writes the memory of other processes, or opens files by other names than paths.
ADMINISTRATION = """
mount 165 40, umount2 166 39, pivot_root 155 41, chroot 161 51, move_mount 429 429, open_tree 428 428,
open_tree_attr 467 467, fsopen 430 430, fsconfig 431 431, fsmount 432 432, fspick 433 433, mount_setattr 442 442,
statmount 457 457, listmount 458 458, swapon 167 224, swapoff 168 225, reboot 169 142, kexec_load 246 104,
kexec_file_load 320 294, init_module 175 105, finit_module 313 273, delete_module 176 106, add_key 248 217,
request_key 249 218, keyctl 250 219, acct 163 89, quotactl 179 60, quotactl_fd 443 443, syslog 103 116, vhangup 153
58, settimeofday 164 170, clock_settime 227 112, clock_adjtime 305 266, adjtimex 159 171, sethostname 170 161,
setdomainname 171 162, name_to_handle_at 303 264, open_by_handle_at 304 265, setns 308 268, ptrace 101 117,
process_vm_readv 310 270, process_vm_writev 311 271
"""
# Wide interfaces of the kernel, through which much of the rest can be done, and other identities.
INTERFACES = """
bpf 321 280, perf_event_open 298 241, userfaultfd 323 282, io_uring_setup 425 425, io_uring_enter 426 426,
io_uring_register 427 427, fanotify_init 300 262, unshare 272 97, personality 135 92, iopl 172 -, ioperm 173 -,
modify_ldt 154 -, setuid 105 146, setgid 106 144, setreuid 113 145, setregid 114 143, setresuid 117 147, setresgid
119 149, setfsuid 122 151, setfsgid 123 152, setgroups 116 159, capset 126 91
"""
# Other programs and processes, and what outlives or leaves the process group that the parent kills.
PROCESSES = """
execve 59 221, execveat 322 281, uselib 134 -, fork 57 -, vfork 58 -, setpgid 109 154, setsid 112 157, pidfd_open
434 434, pidfd_getfd 438 438, pidfd_send_signal 424 424, kcmp 312 272, process_madvise 440 440, process_mrelease 448
448, migrate_pages 256 238, setpriority 141 140, ioprio_set 251 30, sched_setparam 142 118, sched_setscheduler 144
119, sched_setattr 314 274
"""
# Sockets, and what lives on without a process that has it open.
SOCKETS = """
socket 41 198, socketpair 53 199, bind 49 200, connect 42 203, listen 50 201, accept 43 202, accept4 288 242,
mq_open 240 180, mq_unlink 241 181, msgget 68 186, semget 64 190, shmget 29 194
"""
# What Landlock has no rights for: attributes, links, files without a path, watching files, in old versions truncation.
FILES = """
truncate 76 45, link 86 -, linkat 265 37, symlink 88 -, symlinkat 266 36, mknod 133 -, mknodat 259 33, chmod 90 -,
fchmod 91 52, fchmodat 268 53, fchmodat2 452 452, chown 92 -, fchown 93 55, lchown 94 -, fchownat 260 54, utime 132
-, utimes 235 -, futimesat 261 -, utimensat 280 88, setxattr 188 5, lsetxattr 189 6, fsetxattr 190 7, setxattrat 463
463, removexattr 197 14, lremovexattr 198 15, fremovexattr 199 16, removexattrat 466 466, file_setattr 469 469,
memfd_create 319 279, memfd_secret 447 447, inotify_init 253 -, inotify_init1 294 26
"""
# Calls that are denied with some arguments, or as if the kernel didn't know them.
CHECKED = """
clone 56 220, clone3 435 435, open 2 -, openat 257 56, openat2 437 437, kill 62 129, tkill 200 130, tgkill 234 131,
rt_sigqueueinfo 129 138, rt_tgsigqueueinfo 297 240, prlimit64 302 261, fcntl 72 25, ioctl 16 29, prctl 157 167,
move_pages 279 239
"""
UNKNOWN = 470  # the first number that stands in no table; x32's are higher
ARCHITECTURES = {"x86_64": (0, 0xC000003E, 317), "aarch64": (1, 0xC00000B7, 277)}  # column, audit number, seccomp()

LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # instructions of classic BPF
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16  # offsets in seccomp_data
ALLOW, DENY, MISSING = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
SET_FILTER, ALL_THREADS, KEEP_SPECULATION = 1, 1, 4  # the last: without it kernels before 5.16 slow the process down

WRITES = os.O_WRONLY | os.O_RDWR  # Landlock decides about these; old versions don't about truncating what is only read
THREAD, NAMESPACES = 0x10000, 0x7E020000  # flags of clone()
SIGNALS_BY_DESCRIPTOR = (8, 10, 15)  # F_SETOWN, F_SETSIG, F_SETOWN_EX
SIGNALS_BY_DEVICE = (
    0x8901,
    0x8902,
    0x5412,
    0x541C,
)  # FIOSETOWN, SIOCSPGRP; TIOCSTI, TIOCLINUX write a terminal's input
OF_PARENTS = (1, 35, 0x59616D61)  # PR_SET_PDEATHSIG, PR_SET_MM, PR_SET_PTRACER

Instruction = Tuple[int, int, int, int]
Test = Tuple[int, int, int]  # an instruction that compares, a value, and the verdict where it holds


def numbers(column: int, *tables: str) -> Dict[str, int]:
    """Return the numbers of the calls in tables on one architecture; some have fewer calls."""
    rows = [row.split() for table in tables for row in table.split(",")]
    return {row[0]: int(row[1 + column]) for row in rows if row[1 + column] != "-"}


def checked(number: int, argument: int, tests: Iterable[Test], otherwise: int) -> List[Instruction]:
    """Return instructions that decide on a call by the low half of an argument."""
    body: List[Instruction] = [(LOAD, 0, 0, ARGUMENTS + 8 * argument)]
    for test, value, verdict in tests:
        body += [(test, 0, 1, value), (RETURN, 0, 0, verdict)]
    body.append((RETURN, 0, 0, otherwise))
    return [(EQUAL, 0, len(body), number), *body]


def filter_for(machine: str, process: int, opened: Collection[str]) -> List[Instruction]:
    """Return the filter for a process of this number; `opened` are those of files, processes, sockets it may use."""
    column, architecture, _ = ARCHITECTURES[machine]
    known = numbers(column, CHECKED)
    denied = numbers(column, ADMINISTRATION)
    if not {"files", "processes", "sockets"} <= set(opened):
        denied.update(numbers(column, INTERFACES))
    program: List[Instruction] = [
        (LOAD, 0, 0, ARCHITECTURE),
        (EQUAL, 1, 0, architecture),
        (RETURN, 0, 0, MISSING),
        (LOAD, 0, 0, NUMBER),
        (AT_LEAST, 0, 1, UNKNOWN),
        (RETURN, 0, 0, MISSING),
    ]

    def check(name: str, argument: int, *tests: Test, otherwise: int = ALLOW) -> None:
        if name in known:
            program.extend(checked(known[name], argument, tests, otherwise))

    if "files" not in opened:
        denied.update(numbers(column, FILES))
        check("openat", 2, (ANY_BIT, WRITES, ALLOW), (ANY_BIT, os.O_TRUNC, DENY))
        check("open", 1, (ANY_BIT, WRITES, ALLOW), (ANY_BIT, os.O_TRUNC, DENY))
        check("openat2", 0, otherwise=MISSING)  # its flags are in memory
    if "sockets" not in opened:
        denied.update(numbers(column, SOCKETS))
    if "processes" not in opened:
        denied.update(numbers(column, PROCESSES))
        check("clone", 0, (ANY_BIT, NAMESPACES, DENY), (ANY_BIT, THREAD, ALLOW), otherwise=DENY)
        check("clone3", 0, otherwise=MISSING)  # as openat2
        for name in ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"):
            check(name, 0, (EQUAL, process, ALLOW), otherwise=DENY)
        for name in ("prlimit64", "move_pages"):
            check(name, 0, (EQUAL, process, ALLOW), (EQUAL, 0, ALLOW), otherwise=DENY)
        check("fcntl", 1, *((EQUAL, command, DENY) for command in SIGNALS_BY_DESCRIPTOR))
        check("ioctl", 1, *((EQUAL, command, DENY) for command in SIGNALS_BY_DEVICE))
        check("prctl", 0, *((EQUAL, option, DENY) for option in OF_PARENTS))
    for number in sorted(denied.values()):
        program += [(EQUAL, 0, 1, number), (RETURN, 0, 0, DENY)]
    return [*program, (RETURN, 0, 0, ALLOW)]


def restrict(opened: Collection[str]) -> Optional[str]:
    """Put the filter on all threads of this process, for good; return why that can't be, or None if it is done.

    The process must have given up new privileges.
    """
    machine = platform.machine()
    if machine not in ARCHITECTURES or sys.maxsize < 2**32:
        return f"no filter of system calls for {machine}"
    program = filter_for(machine, os.getpid(), opened)
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *each) for each in program))
    header = ctypes.create_string_buffer(struct.pack("@HP", len(program), ctypes.addressof(code)))
    library = ctypes.CDLL(None, use_errno=True)
    for flags in (ALL_THREADS | KEEP_SPECULATION, ALL_THREADS):
        arguments = map(ctypes.c_long, (ARCHITECTURES[machine][2], SET_FILTER, flags))
        result = library.syscall(*arguments, header)
        if result == 0:
            return None
    return f"no filter of system calls: {'a thread has its own' if result > 0 else os.strerror(ctypes.get_errno())}"
