"""The fast way for lines that are plainly right.

It may only accept: it never makes a finding, and what it does not accept is left to the named
checks. A line is proven to be in the writer's form by its spelling, without making it again: the
patterns below match only what `json.dumps(..., sort_keys=True)` writes.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator
from functools import lru_cache
from json.decoder import scanstring  # type: ignore[attr-defined]
from json.encoder import encode_basestring
from typing import Any, Final, NamedTuple

from verifier.readers.bernstein.cards import ACKNOWLEDGED, PREFIX, STEP_BACK, WAIT, Cards
from verifier.readers.bernstein.chain import At, Chain
from verifier.readers.bernstein.envelope import FAR, MAX_REASONING
from verifier.readers.bernstein.keys import Key
from verifier.readers.bernstein.register import EXPIRED, OPEN, RESOLVED
from verifier.readers.bernstein.text import Scanner, line_form, seconds

_MAX_LINE: Final = 1 << 16
_MAX_KNOWN: Final = 4096
_NEVER: Final = -math.inf
_ISSUED: Final = f"{PREFIX}issued"
_RESOLVED: Final = f"{PREFIX}resolved"
_REFUSED: Final = f"{PREFIX}refused"
_BEFORE_TAG: Final = len('"hmac": "')
_AFTER_TAG: Final = 64 + len('", ')

# A plain text, any text, 64 hexadecimal digits, and what may be the spelling of a number.
_P: Final = r"[ !#-\[\]-~]*+"
_ESCAPE: Final = (
    r'\\(?:["\\bfnrt]|u(?:00(?:0[0-7bef]|1[0-9a-f]|7f|[89a-f][0-9a-f])'
    r"|0[1-9a-f][0-9a-f]{2}|[1-9a-f][0-9a-f]{3}))"
)
_S: Final = rf"{_P}(?:{_ESCAPE}{_P})*+"
_H: Final = r"[0-9a-f]{64}"
_N: Final = r"[0-9][0-9.e-]*+"
_BOOL: Final = "true|false"
_NAMES: Final = r'(?:"[0-9A-Za-z_.:/-]+"(?:, "[0-9A-Za-z_.:/-]+")*)?'


_ISSUED_DETAILS: Final = re.compile(
    rf'\{{"actor": "{_P}", "details": \{{"card_hash": "({_H})", "envelope": \{{'
    rf'"action": \{{"args_digest": "({_H})", "tool_name": "({_S})"\}}, '
    rf'"approval_id": "({_S})", "card_version": "v2", "created_at": ({_N}), '
    rf'"impact": \{{"fired_detectors": \[({_NAMES})\], "hard_one_way": ({_BOOL}), '
    rf'"rationale": "({_S})", "score": ({_N})\}}, "not_after": ({_N}), "reasoning": "({_S})", '
    rf'"rollback": \{{"irreversible": ({_BOOL}), "procedure": "({_S})"\}}\}}, '
    rf'"install_id": "{_P}", "prev_chain_digest": "({_H})", "session_id": "{_P}", '
    rf'"thread_id": "({_P})", "worktree_id": "({_P})"\}}'
).match
_RESOLVED_DETAILS: Final = re.compile(
    rf'\{{"actor": "({_P})", "details": \{{"approver": "({_P})", "card_hash": "({_H})", '
    rf'"decision": "(?:approve|reject)", "install_id": "{_P}", "issued_thread_id": "({_P})", '
    rf'"issued_worktree_id": "({_P})", "prev_chain_digest": "({_H})", "resolved_at": ({_N}), '
    rf'"session_id": "{_P}", "thread_id": "({_P})", "worktree_id": "({_P})"\}}'
).match
_FRONT: Final = re.compile(rf'\{{"actor": "({_P})", "details": ').match
_FRAME: Final = re.compile(
    rf', "event_type": "({_P})", "hmac": ".{{64}}", "prev_hmac": ".{{64}}", '
    rf'"resource_id": "({_S})", "resource_type": "({_S})", "scheme": 2, '
).match
_FRAME_TO_TAG: Final = len(', "event_type": "", "hmac": "')
_END: Final = re.compile(r'([0-5][0-9])\.([0-9]{6})Z"\}').fullmatch
_END_LENGTH: Final = len('ss.ffffffZ"}')
_TIME_LENGTH: Final = len('YYYY-MM-DDThh:mm:ss.ffffffZ"}')
_MINUTE_LENGTH: Final = len("YYYY-MM-DDThh:mm:")
_STRING: Final = re.compile(rf'"{_S}"')


class _Other(NamedTuple):
    """A line of any kind: decoded facts, and where its details end; `resource` is as spelled."""

    actor: str
    details: dict[str, Any]
    end: int
    kind: str
    resource: str
    type_: str


class Fast:
    """Accepts records of one log; `chain` and `cards` are those of the walk over it."""

    def __init__(self, chain: Chain, cards: Cards, keys: list[Key], expect: str | None) -> None:
        """Start; the walk keeps the key of the log first in `keys`."""
        self._chain, self._cards, self._keys, self._expect = chain, cards, keys, expect
        self._scanner = Scanner()
        self._scores: set[str] = set()

    def left(
        self, lines: Iterator[tuple[bytes, bool]], at: At, *, ready: bool
    ) -> tuple[bytes, bool] | None:
        """Accept lines as long as they are plainly right, and fold them in.

        Gives the first line that it does not accept, with `at` set to its place, or None where
        there are no more. It begins where the caller is `ready`, after the first line of a file,
        once a sound record under a known key was counted, and with nothing to excuse.
        """
        chain = self._chain
        if (
            not (ready and at.line and chain.authentic and chain.start)
            or chain.excused
            or chain.alternative is not None
        ):
            first = next(lines, None)
            if first is not None:
                at.advance(1, len(first[0]) + 1, first[0])
            return first
        begun, keyed = self._keys[0].begun(2)
        expect, day = self._expect, at.day or ""
        kinds, seq, head, high = chain.kinds, chain.seq, chain.head or "", chain.high
        issued, resolved = kinds[_ISSUED], kinds[_RESOLVED]
        minute, start = "?", _NEVER
        read, last = 0, ""
        left: tuple[bytes, bool] | None = None
        raw = b""
        try:
            for left in lines:
                raw, whole = left
                size = len(raw)
                read += size + 1
                text = raw.decode("ascii") if whole and size <= _MAX_LINE else ""
                kind, details, other = _ISSUED, _ISSUED_DETAILS(text), None
                if details is None:
                    kind, details = _RESOLVED, _RESOLVED_DETAILS(text)
                if details is not None:
                    groups = details.groups()
                    card = groups[0] if kind is _ISSUED else groups[2]
                    type_, at_frame = "approval_card", details.end()
                else:
                    other = self._other(text, head)
                    if other is None:
                        break
                    _, _, at_frame, kind, card, type_ = other

                # the time, of which the minute is that of the line before most often
                at_end = size - _END_LENGTH
                end = _END(text, at_end)
                if end is None:
                    break
                if not text.startswith(minute, at_end - _MINUTE_LENGTH):
                    minute = text[at_end - _MINUTE_LENGTH : at_end]
                    start = _start(minute) if minute.startswith(day) else _NEVER
                second, micro = end.groups()
                now = start + int(second) + int(micro) / 1e6
                if now < high:
                    break

                # the HMAC, and all that follows the details in one comparison
                at_tag = at_frame + len(kind) + _FRAME_TO_TAG
                inner, outer = begun.copy(), keyed.copy()
                inner.update(
                    head.encode() + raw[: at_tag - _BEFORE_TAG] + raw[at_tag + _AFTER_TAG :]
                )
                outer.update(inner.digest())
                tag = outer.hexdigest()
                if tag == expect or text[at_frame:at_end] != (
                    f', "event_type": "{kind}", "hmac": "{tag}", "prev_hmac": "{head}", '
                    f'"resource_id": "{card}", "resource_type": "{type_}", "scheme": 2, '
                    f'"timestamp": "{minute}'
                ):
                    break

                if kind not in kinds:
                    break
                if other is not None:
                    folded = self._take(other, head, now)
                elif kind is _ISSUED:
                    folded = self._issue(groups, head, seq + 1, now)
                else:
                    folded = self._resolve(groups, head, now)
                if not folded:
                    break
                kinds[kind] += 1
                seq, head, high, last, left = seq + 1, tag, now, text, None
        except (ValueError, StopIteration, RecursionError):  # no such text, JSON or number
            pass
        finally:
            count = seq - chain.seq
            at.advance(count + (left is not None), read, raw)
            if count:
                chain.seq, chain.head, chain.high, chain.high_seq = seq, head, high, seq
                chain.records += count
                chain.authentic += count
                chain.end, chain.seen_new = last[-_TIME_LENGTH:-2], True
                self._cards.count_sound(kinds[_ISSUED] - issued, kinds[_RESOLVED] - resolved)
        return left

    def _issue(self, groups: tuple[str, ...], head: str, seq: int, now: float) -> bool:
        """Take in a card, where its envelope is lawful and it was not issued before."""
        card, digest, tool, approval, created, names, one_way, rationale, score = groups[:9]
        expiry, reasoning, irreversible, procedure, before, thread, worktree = groups[9:]
        if len(reasoning) > MAX_REASONING and len(_text(reasoning)) > MAX_REASONING:
            return False
        form = (
            f'{{"action":{{"args_digest":"{digest}","tool_name":"{tool}"}},'
            f'"approval_id":"{approval}","card_version":"v2","created_at":{created},'
            f'"impact":{{"fired_detectors":[{names.replace(", ", ",")}],"hard_one_way":{one_way},'
            f'"rationale":"{rationale}","score":{score}}},"not_after":{expiry},'
            f'"reasoning":"{reasoning}","rollback":{{"irreversible":{irreversible},'
            f'"procedure":"{procedure}"}}}}'
        )
        created_at, not_after = float(created), float(expiry)
        cards = self._cards.cards
        if (
            before != head
            or one_way != irreversible
            or card in cards.numbers
            or repr(created_at) != created
            or repr(not_after) != expiry
            or not created_at <= not_after < FAR
            or created_at > now + STEP_BACK
            or not (score in self._scores or self._is_score(score))
            or hashlib.sha256(_card_bytes(form)).hexdigest() != card
        ):
            return False
        cards.issue(card, seq, created_at, not_after, (worktree, thread))
        return True

    def _is_score(self, spelled: str) -> bool:
        """Say whether a number is spelled as the writer does and from 0 to 1, and remember it."""
        value = float(spelled)
        if value > 1.0 or repr(value) != spelled:
            return False
        if len(self._scores) < _MAX_KNOWN:
            self._scores.add(spelled)
        return True

    def _resolve(self, groups: tuple[str, ...], head: str, now: float) -> bool:
        """Take in a decision about an open card, in its time and from where it was issued into."""
        actor, approver, name, thread_then, worktree_then, before, stated, thread, worktree = groups
        cards = self._cards.cards
        number = cards.numbers.get(name)
        if number is None or cards.states[number] != OPEN:
            return False
        pinned_worktree, pinned_thread = cards.origins[number]
        resolved_at, not_after = float(stated), cards.not_after[number]
        if (
            before != head
            or actor != approver
            or not approver.strip(" ")
            or repr(resolved_at) != stated
            or not resolved_at > 0.0
            or not cards.created_at[number] <= resolved_at < not_after
            or not now < not_after
            or not -STEP_BACK <= now - resolved_at <= WAIT
            or worktree_then != pinned_worktree
            or thread_then != pinned_thread
            or (pinned_worktree and worktree != pinned_worktree)
            or (pinned_thread and thread != pinned_thread)
        ):
            return False
        cards.states[number] = RESOLVED
        return True

    def _other(self, text: str, head: str) -> _Other | None:
        """Read a line of any kind, of which what follows the details is still to be compared."""
        front = _FRONT(text)
        if front is None:
            return None
        start = front.end()
        self._scanner.constants = 0
        details, end = self._scanner.scan(text, start)
        frame = _FRAME(text, end)
        if (
            frame is None
            or type(details) is not dict
            or self._scanner.constants
            or details.get("prev_chain_digest", head) != head
            or line_form(details) != text[start:end]
        ):
            return None
        return _Other(front[1], details, end, *frame.groups())

    def _take(self, other: _Other, head: str, now: float) -> bool:
        """Take in a record that is not about a card, or a refusal for one of the usual reasons."""
        if not other.kind.startswith(PREFIX):
            return other.kind != ACKNOWLEDGED
        details, card, approver = other.details, other.resource, other.details.get("approver")
        if (
            other.kind != _REFUSED
            or other.type_ != "approval_card"
            or details.get("card_hash") != card
            or "\\" in card
            or details.get("prev_chain_digest") != head
            or approver != other.actor
            or not other.actor.strip(" ")
            or not self._is_true(details.get("reason"), card, details, now)
        ):
            return False
        self._cards.contained += 1
        return True

    def _is_true(self, reason: object, card: str, details: dict[str, Any], now: float) -> bool:
        """Say whether a refusal is plainly true; one as expired ends its card."""
        cards = self._cards.cards
        number = cards.numbers.get(card)
        if number is None:
            return reason == "hash_mismatch"
        if details.get("expected_card_hash", card) != card:
            return False
        if reason == "already_settled":
            return cards.states[number] != OPEN
        if reason != "expired" or cards.states[number] != OPEN:
            return False
        if now < cards.not_after[number] - STEP_BACK:
            return False
        cards.states[number] = EXPIRED
        return True


@lru_cache(maxsize=1024)
def _start(minute: str) -> float:
    """Give the start of a minute in unix seconds, or _NEVER where there is no such minute."""
    start = seconds(f"{minute}00.000000Z")
    return _NEVER if start is None else start


def _text(spelled: str) -> str:
    """Give the text that a JSON string spells between its quotes."""
    if "\\" not in spelled:
        return spelled
    text: str = scanstring(spelled + '"', 0)[0]
    return text


def _card_bytes(form: str) -> bytes:
    """Give the bytes that a card hash covers, of an envelope without blanks.

    Of the escapes only `\\uXXXX` differs in them. Raises ValueError for text that is no Unicode.
    """
    if "\\u" in form:
        form = _STRING.sub(lambda match: encode_basestring(scanstring(match[0], 1)[0]), form)
    return form.encode()
