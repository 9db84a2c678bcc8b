"""The fast way for lines that are plainly right.

It may only accept: it never makes a finding, and what it does not accept is left to the named
checks. A line is proven to be in the writer's form by its spelling, without making it again: the
patterns below match only what `json.dumps(..., sort_keys=True)` writes.
"""

from __future__ import annotations

import hashlib
import re
from json.decoder import scanstring  # type: ignore[attr-defined]
from json.encoder import encode_basestring
from typing import Any, Final

from verifier.readers.bernstein.cards import PREFIX, STEP_BACK, WAIT, Card, Cards
from verifier.readers.bernstein.chain import Chain
from verifier.readers.bernstein.envelope import FAR, MAX_REASONING
from verifier.readers.bernstein.keys import Key
from verifier.readers.bernstein.text import Scanner, line_form, seconds

_MAX_LINE: Final = 1 << 16
_ISSUED: Final = f"{PREFIX}issued"
_RESOLVED: Final = f"{PREFIX}resolved"
_HMAC: Final = len('"hmac": "')
_AFTER_HMAC: Final = len('", ')

# A plain text, any text, 64 hexadecimal digits, and the spelling of a number, still to be checked.
_P: Final = r"[ !#-\[\]-~]*"
_ESCAPE: Final = (
    r'\\(?:["\\bfnrt]|u(?:00(?:0[0-7bef]|1[0-9a-f]|7f|[89a-f][0-9a-f])'
    r"|0[1-9a-f][0-9a-f]{2}|[1-9a-f][0-9a-f]{3}))"
)
_S: Final = rf"{_P}(?:{_ESCAPE}{_P})*"
_H: Final = r"[0-9a-f]{64}"
_N: Final = r"[0-9][0-9.e-]*"
_BOOL: Final = "true|false"
_NAMES: Final = r'(?:"[0-9A-Za-z_.:/-]+"(?:, "[0-9A-Za-z_.:/-]+")*)?'


def _frame(kind: str, card: str, type_: str) -> str:
    """Give the pattern of what follows the details of a record."""
    return (
        rf', "event_type": "{kind}", "hmac": "({_H})", "prev_hmac": "({_H})", '
        rf'"resource_id": "({card})", "resource_type": "{type_}"(, "scheme": 2)?, '
        r'"timestamp": "(.{17})([0-5][0-9])\.([0-9]{6})Z"\}'
    )


_ISSUED_LINE: Final = re.compile(
    rf'\{{"actor": "{_P}", "details": \{{"card_hash": "({_H})", "envelope": \{{'
    rf'"action": \{{"args_digest": "({_H})", "tool_name": "({_S})"\}}, '
    rf'"approval_id": "({_S})", "card_version": "v2", "created_at": ({_N}), '
    rf'"impact": \{{"fired_detectors": \[({_NAMES})\], "hard_one_way": ({_BOOL}), '
    rf'"rationale": "({_S})", "score": ({_N})\}}, "not_after": ({_N}), "reasoning": "({_S})", '
    rf'"rollback": \{{"irreversible": ({_BOOL}), "procedure": "({_S})"\}}\}}, '
    rf'"install_id": "{_P}", "prev_chain_digest": "({_H})", "session_id": "{_P}", '
    rf'"thread_id": "({_P})", "worktree_id": "({_P})"\}}'
    + _frame(re.escape(_ISSUED), _H, "approval_card")
)
_RESOLVED_LINE: Final = re.compile(
    rf'\{{"actor": "({_P})", "details": \{{"approver": "({_P})", "card_hash": "({_H})", '
    rf'"decision": "(?:approve|reject)", "install_id": "{_P}", "issued_thread_id": "({_P})", '
    rf'"issued_worktree_id": "({_P})", "prev_chain_digest": "({_H})", "resolved_at": ({_N}), '
    rf'"session_id": "{_P}", "thread_id": "({_P})", "worktree_id": "({_P})"\}}'
    + _frame(re.escape(_RESOLVED), _H, "approval_card")
)
_ANY_LINE: Final = re.compile(rf'\{{"actor": "({_S})", "details": ')
_ANY_FRAME: Final = re.compile(_frame(f"({_S})", _S, f"({_S})"))
_CARD_FORM: Final = (
    '{"action":{"args_digest":"%s","tool_name":"%s"},"approval_id":"%s","card_version":"v2",'
    '"created_at":%s,"impact":{"fired_detectors":[%s],"hard_one_way":%s,"rationale":"%s",'
    '"score":%s},"not_after":%s,"reasoning":"%s","rollback":{"irreversible":%s,"procedure":"%s"}}'
)


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
        self._day = ""
        self._minute, self._minute_at = "", 0.0

    def begin(self, day: str | None) -> None:
        """Begin a file of a day, where its name says one."""
        self._day, self._minute = day or "", ""

    def accept(self, raw: bytes) -> bool:
        """Accept a line that issues a card or decides one, and fold it in, or do nothing.

        Only once the log has a record under a known key, and has no open question.
        """
        chain = self._chain
        if not chain.authentic or chain.excused or chain.alternative or len(raw) > _MAX_LINE:
            return False
        try:
            text = raw.decode("ascii")
            match = _ISSUED_LINE.fullmatch(text)
            if match:
                return _ISSUED in chain.kinds and self._issued(match, raw)
            match = _RESOLVED_LINE.fullmatch(text)
            return match is not None and _RESOLVED in chain.kinds and self._resolved(match, raw)
        except ValueError:  # text that is not ASCII, or no number, or no Unicode in an envelope
            return False

    def prove(self, raw: bytes) -> tuple[dict[str, Any], float] | None:
        """Give a record of any kind in which all holds but what it says of a card, and its time."""
        chain = self._chain
        if not chain.authentic or len(raw) > _MAX_LINE:
            return None
        try:
            text = raw.decode("ascii")
            head = _ANY_LINE.match(text)
            if head is None:
                return None
            start = head.end()
            self._scanner.constants = 0
            details, end = self._scanner.scan(text, start)
            frame = _ANY_FRAME.fullmatch(text, end)
            if frame is None or type(details) is not dict or self._scanner.constants:
                return None
            if line_form(details) != text[start:end]:
                return None
        except (ValueError, StopIteration, RecursionError):
            return None
        kind, tag, prev, card, type_, scheme, minute, second, micro = frame.groups()
        at = self._time(minute, second, micro)
        if at is None or details.get("prev_chain_digest", prev) != prev:
            return None
        if not self._holds(raw, frame.start(2), tag, prev, scheme):
            return None
        record = {
            "actor": _text(head[1]),
            "details": details,
            "event_type": _text(kind),
            "hmac": tag,
            "prev_hmac": prev,
            "resource_id": _text(card),
            "resource_type": _text(type_),
            "scheme": 2 if scheme else 1,
            "timestamp": f"{minute}{second}.{micro}Z",
        }
        return record, at

    def _issued(self, match: re.Match[str], raw: bytes) -> bool:
        """Accept the first event of a card."""
        envelope = match.groups()[:13]
        card, _, _, _, created, _, one_way, _, score, expiry, reasoning, irreversible, _ = envelope
        before, thread, worktree, tag, prev, named, scheme, minute, second, micro = match.groups()[
            13:
        ]
        created_at, risk, not_after = float(created), float(score), float(expiry)
        at = self._time(minute, second, micro)
        if (
            at is None
            or named != card
            or before != prev
            or card in self._cards.cards
            or one_way != irreversible
            or repr(created_at) != created
            or repr(risk) != score
            or repr(not_after) != expiry
            or risk > 1.0
            or not created_at <= not_after < FAR
            or created_at > at + STEP_BACK
            or (len(reasoning) > MAX_REASONING and len(_text(reasoning)) > MAX_REASONING)
            or hashlib.sha256(_card_bytes(envelope)).hexdigest() != card
            or not self._holds(raw, match.start(17), tag, prev, scheme)
        ):
            return False
        self._advance(_ISSUED, at, tag, scheme, f"{minute}{second}.{micro}Z")
        seq = self._chain.seq
        self._cards.accept_issued(card, Card(seq, created_at, not_after, worktree, thread))
        return True

    def _resolved(self, match: re.Match[str], raw: bytes) -> bool:
        """Accept a decision about an open card, in its time and from where it was issued into."""
        actor, approver, name, issued_thread, issued_worktree, before, stated, *more = (
            match.groups()
        )
        thread, worktree, tag, prev, named, scheme, minute, second, micro = more
        card = self._cards.cards.get(name)
        resolved_at = float(stated)
        at = self._time(minute, second, micro)
        if (
            card is None
            or at is None
            or card.state != "open"
            or named != name
            or before != prev
            or actor != approver
            or not approver.strip(" ")
            or repr(resolved_at) != stated
            or not resolved_at > 0.0
            or not card.created_at <= resolved_at
            or not max(resolved_at, at) < card.not_after
            or not -STEP_BACK <= at - resolved_at <= WAIT
            or issued_worktree != card.worktree
            or issued_thread != card.thread
            or (card.worktree and worktree != card.worktree)
            or (card.thread and thread != card.thread)
            or not self._holds(raw, match.start(10), tag, prev, scheme)
        ):
            return False
        self._advance(_RESOLVED, at, tag, scheme, f"{minute}{second}.{micro}Z")
        self._cards.accept_resolved(card)
        return True

    def _time(self, minute: str, second: str, micro: str) -> float | None:
        """Give a time in unix seconds, if it is of the day of the file and none is later."""
        if minute != self._minute:
            at = seconds(f"{minute}00.000000Z")
            if at is None or not minute.startswith(self._day):
                return None
            self._minute, self._minute_at = minute, at
        time = self._minute_at + int(second) + int(micro) / 1e6
        return time if time >= self._chain.high else None

    def _holds(self, raw: bytes, at_tag: int, tag: str, prev: str, scheme: str | None) -> bool:
        """Say whether a record follows the one before it, under the key of the log.

        The hmac that somebody asks about and a return to the old scheme are for the named checks.
        """
        chain = self._chain
        if prev != chain.head or tag == self._expect or (chain.seen_new and not scheme):
            return False
        body = raw[: at_tag - _HMAC] + raw[at_tag + 64 + _AFTER_HMAC :]
        return self._keys[0].record_hmac(2 if scheme else 1, prev, body) == tag

    def _advance(self, kind: str, at: float, tag: str, scheme: str | None, time: str) -> None:
        chain = self._chain
        chain.seq += 1
        chain.records += 1
        chain.authentic += 1
        chain.head = tag
        chain.kinds[kind] += 1
        chain.seen_new = chain.seen_new or scheme is not None
        chain.start = chain.start or time
        chain.end = time
        chain.high, chain.high_seq = at, chain.seq


def _text(spelled: str) -> str:
    """Give the text that a JSON string spells between its quotes."""
    if "\\" not in spelled:
        return spelled
    text: str = scanstring(spelled + '"', 0)[0]
    return text


def _card_bytes(envelope: tuple[str, ...]) -> bytes:
    """Give the bytes that a card hash covers. Raises ValueError where they are not Unicode."""
    form = _CARD_FORM % envelope[1:]
    if "\\u" in form:  # only these escapes differ between the two forms
        form = _CARD_FORM % tuple(
            encode_basestring(_text(part))[1:-1] if "\\u" in part else part for part in envelope[1:]
        )
    return form.encode()
