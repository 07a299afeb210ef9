"""Whether whoever has something open may still come in: asked again from time to time, once for all that is open."""

from __future__ import annotations

from weakref import WeakValueDictionary

from bide.clock import Clock, elapsed
from bide.errors import BideError
from bide.server.auth.credentials import Credential
from bide.server.auth.gate import Gate


class Standing:
    """What a credential is still good for, as far as it is known."""

    def __init__(self, credential: Credential, gate: Gate, clock: Clock, seconds: float) -> None:
        self.seconds = seconds
        """For so long nobody asks again."""
        self._credential = credential
        self._gate = gate
        self._clock = clock
        self._holds = True
        self._asked = elapsed()

    async def holds(self, *, at_once: bool = False) -> bool:
        """Whether it opens the server; `at_once` asks anew, however short a time ago that was done."""
        if self._holds and (at_once or elapsed() - self._asked >= self.seconds):
            self._asked = elapsed()  # before it is answered: others need not ask the same meanwhile
            self._holds = await self._ask()
        return self._holds

    async def _ask(self) -> bool:
        ends_at = self._credential.ends_at
        if ends_at is not None and self._clock.now() >= ends_at:
            return False
        try:
            return await self._gate.admits(self._credential)
        except BideError:
            return True  # nobody is shut out because the database cannot be asked just now


class Standings:
    """The standing of every credential that has something open: forgotten with the last of it."""

    def __init__(self, gate: Gate, clock: Clock, seconds: float) -> None:
        self._gate = gate
        self._clock = clock
        self._seconds = seconds
        self._known: WeakValueDictionary[Credential, Standing] = WeakValueDictionary()

    def of(self, credential: Credential) -> Standing:
        """Return the standing of a credential that was let in a moment ago."""
        known = self._known.get(credential)
        if known is None:
            known = self._known[credential] = Standing(credential, self._gate, self._clock, self._seconds)
        return known
