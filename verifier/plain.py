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
_RULE = rb'\{"id":' + _NAME + rb',"sha256":' + _HEX32 + rb"\}"
_BASIS = (
    rb',"approval_basis":(\{)(?:"combining":' + _NAME + rb',)?(?:"default":' + _NAME + rb",)?"
    rb'"engine":' + _NAME + rb',"evidence_class":"(?:none|fired_rules|selection|whole_policy)"'
    rb'(?:,"policy_sha256":' + _HEX32 + rb')?,"profile":' + _HEX32 + rb'(?:,"profile_id":'
    rb"" + _NAME + rb')?(?:,"profile_version":' + _NAME + rb')?,"rules":\[(?:' + _RULE + rb"(?:,"
    rb"" + _RULE + rb"){0,1023})?\]"
    rb'(?:,"selection":\{"count":(?:0|[1-9][0-9]{0,14}),"digest":' + _HEX32 + rb',"mode":'
    rb"" + _NAME + rb'\})?,"verdict":' + _NAME + rb"\}"
)
_REST = (
    rb'(?:,"artifact_digest":' + _HEX32 + rb')?(?:,"spec_digest":' + _HEX32 + rb")?"
    rb',"tool_name":(' + _NAME + rb")\}(?:" + _BASIS + rb")?"
    rb',"effect_key":"([0-9a-f]{64})","format":"cardchain-card/1"'
    rb'(?:,"grant_ttl":([1-9][0-9]{0,11}))?'
    rb'(?:,"impact":\{"detector_set":\{"digest":' + _HEX32 + rb',"id":' + _NAME + rb"\}"
    rb',"fired_detectors":\[(?:' + _NAME + rb')?\],"hard_one_way":false'
    rb',"rationale":(' + _TEXT + rb'),"score":(?:100|[1-9]?[0-9])\})?'
    rb',"issued_at":(' + _TIME + rb'),"kind":' + _NAME + rb',"not_after":(' + _TIME + rb")"
    rb'(?:,"policy_version":' + _NAME + rb")?"
    rb'(?:,"preconditions":\[\{"ref":' + _NAME + rb',"version":' + _NAME + rb"\}\])?"
    rb'(?:,"purpose":(' + _TEXT + rb'))?,"reasoning":(' + _TEXT + rb")"
    rb'(?:,"rollback":\{"irreversible":(?:true|false),"procedure":(' + _TEXT + rb")\})?"
    rb'(?:,"subject":\{"id":' + _NAME + rb',"source":(?!"model")' + _NAME + rb'(?:,"tenant":'
    rb"" + _NAME + rb")?\})?"
    rb',"task":(\{"id":' + _NAME + rb',"step":' + _NAME + rb"\})\}"
)
_SHORT = 2000  # no text of a shorter envelope can be too long
_MOST = (4096, 4096, 2000, 4096)  # rationale, purpose, reasoning, procedure
_EFFECT_KEY = (
    b'{"args_digest":"%b","capability":null,"format":"effect-key/1","task":%b,"tool_name":%b}'
)


@cache
def _rest() -> re.Pattern[bytes]:
    """Compile the pattern when the first card is read: it takes as long as many small logs."""
    return re.compile(_REST)


class Plain(NamedTuple):
    """What a record repeats of an envelope that keeps every rule and names no earlier card.

    `has_basis` says that there is policy evidence to be judged (spec §8).
    """

    task_digest: bytes
    issued_at: int
    not_after: int
    grant_ttl: int | None
    has_basis: bool


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
    tool, basis, effect_key, ttl, rationale, issued, latest, *texts, task = rest.groups()
    if sha256(data[_START:end]).hexdigest().encode() != args_digest:
        return None
    if sha256(_EFFECT_KEY % (args_digest, task, tool)).hexdigest().encode() != effect_key:
        return None
    if len(data) > _SHORT and any(
        len(text or b"") - 2 > most for text, most in zip((rationale, *texts), _MOST, strict=True)
    ):
        return None
    issued_at, not_after, grant_ttl = int(issued), int(latest), None if ttl is None else int(ttl)
    if not issued_at < not_after <= MAX_TIME or (grant_ttl or 0) > MAX_TIME:
        return None
    return Plain(sha256(task).digest(), issued_at, not_after, grant_ttl, basis is not None)
