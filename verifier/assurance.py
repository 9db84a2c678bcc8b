"""How much a verdict rests on, and the pin file that moves on with it (spec §16)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from verifier import checks
from verifier.anchors import Anchor
from verifier.checks.checkpoint import Ground, Sighting
from verifier.findings import finding
from verifier.pinfile import Head, write_pin
from verifier.report import LogReport, Outcome, Report, Verdict
from verifier.spec import EXCERPT_FORMAT, VERSION
from verifier.summary import WHO_MADE_IT, WHO_SIGNED_IT, with_finding, with_row

PINNED, SIGNED = "pinned", "signed"
WORDS = (PINNED, SIGNED)
WEAKEST = "integrity only"


class Sight(NamedTuple):
    """What was seen of an input besides its report.

    `digests` are its chain digests by seq, where they were kept. `head_at` is the seq of the
    expected head, `found` the digest at the pinned seq. `reached` is how many records it has, None
    where it was not read to its end. `signed_to` and `pinned_to` are the sizes of the largest
    checkpoints that hold, any and one that was kept; 0 is none. `apart` are checkpoints and proofs
    that were given and are of another chain.
    """

    digests: dict[int, bytes]
    head_at: int | None = None
    found: bytes | None = None
    reached: int | None = None
    signed_to: int = 0
    pinned_to: int = 0
    apart: tuple[Anchor, ...] = ()


def with_apart(logs: Sequence[LogReport], sights: Sequence[Sight]) -> list[LogReport]:
    """Report checkpoints that were given and are of the chain of no input (spec §13.7)."""
    chains = {log.chain for log in logs if log.format in (VERSION, EXCERPT_FORMAT)}
    return [_with_apart(log, sight, chains) for log, sight in zip(logs, sights, strict=True)]


def _with_apart(log: LogReport, sight: Sight, chains: Collection[str | None]) -> LogReport:
    ground = Ground(bytes.fromhex(log.chain or ""), None, {})
    for anchor in sight.apart:
        named = anchor.checkpoint
        if named is None or may_be_of(chains, named.chain.hex()):
            continue
        for check in checks.CHECKS:
            problem = check.function(anchor, ground) if check.id == "checkpoint" else None
            if problem is not None:
                log = with_finding(log, finding(check, problem, None, anchor.file))
    return log


def with_pin(
    logs: Sequence[LogReport], sights: Sequence[Sight], pin: Head | None
) -> list[LogReport]:
    """Hold each log against the pinned head; None is a first look (spec §16.2)."""
    chains = {log.chain for log in _whole(logs)}
    return [_with_pin(log, sight, pin, chains) for log, sight in zip(logs, sights, strict=True)]


def _disagree(logs: Sequence[LogReport]) -> bool:
    """Say whether the logs, excerpts aside, do not all end with one record."""
    return len({(log.chain, log.last_seq, log.head) for log in _whole(logs)}) > 1


def may_be_of(chains: Collection[str | None], chain: str) -> bool:
    """Say whether an input is of a chain, or may be: None is a chain that nobody could read."""
    return chain in chains or None in chains


def _whole(logs: Sequence[LogReport]) -> list[LogReport]:
    return [log for log in logs if log.format == VERSION]


def _with_pin(
    log: LogReport, sight: Sight, pin: Head | None, chains: Collection[str | None]
) -> LogReport:
    why = _why_not_pinned(log, sight, pin, chains)
    if pin is None or why:
        if pin is None and log.format == VERSION:
            sentence = "a head that was seen before: this first look was not pinned"
            log = log._replace(not_checked=(sentence, *log.not_checked))
        return with_row(log, "pinned_head", Outcome.NOT_CHECKED, why)
    sighting = Sighting(bytes.fromhex(log.chain or ""), sight.found, sight.reached or 0)
    for check in checks.CHECKS:
        if check.id == "pinned_head":
            problem = check.function(pin, sighting)
            if problem is not None:
                return with_finding(log, finding(check, problem, None, log.path))
    return with_row(log, "pinned_head", Outcome.PASS, "")


def _why_not_pinned(
    log: LogReport, sight: Sight, pin: Head | None, chains: Collection[str | None]
) -> str:
    if pin is None:
        return "no head was pinned before: this is the first look"
    if log.format != VERSION:
        return "an excerpt does not show which record is the last"
    if log.chain is None or log.last_seq is None:
        return "no record"
    if log.chain != pin.chain.hex() and may_be_of(chains, pin.chain.hex()):
        return "the pin is of another chain, which another input may be of"
    begins_at = log.last_seq if log.first_seq is None else log.first_seq
    if log.chain == pin.chain.hex() and begins_at > pin.seq and sight.found is None:
        return "the log begins after the pinned record"
    if sight.reached is None and sight.found is None:
        return "the log was not read to its end"
    return ""


def with_assurance(
    log: LogReport, sight: Sight, pin: Head | None, required: Collection[str]
) -> LogReport:
    """Say how much the verdict on a log rests on, and whether that is enough (spec §16.3)."""
    log = _with_required(_with_words(log, sight, pin), required)
    all_signed = log.signed_to is not None and log.signed_to == log.last_seq
    return _all_signed(log) if all_signed and log.format == VERSION else log


def _with_required(log: LogReport, required: Collection[str]) -> LogReport:
    if not required:
        return log
    if log.verdict is not Verdict.VERIFIED:
        return with_row(log, "required", Outcome.NOT_CHECKED, "the log is not verified")
    for check in checks.CHECKS:
        if check.id == "required":
            problem = check.function(required, log.assurance)
            if problem is not None:
                log = log._replace(assurance=(), signed_to=None, pinned_to=None)
                return with_finding(log, finding(check, problem, None, log.path))
    return with_row(log, "required", Outcome.PASS, "")


def _with_words(log: LogReport, sight: Sight, pin: Head | None) -> LogReport:
    if log.verdict is not Verdict.VERIFIED:
        return log
    held = {row.check.rpartition(".")[2] for row in log.rows if row.outcome is Outcome.PASS}
    seqs = [sight.pinned_to - 1] if sight.pinned_to else []
    seqs += [] if sight.head_at is None else [sight.head_at]
    seqs += [] if pin is None or "pinned_head" not in held else [pin.seq]
    pinned = bool(seqs) or "expected_head" in held
    words = ([PINNED] if pinned else []) + ([SIGNED] if sight.signed_to else [])
    return log._replace(
        assurance=tuple(words or ([WEAKEST] if log.counts.records else [])),
        pinned_to=max(seqs, default=None),
        signed_to=sight.signed_to - 1 if sight.signed_to else None,
    )


def _all_signed(log: LogReport) -> LogReport:
    """Say of a log that a checkpoint covers whole what remains to be believed (spec §10.4)."""
    said = (WHO_SIGNED_IT if one == WHO_MADE_IT else one for one in log.not_checked)
    return log._replace(not_checked=tuple(said))


def _is_pinned(log: LogReport) -> bool:
    return any(row.check == "pinned_head" and row.outcome is Outcome.PASS for row in log.rows)


def move_pin(report: Report, file: str, pin: Head | None) -> str:
    """Move the pin file on to the last record of what was verified, never back (spec §16.2).

    Gives a sentence where that was to be done and could not; it is empty otherwise.
    """
    whole = _whole(report.logs)
    if report.verdict is not Verdict.VERIFIED or not whole or _disagree(whole):
        return ""
    if pin is not None and not all(map(_is_pinned, whole)):
        return ""  # what is pinned stands before what these logs were read from
    log = whole[0]
    if log.last_seq is None or (pin is not None and log.last_seq <= pin.seq):
        return ""
    head = Head(bytes.fromhex(log.chain or ""), log.last_seq, bytes.fromhex(log.head or ""))
    try:
        write_pin(file, head)
    except OSError as error:
        return f"the pin file {file} was not moved on: {error.strerror or error}"
    return ""
