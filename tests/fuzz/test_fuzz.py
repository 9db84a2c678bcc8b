"""What fuzzing found stays found, and a short walk from the seeds breaks no promise."""

from __future__ import annotations

from pathlib import Path

import pytest
import seeds
import targets
from hypothesis import given, settings
from hypothesis import strategies as st

CORPUS = [(name, path) for name in targets.TARGETS for path in seeds.corpus(name)]


def assert_holds(target: str, data: bytes) -> None:
    """Fail where the input breaks a promise of the target."""
    targets.TARGETS[target](data)


@pytest.mark.parametrize(
    ("target", "path"), CORPUS, ids=[f"{name}-{path.name[:12]}" for name, path in CORPUS]
)
def test_the_corpus_breaks_no_promise(target: str, path: Path) -> None:
    assert_holds(target, path.read_bytes())


@pytest.mark.parametrize("target", targets.TARGETS)
def test_the_seeds_break_no_promise(target: str) -> None:
    found = seeds.seeds(target)
    assert found
    for seed in found[:: max(1, len(found) // 100)]:
        assert_holds(target, seed)


@st.composite
def changed(draw: st.DrawFn, inputs: list[bytes]) -> bytes:
    """One of the inputs with a few stretches cut out, put in or doubled."""
    data = draw(st.sampled_from(inputs))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 40)))
        middle = draw(st.binary(max_size=8) | st.just(data[start:end] * 2))
        data = data[:start] + middle + data[end:]
    return data


@pytest.mark.parametrize("target", targets.TARGETS)
def test_changed_seeds_break_no_promise(target: str) -> None:
    @settings(max_examples=150)
    @given(changed(seeds.seeds(target)))
    def holds(data: bytes) -> None:
        assert_holds(target, data)

    holds()
