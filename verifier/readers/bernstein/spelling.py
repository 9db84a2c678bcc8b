"""How the usual lines are spelled: what matches is what `json.dumps(..., sort_keys=True)` writes.

A number is only shown to be made of the right characters: that it is spelled as Python writes it
is for the caller to see, and so is what a line repeats of others.
"""

from __future__ import annotations

import re
from json.decoder import scanstring  # type: ignore[attr-defined]
from json.encoder import encode_basestring
from typing import Final

# A plain text, any text, and what may be the spelling of a number.
_P: Final = r"[ !#-\[\]-~]*+"
_ESCAPE: Final = (
    r'\\(?:["\\bfnrt]|u(?:00(?:0[0-7bef]|1[0-9a-f]|7f|[89a-f][0-9a-f])'
    r"|0[1-9a-f][0-9a-f]{2}|[1-9a-f][0-9a-f]{3}))"
)
_S: Final = rf"{_P}(?:{_ESCAPE}{_P})*+"
_N: Final = r"[0-9][0-9.e-]*+"
_BOOL: Final = "true|false"
_NAMES: Final = r'(?:"[0-9A-Za-z_.:/-]+"(?:, "[0-9A-Za-z_.:/-]+")*)?'
# 64 hexadecimal digits, and 64 of any kind where the caller compares them with such.
_H: Final = r"[0-9a-f]{64}"
_D: Final = ".{64}"

# Each gives the actor and the card first; in `resolved` and `refused` the actor is the approver.
issued: Final = re.compile(
    rf'\{{"actor": "({_P})", "details": \{{"card_hash": "({_D})", "envelope": \{{'
    rf'"action": \{{"args_digest": "({_H})", "tool_name": "({_S})"\}}, '
    rf'"approval_id": "({_S})", "card_version": "v2", "created_at": ({_N}), '
    rf'"impact": \{{"fired_detectors": \[({_NAMES})\], "hard_one_way": ({_BOOL}), '
    rf'"rationale": "({_S})", "score": ({_N})\}}, "not_after": ({_N}), "reasoning": "({_S})", '
    rf'"rollback": \{{"irreversible": ({_BOOL}), "procedure": "({_S})"\}}\}}, '
    rf'"install_id": "{_P}", "prev_chain_digest": "({_D})", "session_id": "{_P}", '
    rf'"thread_id": "({_P})", "worktree_id": "({_P})"\}}'
).match
resolved: Final = re.compile(
    rf'\{{"actor": "({_P})", "details": \{{"approver": "\1", "card_hash": "({_D})", '
    rf'"decision": "(?:approve|reject)", "install_id": "{_P}", "issued_thread_id": "({_P})", '
    rf'"issued_worktree_id": "({_P})", "prev_chain_digest": "({_D})", "resolved_at": ({_N}), '
    rf'"session_id": "{_P}", "thread_id": "({_P})", "worktree_id": "({_P})"\}}'
).match
refused: Final = re.compile(
    rf'\{{"actor": "({_P})", "details": \{{"approver": "\1", "card_hash": "({_P})", '
    rf'"expected_card_hash": "({_P})", "expected_thread_id": "{_P}", '
    rf'"expected_worktree_id": "{_P}", "install_id": "{_P}", "prev_chain_digest": "({_D})", '
    rf'"reason": "({_P})", "session_id": "{_P}", "thread_id": "{_P}", "worktree_id": "{_P}"\}}'
).match

# A line of any kind: what stands before its details, and what stands after them.
front: Final = re.compile(rf'\{{"actor": "({_P})", "details": ').match
frame: Final = re.compile(
    rf', "event_type": "({_P})", "hmac": ".{{64}}", "prev_hmac": ".{{64}}", '
    rf'"resource_id": "({_S})", "resource_type": "({_S})", "scheme": 2, '
).match
end: Final = re.compile(r'([0-5][0-9])\.([0-9]{6})Z"\}').fullmatch
minute: Final = re.compile(r"(.{14})([0-5][0-9]):").fullmatch
_STRING: Final = re.compile(rf'"{_S}"')


def text(spelled: str) -> str:
    """Give the text that a JSON string spells between its quotes."""
    if "\\" not in spelled:
        return spelled
    value: str = scanstring(spelled + '"', 0)[0]
    return value


def card_bytes(form: str) -> bytes:
    """Give the bytes that a card hash covers, of an envelope spelled as matched without blanks.

    Of the escapes only `\\uXXXX` differs in them. Raises ValueError for text that is no Unicode.
    """
    if "\\" in form and "\\u" in form:  # to look for one character is far cheaper
        form = _STRING.sub(lambda match: encode_basestring(scanstring(match[0], 1)[0]), form)
    return form.encode()
