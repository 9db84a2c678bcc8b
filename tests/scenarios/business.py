"""A business system that commits an effect once for each effect key, and counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from driver import Denied, NoAnswer


@dataclass
class Business:
    """What was asked of it, and what it committed."""

    effects: dict[str, Any] = field(default_factory=dict)
    got: list[Any] = field(default_factory=list)

    def call(self, effect_key: str, arguments: Any, manner: str) -> None:
        """Take one call; `manner` says what becomes of it."""
        self.got.append(arguments)
        if manner in ("commits", "answer_lost"):
            self.effects.setdefault(effect_key, arguments)
        if manner == "denies":
            raise Denied
        if manner == "answer_lost":
            raise NoAnswer
