"""Ctrl-C at every place where it can come.

A signal is noticed by the interpreter only between certain instructions. So it is not enough, and not true, to raise an
exception at each line: here the signal is made pending before the n-th instruction, and where it then strikes is up to
the interpreter.
"""

from __future__ import annotations

import ctypes
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

# Functions in C, called by the interpreter as if they traced: one in Python would be hit by the signal itself.
_make_pending, _do_nothing = ctypes.pythonapi.PyErr_SetInterrupt, ctypes.pythonapi.Py_IsInitialized
for function in (_make_pending, _do_nothing):
    function.argtypes, function.restype = (ctypes.py_object,) * 3, None


class CtrlC:
    """One Ctrl-C, pending from the n-th instruction on that runs in certain files."""

    def __init__(self, instruction: int, *files: str) -> None:
        self.instruction = instruction
        self.files = files
        self.seen = 0
        self.has_struck = self._is_over = False

    def during(self, call: Callable[[], Any]) -> None:
        """Make the call, and let the signal strike; afterwards `has_struck` says whether it did."""
        before = signal.signal(signal.SIGINT, self._strike)
        try:
            self._traced(call)
        except KeyboardInterrupt:
            self.has_struck = True
        finally:
            signal.signal(signal.SIGINT, before)

    def _traced(self, call: Callable[[], Any]) -> None:
        try:
            sys.settrace(self._enter)
            call()
        finally:
            # If it is still pending it may strike here, too, when the call is over.
            sys.settrace(None)

    def _strike(self, number: int, frame: FrameType | None) -> None:
        if not self._is_over:
            self._is_over = True
            raise KeyboardInterrupt

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.endswith(self.files):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._count

    def _count(self, frame: FrameType, event: str, argument: Any) -> Any:
        self.seen += event == "opcode"
        if self.seen < self.instruction:
            return self._count
        # From now on no line of this file may run, or the signal would strike there.
        sys.settrace(_do_nothing)
        around: FrameType | None = frame
        while around is not None:
            if around.f_trace is not None:
                around.f_trace = _make_pending
            around = around.f_back
        return _make_pending


def at_every_instruction(call: Callable[[], Any], check: Callable[[], None], *files: str) -> int:
    """Make a call again and again, each time with Ctrl-C one instruction later, until it is over before that.

    Return how often the signal struck.
    """
    struck = instruction = 0
    while True:
        instruction += 1
        ctrl_c = CtrlC(instruction, *files)
        ctrl_c.during(call)
        check()
        struck += ctrl_c.has_struck
        if ctrl_c.seen < instruction:
            return struck
