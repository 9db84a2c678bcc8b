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
from typing import Any, Final

from verifier.readers.bernstein.cards import PREFIX, STEP_BACK, WAIT, Cards
from verifier.readers.bernstein.chain import At, Chain
from verifier.readers.bernstein.envelope import FAR, MAX_REASONING
from verifier.readers.bernstein.keys import Key
from verifier.readers.bernstein.register import OPEN, RESOLVED
from verifier.readers.bernstein.text import Scanner, line_form, seconds

_MAX_LINE: Final = 1 << 16
_MAX_KNOWN: Final = 4096
_NEVER: Final = -math.inf
_ISSUED: Final = f"{PREFIX}issued"
_RESOLVED: Final = f"{PREFIX}resolved"
_KINDS: Final = {_ISSUED, _RESOLVED}
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
_CARD_FRAME: Final = (
    ', "event_type": "%s", "hmac": "%s", "prev_hmac": "%s", "resource_id": "%s", '
    '"resource_type": "approval_card", "scheme": 2, "timestamp": "%s'
)
_END: Final = re.compile(r'([0-5][0-9])\.([0-9]{6})Z"\}').fullmatch
_END_LENGTH: Final = len('ss.ffffffZ"}')
_MINUTE_LENGTH: Final = len("YYYY-MM-DDThh:mm:")
_TAG_TO_END: Final = len(_CARD_FRAME % ("", *[f"{0:064}"] * 3, "")) - (
    len(', "event_type": "", "hmac": "') - _MINUTE_LENGTH - _END_LENGTH
)
_STRING: Final = re.compile(rf'"{_S}"')
_ANY_LINE: Final = re.compile(rf'\{{"actor": "({_S})", "details": ').match
_ANY_FRAME: Final = re.compile(
    rf', "event_type": "({_S})", "hmac": "({_H})", "prev_hmac": "({_H})", '
    rf'"resource_id": "({_S})", "resource_type": "({_S})"(, "scheme": 2)?, '
    r'"timestamp": "(.{17})([0-5][0-9])\.([0-9]{6})Z"\}'
).fullmatch


class Fast:
    """Accepts records of one log; `chain` and `cards` are those of the walk over it."""

    def __init__(
        self,
        chain: Chain,
        cards: Cards,
        keys: list[Key],
        expect: str | None,
        scanner: Scanner,
    ) -> None:
        """Start; the walk puts the key of the log first, and scans with the same scanner."""
        self._chain, self._cards, self._keys = chain, cards, keys
        self._expect, self._scanner = expect, scanner
        self._scores: set[str] = set()

    def left(
        self, lines: Iterator[tuple[bytes, bool]], at: At, *, ready: bool
    ) -> tuple[bytes, bool] | None:
        """Accept events of cards as long as they are plainly right, and fold them in.

        Gives the first line that it does not accept, with `at` set to its place, or None where
        there are no more. It begins where the caller is `ready`, after the first line of a file,
        once an HMAC held and both kinds of event were counted, and with nothing to excuse.
        """
        chain = self._chain
        if (
            not (ready and at.line and chain.authentic and chain.kinds.keys() >= _KINDS)
            or chain.excused
            or chain.alternative is not None
        ):
            first = next(lines, None)
            if first is not None:
                at.advance(1, len(first[0]) + 1, first[0])
            return first
        begun, keyed = self._keys[0].begun(2)
        expect, day = self._expect, at.day or ""
        seq, head, high = chain.seq, chain.head or "", chain.high
        minute, start, time = "?", _NEVER, ""
        issued = resolved = read = 0
        left: tuple[bytes, bool] | None = None
        raw = b""
        try:
            for left in lines:
                raw, whole = left
                size = len(raw)
                read += size + 1
                text = raw.decode("ascii") if whole and size <= _MAX_LINE else ""
                details = _ISSUED_DETAILS(text)
                kind = _ISSUED
                if details is None:
                    details = _RESOLVED_DETAILS(text)
                    kind = _RESOLVED
                    if details is None:
                        break

                # the time, of which the minute is that of the line before most often
                end = _END(text, size - _END_LENGTH)
                if end is None:
                    break
                if not text.startswith(minute, size - _END_LENGTH - _MINUTE_LENGTH):
                    minute = text[size - _END_LENGTH - _MINUTE_LENGTH : size - _END_LENGTH]
                    start = _start(minute) if minute.startswith(day) else _NEVER
                second, micro = end.groups()
                now = start + int(second) + int(micro) / 1e6
                if now < high:
                    break

                # the HMAC, and all that follows the details in one comparison
                at_tag = size - _TAG_TO_END
                inner, outer = begun.copy(), keyed.copy()
                inner.update(
                    head.encode() + raw[: at_tag - _BEFORE_TAG] + raw[at_tag + _AFTER_TAG :]
                )
                outer.update(inner.digest())
                tag = outer.hexdigest()
                groups = details.groups()
                card = groups[0] if kind is _ISSUED else groups[2]
                if tag == expect or not text.startswith(
                    _CARD_FRAME % (kind, tag, head, card, minute), details.end()
                ):
                    break

                if kind is _ISSUED:
                    if not self._issue(groups, head, seq + 1, now):
                        break
                    issued += 1
                else:
                    if not self._resolve(groups, head, now):
                        break
                    resolved += 1
                seq, head, high, time, left = seq + 1, tag, now, f"{minute}{second}.{micro}Z", None
        except ValueError:  # text that is not ASCII, no number, or no Unicode in an envelope
            pass
        finally:
            at.advance(issued + resolved + (left is not None), read, raw)
            if issued or resolved:
                self._accepted(issued, resolved, head, high, time)
        return left

    def _accepted(self, issued: int, resolved: int, head: str, high: float, time: str) -> None:
        """Count the records that were accepted in a row; `time` is that of the last one."""
        chain, cards, count = self._chain, self._cards, issued + resolved
        chain.seq += count
        chain.records += count
        chain.authentic += count
        chain.kinds[_ISSUED] += issued
        chain.kinds[_RESOLVED] += resolved
        chain.head, chain.high, chain.high_seq, chain.end = head, high, chain.seq, time
        chain.seen_new = True
        cards.envelopes_total += issued
        cards.envelopes_ok += issued
        cards.decisions_total += resolved
        cards.decisions_ok += resolved

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

    def prove(self, raw: bytes) -> tuple[dict[str, Any], float] | None:
        """Give a record of any kind in which all holds but what it says of a card, and its time.

        It follows the record before it, and its HMAC holds under the key of the log.
        """
        chain = self._chain
        if not chain.authentic or len(raw) > _MAX_LINE:
            return None
        try:
            text = raw.decode("ascii")
            front = _ANY_LINE(text)
            if front is None:
                return None
            start = front.end()
            self._scanner.constants = 0
            details, end = self._scanner.scan(text, start)
            frame = _ANY_FRAME(text, end)
            if frame is None or type(details) is not dict or self._scanner.constants:
                return None
            if line_form(details) != text[start:end]:
                return None
        except (ValueError, StopIteration, RecursionError):
            return None
        kind, tag, prev, resource, type_, new, minute, second, micro = frame.groups()
        if prev != chain.head or tag == self._expect:
            return None
        if details.get("prev_chain_digest", prev) != prev or _start(minute) == _NEVER:
            return None
        scheme, at_tag = 2 if new else 1, frame.start(2)
        body = raw[: at_tag - _BEFORE_TAG] + raw[at_tag + _AFTER_TAG :]
        if self._keys[0].record_hmac(scheme, prev, body) != tag:
            return None
        record = {
            "actor": _text(front[1]),
            "details": details,
            "event_type": _text(kind),
            "hmac": tag,
            "prev_hmac": prev,
            "resource_id": _text(resource),
            "resource_type": _text(type_),
            "scheme": scheme,
            "timestamp": f"{minute}{second}.{micro}Z",
        }
        return record, _start(minute) + int(second) + int(micro) / 1e6


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
