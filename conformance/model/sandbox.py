"""What the kernel keeps a worker from."""

import msgspec

UNKNOWN = "no profile says what the devices other than the CPU need"


class Sandbox(msgspec.Struct, frozen=True, kw_only=True):
    """What confines a worker, what of files, processes and sockets is left open to it, and what the kernel lacks.

    `is_assumed` where all is left open because nothing says what the devices need.
    """

    holds: tuple[str, ...] = ()
    opened: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    is_assumed: bool = False

    @property
    def line(self) -> str:
        if not self.holds:
            return f"no sandbox: {'; '.join(self.lacks) or UNKNOWN}"
        opened = f"open: {', '.join(self.opened)}{f', as {UNKNOWN}' * self.is_assumed}" if self.opened else ""
        return "sandbox: " + "; ".join(filter(None, (", ".join(self.holds), opened, *self.lacks)))
