from __future__ import annotations

from trees import leaf

from verifier.lookout import Lookout

DIGESTS = [leaf(number) for number in range(6)]


def test_a_digest_is_found_by_its_place_and_a_place_by_its_digest() -> None:
    lookout = Lookout(DIGESTS[4], 2)
    lookout.see(0, DIGESTS[:2])
    assert (lookout.head_at, lookout.found) == (None, None)
    lookout.see(2, DIGESTS[2:])
    assert (lookout.head_at, lookout.found) == (4, DIGESTS[2])
    assert lookout.digests is None


def test_only_sound_records_are_kept() -> None:
    lookout = Lookout(DIGESTS[1], 1, keep=True)
    lookout.see(0, DIGESTS[:1])
    lookout.see(1, DIGESTS[1:2], sound=False)
    assert lookout.digests == {0: DIGESTS[0]}
    assert (lookout.head_at, lookout.found) == (1, DIGESTS[1])


def test_without_anything_to_look_for_nothing_is_found() -> None:
    lookout = Lookout()
    lookout.see(0, DIGESTS)
    assert (lookout.head_at, lookout.found, lookout.digests) == (None, None, None)
