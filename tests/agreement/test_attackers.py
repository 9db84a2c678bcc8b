"""The table "Who sees what" of docs/threat-model.md, acted out cell by cell.

The logs are made by the maker of the fixtures, which shares no code with the verifier.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import cbor2
import pytest

from verifier import verify
from verifier.report import Report

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "fixtures"))

from attacks.pins import pin  # noqa: E402
from maker.cards import AGAIN, OTHER, Story  # noqa: E402
from maker.case import pretty  # noqa: E402
from maker.cbor import encode  # noqa: E402
from maker.chain import (  # noqa: E402
    KEY_A,
    KEY_B,
    KEY_OTHER_CHAIN,
    START,
    Key,
    Log,
    Record,
    hmac_sha256,
    protected_header,
    rekey_proof,
)
from maker.notes import SIGNER, SIGNER_OTHER_CHAIN, checkpoint  # noqa: E402

READERS = ("live", "export", "pin", "delivered", "own", "nothing")
SIGNED = (6, 12)  # the sizes of the checkpoints that stand in the ledger
OWN = 9  # the size of the checkpoint that an auditor kept; the pinned record is its last
PREV, CARD, BODY = 3, 6, 7  # places in a payload (spec §3.2)
CONFIGURED = {"by": "user:operator-1", "vkey": SIGNER.vkey}


def story(clock: int = START, *, channel: str = "cli", end: str = "reject") -> Story:
    """Give a log of 12 records: a card that ran, one approved, one decided at 10, one open."""
    log = Story(clock=clock)
    first = log.issue(grant_ttl=900)
    log.resolve(first, body={"channel": channel})
    log.dispatch(first)
    log.settle(first)
    log.resolve(log.issue(task=AGAIN, tool_name="mail.send"))
    log.append("configured", CONFIGURED)
    log.append("configured", CONFIGURED | {"by": "user:operator-2"})
    log.resolve(log.issue(task=OTHER, tool_name="page.publish"), end)
    log.issue(task=OTHER | {"step": "open"})
    return log


TRUE = story()


@dataclass(frozen=True)
class Shown:
    """What an attacker puts before a reader, and of which log the reader remembers something."""

    logs: tuple[bytes, ...]
    notes: tuple[dict[int, str], ...]
    remembered: Log = field(default_factory=lambda: TRUE)
    keys: tuple[Key, ...] = (KEY_A,)


def shown(log: Log | Iterable[Record], notes: dict[int, str] | None = None, **more: Any) -> Shown:
    """Give one log, by default with the checkpoints that the signer made of the true one."""
    records = log.records if isinstance(log, Log) else log
    data = b"".join(record.data for record in records)
    return Shown((data,), (signed(TRUE) if notes is None else notes,), **more)


def signed(log: Log, *sizes: int) -> dict[int, str]:
    return {size: checkpoint(log, size) for size in sizes or SIGNED}


def edited(record: Record, edit: Callable[[list[Any]], object]) -> Record:
    """Give a record with its payload edited and its tag as it was."""
    fields = cbor2.loads(record.payload)
    edit(fields)
    return replace(record, payload=encode(fields))


def by_another_channel(fields: list[Any]) -> None:
    fields[BODY]["channel"] = "web"


def tagged(record: Record, key: Key) -> Record:
    protected = protected_header(key.kid)
    made = encode(["MAC0", protected, b"", record.payload])
    return replace(record, protected=protected, tag=hmac_sha256(key.secret, made))


def relinked(records: Iterable[Record], key: Key | None = None, start: int = 1) -> list[Record]:
    """Give the records with their links made anew, and their tags too where there is a key."""
    made: list[Record] = []
    for index, record in enumerate(records):
        if index >= start:
            previous = made[-1].digest
            record = edited(record, lambda fields, prev=previous: fields.__setitem__(PREV, prev))
            record = tagged(record, key) if key else record
        made.append(record)
    return made


def log_of(records: list[Record]) -> Log:
    return Log(records=records)


def true_with(index: int, record: Record) -> list[Record]:
    return [*TRUE.records[:index], record, *TRUE.records[index + 1 :]]


# What attackers do; the name stands in the table.


def edits_inside() -> Shown:
    return shown(true_with(2, edited(TRUE.records[2], by_another_channel)))


def removes_inside() -> Shown:
    return shown(TRUE.records[:3] + TRUE.records[4:])


def moves_inside() -> Shown:
    swapped = [TRUE.records[4], TRUE.records[3]]
    return shown(TRUE.records[:3] + swapped + TRUE.records[5:])


def repeats_inside() -> Shown:
    return shown(TRUE.records[:5] + TRUE.records[4:])


def rewrites_without_a_key() -> Shown:
    return shown(relinked(true_with(2, edited(TRUE.records[2], by_another_channel)), start=3))


def cuts_the_tail() -> Shown:
    return shown(TRUE.records[:8])


def restores_an_older_copy() -> Shown:
    return shown(TRUE.records[:6], signed(TRUE, 6))


def rolls_back_and_goes_on() -> Shown:
    log = log_of(TRUE.records[:6])
    log.clock = TRUE.last.at
    while len(log.records) < 12:
        log.append("configured", CONFIGURED)
    return shown(log, signed(log))


def deletes_the_checkpoints() -> Shown:
    return shown(TRUE, {})


def shows_a_fresh_ledger() -> Shown:
    log = Story(KEY_OTHER_CHAIN)
    while len(log.records) < 12:
        log.append("configured", CONFIGURED)
    return shown(log, {12: checkpoint(log, 12, SIGNER_OTHER_CHAIN)})


def splices_in_another_ledger() -> Shown:
    other = Story(KEY_OTHER_CHAIN)
    while len(other.records) < 12:
        other.append("configured", CONFIGURED)
    return shown(true_with(7, other.records[7]), keys=(KEY_A, KEY_OTHER_CHAIN))


def retags_under_another_ledger() -> Shown:
    """The key of another ledger stands in the same ring, and its holder uses it here."""
    made = [*TRUE.records[:7], edited(TRUE.records[7], lambda fields: fields[BODY].update(by="me"))]
    made[7] = tagged(made[7], KEY_OTHER_CHAIN)
    made = relinked([*made, *TRUE.records[8:]], KEY_OTHER_CHAIN, start=8)
    return shown(made, keys=(KEY_A, KEY_OTHER_CHAIN))


def rotates_to_a_key_of_its_own() -> Shown:
    log = log_of(TRUE.records[:9])
    log.clock = TRUE.last.at
    body = {"kid": KEY_B.kid, "proof": rekey_proof(log, KEY_B)}
    log.append("rekeyed", body, secret=KEY_B.secret)
    log.key = KEY_B
    while len(log.records) < 12:
        log.append("configured", CONFIGURED)
    return shown(log)


def launders_through_an_unknown_kid() -> Shown:
    made = true_with(2, tagged(edited(TRUE.records[2], by_another_channel), KEY_B))
    return shown(relinked(made, KEY_B, start=3))


def signs_a_fake() -> Shown:
    fake = log_of(relinked(true_with(2, edited(TRUE.records[2], by_another_channel)), start=3))
    return shown(fake, signed(fake))


def rewrites_with_the_secret() -> Shown:
    return shown(story(channel="web"))


def appends_with_the_secret() -> Shown:
    log = story()
    log.innocent()
    return shown(log)


def rewrites_with_all_keys() -> Shown:
    log = story(channel="web")
    return shown(log, signed(log))


def rewrites_the_end_with_all_keys() -> Shown:
    log = story(end="approve")
    return shown(log, signed(log))


def shows_each_reader_a_view() -> Shown:
    log = story(channel="web")
    return shown(log, signed(log), remembered=log)


def shows_two_views_that_meet() -> Shown:
    mine, yours = shown(TRUE), rewrites_with_all_keys()
    return Shown(mine.logs + yours.logs, mine.notes + yours.notes)


def erases_an_opening() -> Shown:
    return shown(true_with(2, TRUE.records[2].without_openings()))


def changes_an_opening() -> Shown:
    record = TRUE.records[1]
    return shown(true_with(1, replace(record, openings=record.openings.replace(b"199", b"999"))))


def adds_an_opening() -> Shown:
    openings = encode(cbor2.loads(TRUE.records[1].openings) | {"note": b"yes"})
    return shown(true_with(1, replace(TRUE.records[1], openings=openings)))


def spells_a_record_anew() -> Shown:
    """A length takes two bytes where one is enough."""
    first, data = TRUE.records[0].data, TRUE.data
    return Shown((b"\xd1\x84\x58\x0d" + first[3:] + data[len(first) :],), (signed(TRUE),))


def changes_a_link() -> Shown:
    return shown(true_with(4, edited(TRUE.records[4], lambda f: f.__setitem__(PREV, bytes(32)))))


def cuts_inside_the_last_record() -> Shown:
    return Shown((TRUE.data[:-1],), (signed(TRUE),))


def replays_a_decision() -> Shown:
    """The approval of the first card is put under the hash of the open one, without a key."""
    approval, card = TRUE.records[2], TRUE.last

    def replay(fields: list[Any]) -> None:
        fields[2], fields[CARD] = 12, cbor2.loads(card.payload)[CARD]
        fields[4] = TRUE.last.at + 1
        fields[BODY]["of"] = 11

    replayed = replace(edited(approval, replay), seq=12, openings=card.openings)
    return shown(relinked([*TRUE.records, replayed], start=12))


def sets_the_clock() -> Shown:
    log = story(START - 3_600_000)
    return shown(log, signed(log), remembered=log)


def never_records_an_event() -> Shown:
    log = log_of(TRUE.records[:11])
    notes = signed(log, 6, 11)
    return shown(log, notes, remembered=log)


ATTACKS: dict[str, Callable[[], Shown]] = {
    attack.__name__: attack
    for attack in (
        edits_inside,
        removes_inside,
        moves_inside,
        repeats_inside,
        changes_a_link,
        rewrites_without_a_key,
        spells_a_record_anew,
        changes_an_opening,
        adds_an_opening,
        erases_an_opening,
        replays_a_decision,
        splices_in_another_ledger,
        retags_under_another_ledger,
        rotates_to_a_key_of_its_own,
        launders_through_an_unknown_kid,
        cuts_inside_the_last_record,
        cuts_the_tail,
        restores_an_older_copy,
        rolls_back_and_goes_on,
        deletes_the_checkpoints,
        shows_a_fresh_ledger,
        signs_a_fake,
        rewrites_with_the_secret,
        appends_with_the_secret,
        rewrites_with_all_keys,
        rewrites_the_end_with_all_keys,
        shows_each_reader_a_view,
        shows_two_views_that_meet,
        sets_the_clock,
        never_records_an_event,
    )
}


def judged(folder: Path, attack: Shown, reader: str) -> Report:
    """Give what the verifier says to a reader who holds no more than the column says."""
    exports, ledgers = written(folder, attack)
    keys = [folder / f"{number}.json" for number, _ in enumerate(attack.keys)]
    for path, key in zip(keys, attack.keys, strict=True):
        path.write_bytes(pretty(key.file()))
        path.chmod(0o600)
    secret = [str(path) for path in keys]
    vkeys = [put(folder / "signer.vkey", SIGNER.file())]
    if reader == "live":
        return verify(ledgers, secret, expect_head=attack.remembered.last.digest, environ={})
    if reader == "export":
        return verify(exports, secret, environ={})
    if reader == "pin":
        seen = attack.remembered.records[OWN - 1]
        kept = put(folder / "pin.json", pretty(pin(seen)))
        return verify(exports, secret, pin_file=kept, environ={})
    if reader == "delivered":
        return verify(ledgers, vkeys=vkeys, environ={})
    if reader == "own":
        kept = put(folder / "kept.note", checkpoint(attack.remembered, OWN).encode())
        return verify(ledgers, vkeys=vkeys, checkpoint_files=[kept], environ={})
    assert reader == "nothing"
    return verify(exports, environ={})


def put(path: Path, data: bytes) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return str(path)


def written(folder: Path, attack: Shown) -> tuple[list[str], list[str]]:
    """Write each log as an export and as a ledger directory with its checkpoints."""
    exports, ledgers = [], []
    for number, (data, notes) in enumerate(zip(attack.logs, attack.notes, strict=True)):
        ledger = folder / f"ledger-{number}"
        put(ledger / "segments" / f"{0:020d}.cbor", data)
        for size, text in notes.items():
            put(ledger / "checkpoints" / f"{size:020d}.note", text.encode())
        exports.append(put(folder / f"export-{number}.cbor", data))
        ledgers.append(str(ledger))
    return exports, ledgers


def findings(report: Report) -> set[str]:
    return {finding.check for log in report.logs for finding in log.findings}


def rows() -> dict[str, dict[str, str]]:
    """The table: the attack that shows a row to what each reader sees."""
    page = (ROOT / "docs" / "threat-model.md").read_text("utf-8")
    section = page.split("## Who sees what")[1].split("\n## ")[0]
    lines = re.findall(r"^\| (.*) \|$", section, re.M)
    cells = [line.split(" | ") for line in lines if line.endswith("`")]
    return {row[-1].strip("`"): dict(zip(READERS, row[1:-1], strict=True)) for row in cells}


UNSEEN = {
    "live": ("VERIFIED", set[str]()),
    "export": ("VERIFIED", set[str]()),
    "pin": ("VERIFIED", set[str]()),
    "delivered": ("VERIFIED", set[str]()),
    "own": ("VERIFIED", set[str]()),
    "nothing": ("CANNOT VERIFY", {"key_missing"}),
}
"""What each reader is told of the true log."""


def promised(cell: str, reader: str) -> tuple[str, set[str]]:
    """Give the verdict and the findings that a cell promises."""
    letter, *checks = cell.split()
    if letter == "U":
        assert not checks
        return UNSEEN[reader]
    return {"D": "BROKEN", "n": "CANNOT VERIFY"}[letter], {check.strip("`") for check in checks}


@pytest.mark.parametrize("reader", READERS)
def test_nothing_is_found_in_the_true_log(tmp_path: Path, reader: str) -> None:
    report = judged(tmp_path, shown(TRUE), reader)
    assert (report.verdict.value, findings(report)) == UNSEEN[reader]


def test_every_row_is_acted_out() -> None:
    assert list(rows()) == list(ATTACKS)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("attack", ATTACKS)
def test_attack_is_seen_as_the_table_says(tmp_path: Path, attack: str, reader: str) -> None:
    verdict, found = promised(rows()[attack][reader], reader)
    report = judged(tmp_path, ATTACKS[attack](), reader)
    beside = {"key_missing"} if verdict == "BROKEN" else set()
    assert (report.verdict.value, findings(report) - beside) == (verdict, found)
