"""What a command says, kept up to its bound while it comes."""

from __future__ import annotations

from typing import Final

MARK: Final = b"\n[output truncated]"


class BoundedOutput:
    """Takes all that it is given and holds on to no more than it was told to."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._parts = bytearray()
        self.is_over = False

    def __call__(self, part: bytes) -> None:
        room = self._most - len(self._parts)
        self._parts += part[:room]
        self.is_over = self.is_over or len(part) > room

    @property
    def whole(self) -> bytes:
        return bytes(self._parts)

    @property
    def marked(self) -> bytes:
        """What there is; where more came it is cut between characters, with a mark of the cut."""
        if not self.is_over:
            return bytes(self._parts)
        room = max(0, self._most - len(MARK))
        return (between_characters(bytes(self._parts[:room])) + MARK)[: self._most]


def between_characters(text: bytes) -> bytes:
    """The text without the first bytes of a character that is not whole at its end."""
    for back in range(1, min(4, len(text)) + 1):
        lead = text[-back]
        if lead & 0xC0 != 0x80:
            needed = 4 if lead >= 0xF0 else 3 if lead >= 0xE0 else 2 if lead >= 0xC0 else 1
            return text[:-back] if needed > back else text
    return text
