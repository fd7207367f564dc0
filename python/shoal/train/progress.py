"""How far a run is: one line that is redrawn where a person watches, a plain line now and then elsewhere."""

import os
import shutil
import sys
import time
from collections.abc import Callable

_REDRAW, _PLAIN = 0.2, 5.0  # seconds between two lines


class Progress:
    """Writes to stderr on the member that shows; `shoal run` says through SHOAL_TERMINAL that it redraws for us. shown(): whether it is this one, now."""

    def __init__(self, steps: int, shown: Callable[[], bool]):
        self._steps = steps
        self._shown = shown
        columns = os.environ.get("SHOAL_TERMINAL")
        self._redrawn = sys.stderr.isatty() or columns is not None
        self._columns = int(columns) - 4 if columns and columns.isdigit() else shutil.get_terminal_size().columns - 1
        self._next = 0.0

    def due(self, step: int) -> bool:
        return self._shown() and (time.monotonic() >= self._next or step == self._steps)

    def show(self, step: int, facts: str) -> None:
        self._next = time.monotonic() + (_REDRAW if self._redrawn else _PLAIN)
        if not self._redrawn:
            print(f"step {step}/{self._steps}  {facts}", file=sys.stderr, flush=True)
            return
        text = f" {step}/{self._steps}  {facts}"
        width = max(0, min(30, self._columns - len(text) - 2))
        full = width * step // max(1, self._steps)
        bar = "[" + "#" * full + "-" * (width - full) + "]" if width >= 5 else ""
        print("\r" + (bar + text)[: self._columns].ljust(self._columns), end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._shown() and self._redrawn:
            print(file=sys.stderr, flush=True)
