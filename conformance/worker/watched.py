"""The engine of autograd as the tracer shows it to a case: what it raises is the case's error, as without a tracer."""

from __future__ import annotations

from typing import Any, Callable


class Watched:
    """The engine of autograd, with a call of `look` on the roots of each backward."""

    def __init__(self, engine: Any, look: Callable[[Any], None]) -> None:
        self.engine = engine
        self.look = look

    def run_backward(self, roots: Any, *args: Any, **kwargs: Any) -> Any:
        self.look(roots)
        return self.engine.run_backward(roots, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)
