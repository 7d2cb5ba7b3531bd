"""Jupyter's view of a cage: a kernel manager whose provisioner starts the kernel in it."""

import os
from typing import Any

import zmq
import zmq.asyncio
from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.provisioning import LocalProvisioner

MESSAGE = 32 * 2**20  # bytes of one part of a message; a longer one costs the kernel its connection
WAITING = 200  # messages that wait to be read, on each channel


class CageProvisioner(LocalProvisioner):
    """Starts, signals and ends the kernel of a cage. `cage` is a Cage or a NoCage."""

    cage: Any = None

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Write the connection file. The kernel specification's command and the caller's environment do not count."""
        self.parent.write_connection_file()
        self.connection_info = self.parent.get_connection_info()
        return {"cmd": []}

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> dict:
        self.process = self.cage.start(self.connection_info)
        self.pid = self.process.pid
        return self.connection_info

    async def send_signal(self, signum: int) -> None:
        self.cage.signal(signum)

    async def kill(self, restart: bool = False) -> None:
        self.cage.kill()


class CageKernelManager(AsyncKernelManager):
    """A kernel manager for one cage. Its clients, `km.client()`, bound what a kernel can make them keep in memory."""

    def client(self, **kwargs: Any):
        return super().client(**{"context": self.context, **kwargs})


def kernel_manager(cage) -> CageKernelManager:
    """A manager of a kernel in `cage`, not yet started: `await manager.start_kernel()`."""
    manager = CageKernelManager(
        context=bounded_context(),
        connection_file=str(cage.folder / "kernel.json"),
        **({"transport": "ipc", "ip": str(cage.folder / "k")} if os.name == "posix" else {}),  # an absolute path
    )
    manager._kernel_spec = KernelSpec(argv=[], display_name="Python 3", language="python")
    manager.provisioner = CageProvisioner(parent=manager, kernel_spec=manager._kernel_spec, kernel_id="cage")
    manager.provisioner.cage = cage
    return manager


def bounded_context() -> zmq.asyncio.Context:
    """A context whose sockets refuse long messages and keep few."""
    context = zmq.asyncio.Context()
    context.setsockopt(zmq.MAXMSGSIZE, MESSAGE)
    context.setsockopt(zmq.RCVHWM, WAITING)
    return context
