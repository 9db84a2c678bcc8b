"""A log of 100,000 records is verified, and the page stays awake meanwhile."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from cases import PAGE
from webdriver import Browser

RECORDS = 100_000
LONGEST_MS = 200


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Give an export and its key file, made by the generator of the benchmarks."""
    folder = PAGE.parents[2] / "tests" / "benchmarks"
    spec = importlib.util.spec_from_file_location("generator_of_logs", folder / "generator.py")
    assert spec is not None
    assert spec.loader is not None
    generator = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = generator
    spec.loader.exec_module(generator)
    made = tmp_path_factory.mktemp("large")
    log, key = made / "log.cbor", made / "key.json"
    with log.open("wb") as stream:
        for record in generator.Chain().records(RECORDS):
            stream.write(record)
    key.write_bytes(generator.key_file())
    return log, key


VERIFY = """
const tasks = [];
const observer = new PerformanceObserver((list) => {
  tasks.push(...list.getEntries().map((entry) => entry.duration));
});
observer.observe({ type: 'longtask', buffered: false });
const start = performance.now();
return cardchain.run().then(async (report) => {
  const seconds = (performance.now() - start) / 1000;
  await new Promise((give) => setTimeout(give, 300));
  observer.disconnect();
  return { verdict: report.verdict, records: report.logs[0].counts.records, seconds, tasks };
});
"""


def test_a_large_log_is_verified_and_the_page_stays_awake(
    page: Browser, large: tuple[Path, Path], record_property: pytest.RecordProperty
) -> None:
    log, key = large
    page.keys("#logs", str(log))
    page.keys("#keys", str(key))
    found = page.run(VERIFY)
    record_property("seconds", found["seconds"])
    print(f"{RECORDS} records in {found['seconds']:.1f} s, long tasks: {found['tasks']}")
    assert (found["verdict"], found["records"]) == ("VERIFIED", RECORDS)
    assert [task for task in found["tasks"] if task > LONGEST_MS] == []
    shown = page.run("return document.getElementById('found').textContent")
    assert shown.startswith("Cards 1 to 50 of ")
