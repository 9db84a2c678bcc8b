"""The fast way for lines that are plainly right.

It may only accept: it never makes a finding, and what it does not accept is left to the named
checks. A line is proven to be in the writer's form by its spelling, without making it again.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from verifier.readers.bernstein import spelling
from verifier.readers.bernstein.cards import ACKNOWLEDGED, PREFIX, STEP_BACK, WAIT, Cards
from verifier.readers.bernstein.chain import At, Chain
from verifier.readers.bernstein.envelope import MAX_REASONING
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
_FRAME_TO_TAG: Final = len(', "event_type": "", "hmac": "')
_END_LENGTH: Final = len('ss.ffffffZ"}')
_TIME_LENGTH: Final = len('YYYY-MM-DDThh:mm:ss.ffffffZ"}')
_MINUTE_LENGTH: Final = len("YYYY-MM-DDThh:mm:")
# In a line about a card the kind ends this far from the end, and these last letters tell it.
_AFTER_KIND: Final = len(
    f'", "hmac": "{"":64}", "prev_hmac": "{"":64}", "resource_id": "{"":64}", '
    f'"resource_type": "approval_card", "scheme": 2, "timestamp": "{"":{_TIME_LENGTH}}'
)
_LETTERS: Final = 8
# From 2004 to 2038 unix seconds have ten digits, and their floats are 2**-22 apart.
_EVEN_FROM: Final = 2.0**30
_EVEN_TO: Final = 2.0**31


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
        about_cards = self._about_cards()
        spelled_end = spelling.end
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
                at_kind = size - _AFTER_KIND
                usual, details = about_cards.get(text[at_kind - _LETTERS : at_kind]), None
                if usual is not None:
                    kind, spelled, take = usual
                    details = spelled(text)
                if details is not None:
                    facts = details.groups()
                    card, type_, at_frame = facts[1], "approval_card", details.end()
                else:
                    other = self._other(text, head)
                    if other is None:
                        break
                    at_frame, kind, card, type_ = other

                # the time, of which the minute is that of the line before most often
                at_end = size - _END_LENGTH
                end = spelled_end(text, at_end)
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
                inner.update(head.encode())
                inner.update(raw[: at_tag - _BEFORE_TAG])
                inner.update(raw[at_tag + _AFTER_TAG :])
                outer.update(inner.digest())
                tag = outer.hexdigest()
                if tag == expect or text[at_frame:at_end] != (
                    f', "event_type": "{kind}", "hmac": "{tag}", "prev_hmac": "{head}", '
                    f'"resource_id": "{card}", "resource_type": "{type_}", "scheme": 2, '
                    f'"timestamp": "{minute}'
                ):
                    break

                if kind not in kinds or (details and not take(facts, head, seq + 1, now)):
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

    def _about_cards(self) -> dict[str, Any]:
        """Give for the last letters of a kind: the kind, its pattern, and what takes it in."""
        return {
            _ISSUED[-_LETTERS:]: (_ISSUED, spelling.issued, self._issue),
            _RESOLVED[-_LETTERS:]: (_RESOLVED, spelling.resolved, self._resolve),
            _REFUSED[-_LETTERS:]: (_REFUSED, spelling.refused, self._refuse),
        }

    def _issue(self, facts: tuple[str, ...], head: str, seq: int, now: float) -> bool:
        """Take in a card, where its envelope is lawful and it was not issued before."""
        _, card, digest, tool, approval, created, names, one_way, rationale, *more = facts
        score, expiry, reasoning, irreversible, procedure, before, thread, worktree = more
        if len(reasoning) > MAX_REASONING and len(spelling.text(reasoning)) > MAX_REASONING:
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
            or not created_at <= not_after
            or not (
                # floats are as close to each other all over these times, so whole seconds later
                # the shortest spelling has the same digits after the point
                (expiry[10:] == created[10:] and created_at >= _EVEN_FROM and not_after < _EVEN_TO)
                or repr(not_after) == expiry
            )
            or created_at > now + STEP_BACK
            or not (score in self._scores or self._is_score(score))
            or hashlib.sha256(spelling.card_bytes(form)).hexdigest() != card
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

    def _resolve(self, facts: tuple[str, ...], head: str, seq: int, now: float) -> bool:
        """Take in a decision about an open card, in its time and from where it was issued into."""
        approver, card, thread_then, worktree_then, before, stated, thread, worktree = facts
        cards = self._cards.cards
        number = cards.numbers.get(card)
        if number is None or cards.states[number] != OPEN:
            return False
        pinned_worktree, pinned_thread = cards.origins[number]
        resolved_at, not_after = float(stated), cards.not_after[number]
        if (
            before != head
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

    def _refuse(self, facts: tuple[str, ...], head: str, seq: int, now: float) -> bool:
        """Take in a refusal for one of the usual reasons, where it is true."""
        _, card, asked, before, reason = facts
        if before != head or not self._is_true(reason, card, asked, now):
            return False
        self._cards.contained += 1
        return True

    def _is_true(self, reason: str, card: str, asked: str, now: float) -> bool:
        """Say whether a refusal is plainly true; one as expired ends its card."""
        cards = self._cards.cards
        number = cards.numbers.get(card)
        if number is None:
            return reason == "hash_mismatch"
        if asked != card:
            return False
        if reason == "already_settled":
            return cards.states[number] != OPEN
        if reason != "expired" or cards.states[number] != OPEN:
            return False
        if now < cards.not_after[number] - STEP_BACK:
            return False
        cards.states[number] = EXPIRED
        return True

    def _other(self, text: str, head: str) -> tuple[int, str, str, str] | None:
        """Read a line about no card; give the end of its details and what is spelled behind them.

        That are its kind, resource and type; the whole rest is still to be compared.
        """
        front = spelling.front(text)
        if front is None:
            return None
        start = front.end()
        self._scanner.constants = 0
        details, end = self._scanner.scan(text, start)
        frame = spelling.frame(text, end)
        if (
            frame is None
            or type(details) is not dict
            or self._scanner.constants
            or details.get("prev_chain_digest", head) != head
            or line_form(details) != text[start:end]
        ):
            return None
        kind, resource, type_ = frame.groups()
        if kind.startswith(PREFIX) or kind == ACKNOWLEDGED:
            return None
        return end, kind, resource, type_


def _start(minute: str) -> float:
    """Give the start of a minute in unix seconds, or _NEVER where there is no such minute."""
    found = spelling.minute(minute)
    return _hour(found[1]) + int(found[2]) * 60 if found else _NEVER


@lru_cache(maxsize=1024)
def _hour(hour: str) -> float:
    """Give the start of an hour `YYYY-MM-DDThh:`, or _NEVER where there is no such hour."""
    start = seconds(f"{hour}00:00.000000Z")
    return _NEVER if start is None else start
