"""System calls that no notebook needs, refused: a small filter in the kernel's own language (see bpf(4), seccomp(2)).

They would keep memory that belongs to no process and so escapes the count (memfd, System V), leave keys behind for
the next notebook, reach parts of the kernel that are better left alone (user namespaces, io_uring), or open sockets
that a network namespace does not hold back, as those from a virtual machine to its host. Unix sockets and those of the
internet remain, of which ipykernel uses one to talk to itself.
"""

import os
import platform
import struct

# name: (number on x86-64, number on 64-bit ARM)
REFUSED = {
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
}
CLONE, CLONE3, IOCTL, SOCKET = (56, 220), (435, 435), (16, 29), (41, 198)
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column, AUDIT_ARCH_…
CLONE_NEWUSER = 0x10000000
TIOCSTI, TIOCLINUX = 0x5412, 0x541C  # typing into a terminal
EPERM, ENOSYS, EAFNOSUPPORT = 1, 38, 97
FAMILIES = (1, 2, 10, 16)  # AF_UNIX, AF_INET, AF_INET6, AF_NETLINK

LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # BPF opcodes
NUMBER, ARCH, FIRST, SECOND = 0, 4, 16, 24  # offsets in struct seccomp_data; the arguments' low halves
ALLOW, ERROR = 0x7FFF0000, 0x00050000


def program() -> bytes | None:
    """The filter for this machine, as bubblewrap's --seccomp reads it; None for a processor not listed here."""
    if platform.machine() not in MACHINES:
        return None
    column, arch = MACHINES[platform.machine()]
    steps = [
        (LOAD, 0, 0, ARCH),
        (EQUAL, 1, 0, arch),
        (RETURN, 0, 0, ERROR | ENOSYS),  # calls by another convention have other numbers
        (LOAD, 0, 0, NUMBER),
        (AT_LEAST, 0, 1, 0x40000000),
        (RETURN, 0, 0, ERROR | ENOSYS),  # the x32 convention
        (EQUAL, 0, 1, CLONE3[column]),
        (RETURN, 0, 0, ERROR | ENOSYS),  # its flags lie in memory, out of reach: the C library falls back on clone
    ]
    for numbers in REFUSED.values():
        steps += [(EQUAL, 0, 1, numbers[column]), (RETURN, 0, 0, ERROR | EPERM)]
    steps += [
        (EQUAL, 0, 4, CLONE[column]),
        (LOAD, 0, 0, FIRST),
        (ANY_BIT, 0, 1, CLONE_NEWUSER),
        (RETURN, 0, 0, ERROR | EPERM),
        (RETURN, 0, 0, ALLOW),
        (EQUAL, 0, 3 + len(FAMILIES), SOCKET[column]),
        (LOAD, 0, 0, FIRST),
        *((EQUAL, len(FAMILIES) - place, 0, family) for place, family in enumerate(FAMILIES)),
        (RETURN, 0, 0, ERROR | EAFNOSUPPORT),
        (RETURN, 0, 0, ALLOW),
        (EQUAL, 0, 4, IOCTL[column]),
        (LOAD, 0, 0, SECOND),
        (EQUAL, 1, 0, TIOCSTI),
        (EQUAL, 0, 1, TIOCLINUX),
        (RETURN, 0, 0, ERROR | EPERM),
        (RETURN, 0, 0, ALLOW),
    ]
    return b"".join(struct.pack("HBBI", *step) for step in steps)


def as_file() -> int | None:
    """The filter in an open file."""
    steps = program()
    if steps is None:
        return None
    number = os.memfd_create("seccomp")
    os.write(number, steps)
    os.lseek(number, 0, os.SEEK_SET)
    return number
