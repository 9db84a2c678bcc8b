"""Which profiles hold for a card (spec §8.5), and reading the files of those given."""

from __future__ import annotations

import hashlib
import os
import stat
from bisect import bisect_right
from collections.abc import Iterable
from typing import Any, NamedTuple

from verifier import jcs
from verifier.profile import Profile, ProfileRefused, parse_profile, stricter
from verifier.spec import MAX_DOCUMENT

Library = dict[bytes, Profile | None]
"""Profiles by digest; None is one whose bytes are malformed."""

LOST = b""
"""In place of the digest of a profile: an unsound record, or an absent envelope, may name one."""

_MAX_CACHED = 4096


class Rules(NamedTuple):
    """What holds for a card, as far as it is known.

    `missing` are the digests of profiles that are needed and not at hand. Where `complete` is
    False the rules may be stricter than `profile` says. `allows_drift` is None where nobody knows.
    """

    profile: Profile
    missing: tuple[bytes, ...]
    complete: bool
    allows_drift: bool | None


class Governance:
    """The profiles at hand, and the one that was in force when a card was issued."""

    __slots__ = ("_cache", "_card_profiles", "_first_cards", "_library", "_names")

    def __init__(self, given: Library | None = None) -> None:
        """Start without a profile in force, with those that were given as files."""
        self._library = dict(given or {})
        self._first_cards = [0]  # the first card issued under each of _names
        self._names: list[bytes | None] = [None]
        self._card_profiles: dict[int, bytes] = {}  # of the cards that name one
        self._cache: dict[tuple[bytes | None, bytes | None], Rules] = {}

    @property
    def in_force(self) -> bytes | None:
        """The digest of the chain profile of a card that is issued now; None, or LOST."""
        return self._names[-1]

    @property
    def governs(self) -> bool:
        """Whether a known profile of the chain holds for a card that is issued now."""
        return self.in_force not in (None, LOST)

    @property
    def was_lost(self) -> bool:
        """Whether an unsound record may have changed the chain profile of some cards."""
        return LOST in self._names

    def configure(self, digest: bytes, data: bytes | None, next_card: int) -> None:
        """Bring a chain profile into force; `data` are its bytes, where they are there."""
        if data is not None:
            try:
                self._library[digest] = parse_profile(data)
            except ProfileRefused:
                self._library[digest] = None
            self._cache.clear()
        self._change(digest, next_card)

    def lose(self, next_card: int) -> None:
        """Note that an unsound record may have changed the chain profile."""
        if self.in_force != LOST:
            self._change(LOST, next_card)

    def _change(self, name: bytes, next_card: int) -> None:
        if self._first_cards[-1] == next_card:
            self._names[-1] = name
        else:
            self._first_cards.append(next_card)
            self._names.append(name)

    def at_issue(self, document: dict[str, Any] | None) -> Rules:
        """Give the rules for a card that is issued now."""
        return self.rules(self.in_force, profile_of(document))

    def issue(self, number: int, document: dict[str, Any] | None) -> None:
        """Note the card profile of a card: when issued, and when its envelope is first shown."""
        named = profile_of(document)
        if named is not None:
            self._card_profiles[number] = named
        else:
            self._card_profiles.pop(number, None)

    def of_card(self, number: int) -> Rules:
        """Give the rules for an issued card."""
        return self.rules(self._chain_profile(number), self._card_profiles.get(number))

    def shown(self, number: int, document: dict[str, Any] | None) -> Rules:
        """Give the rules for an issued card whose envelope is shown later only."""
        return self.rules(self._chain_profile(number), profile_of(document))

    def _chain_profile(self, number: int) -> bytes | None:
        return self._names[bisect_right(self._first_cards, number) - 1]

    def rules(self, chain_profile: bytes | None, card_profile: bytes | None) -> Rules:
        """Give the rules that two profiles make together."""
        key = chain_profile, card_profile
        found = self._cache.get(key)
        if found is None:
            if len(self._cache) >= _MAX_CACHED:
                self._cache.clear()
            named = dict.fromkeys(name for name in key if name is not None)
            found = self._cache[key] = self._together(list(named))
        return found

    def _together(self, named: list[bytes]) -> Rules:
        known = [profile for name in named if (profile := self._library.get(name)) is not None]
        profile, complete = stricter(known), len(known) == len(named)
        sure = complete or (bool(known) and not profile.allows_drift)
        return Rules(
            profile=profile,
            missing=tuple(name for name in named if name != LOST and name not in self._library),
            complete=complete,
            allows_drift=profile.allows_drift if sure else None,
        )


def profile_of(document: dict[str, Any] | None) -> bytes | None:
    """Give the digest of the card profile that an envelope names; LOST without the envelope."""
    if document is None:
        return LOST
    basis = document.get("approval_basis")
    return None if basis is None else bytes.fromhex(basis["profile"])


def load_profiles(files: Iterable[str]) -> tuple[Library, list[str]]:
    """Read profile files, however they are spelled; what is unusable is a warning.

    Each is named by the digest of its canonical form.
    """
    library: Library = {}
    warnings: list[str] = []
    for file in files:
        try:
            data = jcs.encode(jcs.parse(_read(file)))
            library[hashlib.sha256(data).digest()] = parse_profile(data)
        except OSError as error:
            problem = error.strerror or "it cannot be read"
            warnings.append(f"profile file {file} is not used: {problem}")
        except jcs.JsonRefused as error:
            warnings.append(f"profile file {file} is not used: expected strict JSON, not {error}")
        except ProfileRefused as error:
            warnings.append(f"profile file {file} is not used: expected {error}")
    return library, warnings


def _read(file: str) -> bytes:
    descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with open(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ProfileRefused("a regular file")
        return stream.read(MAX_DOCUMENT + 1)
