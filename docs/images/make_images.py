"""Makes the pictures of the documents from real runs: `python docs/images/make_images.py`.

`verdicts.svg` is what `cardchain-verify` prints on a terminal, with its colours, for a log of the
fixtures and for a copy in which an amount was changed. `report.png` and `report-card.png` are two
views of a report page in Chromium. The logs are synthetic and fixed, so the pictures change only
with the product.
"""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.sax.saxutils import escape

HERE = Path(__file__).resolve().parent
FIXTURES = HERE.parents[1] / "fixtures"
BIN = Path(sys.executable).parent
COMMAND = "cardchain-verify {} --key key.json"
SHOWN_FROM = re.compile(r"finding 1 of|\d+ of \d+ envelopes")  # what is above is left out
SHOWN_UNTIL = re.compile(r"\s+next: |[A-Z ]+$")
COLOURS = {"32": "#7ee2a8", "31": "#ff8f88"}  # the two that the verifier uses
WIDTH, LINE, CHARACTER, MARGIN = 92, 18, 8.0, 16
CARD = "4a5ce4cd6a3899ba5c39605c941142a354cdaba7f2dc43aaaae229c955bf4fb0"
VIEWS = {"report.png": ("", 860, 418), "report-card.png": (f"#card-{CARD}", 860, 1172)}
"""The place in the page, and the size of the window in CSS pixels."""
FRAME = """
<iframe src="{}" style="position: fixed; inset: 0; width: 100%; height: 100%; border: 0"
  onload="this.onload = null; setTimeout(() => (this.src = this.src), 200)"></iframe>
"""
"""Goes to the place a second time, when the page knows how long it is."""


def main() -> None:
    """Make every picture anew, and say how large they are."""
    (HERE / "verdicts.svg").write_text(verdicts(), "utf-8")
    report(HERE)
    for file in sorted([*HERE.glob("*.svg"), *HERE.glob("*.png")]):
        print(file.name, file.stat().st_size, "bytes")


def verdicts() -> str:
    """Give the SVG of two runs of the verifier."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log = (FIXTURES / "cases" / "intact_life" / "log.cbor").read_bytes()
        (folder / "log.cbor").write_bytes(log)
        (folder / "tampered.cbor").write_bytes(log.replace(b'"199.00"', b'"999.00"', 1))
        (folder / "key.json").write_bytes((FIXTURES / "keys" / "a.json").read_bytes())
        (folder / "key.json").chmod(0o600)
        lines: list[str] = []
        for file in ("log.cbor", "tampered.cbor"):
            command = COMMAND.format(file)
            lines += [f"$ {command}", *_excerpt(_on_a_terminal(command, folder)), ""]
    return _svg(lines[:-1])


def _on_a_terminal(command: str, folder: Path) -> list[str]:
    """Run a command with a terminal as its output, and give the lines with their colours."""
    ours, theirs = pty.openpty()
    program, *arguments = command.split()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": str(WIDTH)}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen(
        [str(BIN / program), *arguments],
        cwd=folder,
        env=environment,
        stdout=theirs,
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs)
    printed = b""
    try:
        while part := os.read(ours, 65536):
            printed += part
    except OSError:  # Linux says so when the other end is closed
        pass
    os.close(ours)
    process.wait()
    return printed.decode().splitlines()


def _excerpt(lines: list[str]) -> list[str]:
    """Give the findings and the last lines, with `...` for what is left out."""
    kept: list[str] = []
    showing = False
    for line in lines:
        if SHOWN_FROM.match(line):
            showing = True
        if showing:
            kept.append(line)
        elif kept[-1:] != ["..."]:
            kept.append("...")
        if SHOWN_UNTIL.match(_plain(line)):
            showing = False
    return kept


def _plain(line: str) -> str:
    return re.sub(r"\x1b\[[\d;]*m", "", line)


def _svg(lines: list[str]) -> str:
    """Draw lines of a terminal."""
    height = 2 * MARGIN + LINE * len(lines)
    rows = [
        f'<text x="{MARGIN}" y="{y}" {_look(line)}>{escape(_plain(line))}</text>'
        for y, line in zip(range(MARGIN + 13, height, LINE), lines, strict=False)
        if line
    ]
    width = round(2 * MARGIN + WIDTH * CHARACTER)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
            f' viewBox="0 0 {width} {height}" font-family="ui-monospace, DejaVu Sans Mono,'
            ' Menlo, Consolas, monospace" font-size="13" xml:space="preserve">',
            f'<rect width="{width}" height="{height}" rx="6" fill="#14181c"/>',
            *rows,
            "</svg>\n",
        ]
    )


def _look(line: str) -> str:
    """Give the attributes for the colour of a line; a verdict is bold, a command white."""
    if found := re.search(r"\x1b\[(?:\d+;)*(3[12])m", line):
        return f'fill="{COLOURS[found[1]]}" font-weight="bold"'
    return f'fill="{"#ffffff" if line.startswith("$ ") else "#c9d1d9"}"'


def report(target: Path) -> None:
    """Take the pictures of a report page about one card, in the folder `target`."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("make_images: no Chromium found; install it, and run this again")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(FIXTURES / "cases" / "intact_every_state" / "log.cbor", folder / "export.cbor")
        shutil.copy(FIXTURES / "keys" / "a.json", folder / "key.json")
        (folder / "key.json").chmod(0o600)
        made = [BIN / "cardchain", "report", "export.cbor", "--key", "key.json"]
        chosen = ["--card", CARD[:12], "-o", "report.html"]
        environment = {**os.environ, "CARDCHAIN_STATE": str(folder / "state")}
        subprocess.run([*made, *chosen], cwd=folder, env=environment, check=True)
        browser = [chromium, "--headless=new", "--no-sandbox", "--disable-gpu"]
        browser += [
            "--hide-scrollbars",
            "--virtual-time-budget=2000",
            f"--user-data-dir={folder / 'profile'}",
        ]
        for file, (place, width, height) in VIEWS.items():
            view = [f"--window-size={width},{height}", f"--screenshot={target / file}"]
            frame = folder / "frame.html"  # the window itself does not scroll to a place
            frame.write_text(FRAME.format(f"report.html{place}"))
            subprocess.run([*browser, *view, frame.as_uri()], check=True, capture_output=True)


if __name__ == "__main__":
    main()
