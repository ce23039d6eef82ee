"""What the kernel keeps a worker from."""

import msgspec


class Sandbox(msgspec.Struct, frozen=True, kw_only=True):
    """What confines a worker, what of files, processes and sockets is left open to it, and what is missing."""

    holds: tuple[str, ...] = ()
    opened: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        if not self.holds:
            return f"no sandbox: {'; '.join(self.lacks)}"
        opened = f"open: {', '.join(self.opened)}" if self.opened else ""
        return "sandbox: " + "; ".join(filter(None, (", ".join(self.holds), opened, *self.lacks)))
