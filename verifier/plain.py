"""Envelopes of the plain shape, accepted by their bytes (spec §2).

Canonical form fixes the order of names and every byte between values, so one pattern over the bytes
states the schema and the form at once. Only the arguments are free, and are read and encoded again.
What does not match is not wrong: `jcs` and `envelope` judge it.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from typing import NamedTuple

from verifier.jcs import plain_end
from verifier.spec import MAX_TIME

_NAME = rb'"[^"\\\x00-\x1f]{1,256}"'
_TEXT = rb'"[^"\\\x00-\x1f]*(?:\\(?:["\\bfnrt]|u00(?:0[0-7bef]|1[0-9a-f]))[^"\\\x00-\x1f]*)*"'
_HEX32 = rb'"[0-9a-f]{64}"'
_TIME = rb"(?:0|[1-9][0-9]{0,11})"

_BEGIN = b'{"action":{"args_digest":"'
_DIGEST_END = len(_BEGIN) + 64
_ARGUMENTS = b'","arguments":{'
_START = _DIGEST_END + len(_ARGUMENTS) - 1
_REST = (
    rb'(?:,"artifact_digest":' + _HEX32 + rb')?(?:,"spec_digest":' + _HEX32 + rb")?"
    rb',"tool_name":(?P<tool>' + _NAME + rb")\}"
    rb',"effect_key":"(?P<effect_key>[0-9a-f]{64})"'
    rb',"format":"cardchain-card/1"'
    rb'(?:,"grant_ttl":(?P<grant_ttl>[1-9][0-9]{0,11}))?'
    rb'(?:,"impact":\{"detector_set":\{"digest":' + _HEX32 + rb',"id":' + _NAME + rb"\}"
    rb',"fired_detectors":\[(?:' + _NAME + rb')?\],"hard_one_way":false'
    rb',"rationale":(?P<rationale>' + _TEXT + rb'),"score":(?:100|[1-9]?[0-9])\})?'
    rb',"issued_at":(?P<issued_at>' + _TIME + rb")"
    rb',"kind":' + _NAME + rb',"not_after":(?P<not_after>' + _TIME + rb")"
    rb'(?:,"policy_version":' + _NAME + rb")?"
    rb'(?:,"purpose":(?P<purpose>' + _TEXT + rb"))?"
    rb',"reasoning":(?P<reasoning>' + _TEXT + rb")"
    rb'(?:,"rollback":\{"irreversible":(?:true|false)'
    rb',"procedure":(?P<procedure>' + _TEXT + rb")\})?"
    rb'(?:,"subject":\{"id":' + _NAME + rb',"source":(?!"model")' + _NAME + rb"\})?"
    rb',"task":(?P<task>\{"id":' + _NAME + rb',"step":' + _NAME + rb"\})\}"
)
_SHORT = 2000  # no text of a shorter envelope can be too long
_TEXTS = ("reasoning", "rationale", "purpose", "procedure")
_MOST = (2000, 4096, 4096, 4096)
_GROUPS = ("tool", "effect_key", "grant_ttl", *_TEXTS, "issued_at", "not_after", "task")
_EFFECT_KEY = (
    b'{"args_digest":"%b","capability":null,"format":"effect-key/1","task":%b,"tool_name":%b}'
)


@cache
def _rest() -> re.Pattern[bytes]:
    """Compile the pattern when the first card is read: it takes as long as many small logs."""
    return re.compile(_REST)


class Plain(NamedTuple):
    """What a record repeats of an envelope that keeps every rule and names no earlier card."""

    task_digest: bytes
    issued_at: int
    not_after: int
    grant_ttl: int | None


def read(data: bytes) -> Plain | None:
    """Accept a plain envelope that is canonical, of the schema, and right in its digests."""
    if not data.startswith(_BEGIN) or not data.startswith(_ARGUMENTS, _DIGEST_END):
        return None
    end = plain_end(data, _START)
    rest = None if end is None else _rest().fullmatch(data, end)
    if rest is None:
        return None
    sha256 = hashlib.sha256
    args_digest = data[len(_BEGIN) : _DIGEST_END]
    tool, effect_key, ttl, *texts, issued, latest, task = rest.group(*_GROUPS)
    if sha256(data[_START:end]).hexdigest() != args_digest.decode():
        return None
    key = _EFFECT_KEY % (args_digest, task, tool)
    if sha256(key).hexdigest() != effect_key.decode():
        return None
    if len(data) > _SHORT and any(
        len(text or b"") - 2 > most for text, most in zip(texts, _MOST, strict=True)
    ):
        return None
    issued_at, not_after, grant_ttl = int(issued), int(latest), None if ttl is None else int(ttl)
    if not issued_at < not_after <= MAX_TIME or (grant_ttl or 0) > MAX_TIME:
        return None
    return Plain(sha256(task).digest(), issued_at, not_after, grant_ttl)
