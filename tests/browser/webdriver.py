"""A Chromium of its own, driven over the WebDriver protocol: JSON over HTTP and nothing else."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
CHROMEDRIVER = shutil.which("chromedriver")
ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1200,1600",
    "about:blank",
)
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class DriverFailed(Exception):
    """The browser refused a command; the message is its own."""


class Browser:
    """One browser with a fresh profile; a context manager that ends it and removes the profile."""

    def __init__(self) -> None:
        """Start chromedriver on a port of its choice, and a session."""
        assert CHROMIUM is not None
        assert CHROMEDRIVER is not None
        self._profile = tempfile.mkdtemp(prefix="cardchain-browser-")
        self._process = subprocess.Popen(
            [CHROMEDRIVER, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        try:
            self._base = f"http://127.0.0.1:{self._port()}"
            self._session = ""
            arguments = [*ARGUMENTS, f"--user-data-dir={self._profile}"]
            options = {"binary": CHROMIUM, "args": arguments}
            wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"performance": "ALL"}}
            made = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
            self._session = f"/session/{made['sessionId']}"
            self._call("POST", f"{self._session}/timeouts", {"script": 120_000})
        except BaseException:
            self.close()
            raise

    def _port(self) -> int:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            found = re.search(r"on port (\d+)", line)
            if found and "successfully" in line:
                return int(found[1])
        raise DriverFailed("chromedriver ended before it was ready")

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End session, browser and driver."""
        if getattr(self, "_session", ""):
            with contextlib.suppress(DriverFailed, OSError):
                self._call("DELETE", self._session)
        self._process.terminate()
        self._process.wait(timeout=20)
        if self._process.stdout is not None:
            self._process.stdout.close()
        shutil.rmtree(self._profile, ignore_errors=True)

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if method != "POST" else json.dumps(body or {}).encode()
        request = urllib.request.Request(self._base + path, data=data, method=method)
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=180) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            with error:
                raise DriverFailed(json.load(error)["value"]["message"]) from None

    def open(self, path: Path) -> None:
        """Load a file by its `file://` address."""
        self._call("POST", f"{self._session}/url", {"url": path.as_uri()})

    def run(self, script: str, *arguments: Any) -> Any:
        """Give what the body of a function returns; a promise is waited for."""
        body = {"script": script, "args": list(arguments)}
        return self._call("POST", f"{self._session}/execute/sync", body)

    def keys(self, selector: str, text: str) -> None:
        """Type into an element, or hand a file input the paths of its files."""
        body = {"using": "css selector", "value": selector}
        found = self._call("POST", f"{self._session}/element", body)[_ELEMENT]
        self._call("POST", f"{self._session}/element/{found}/value", {"text": text})

    def press(self, *keys: str) -> None:
        """Press and release keys one after the other, wherever the focus is."""
        strokes = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        actions = [{"type": "key", "id": "keyboard", "actions": strokes}]
        self._call("POST", f"{self._session}/actions", {"actions": actions})

    def cdp(self, command: str, parameters: dict[str, Any]) -> Any:
        """Give the answer to a command of the DevTools protocol."""
        body = {"cmd": command, "params": parameters}
        return self._call("POST", f"{self._session}/goog/cdp/execute", body)

    def screenshot(self) -> str:
        """Give a PNG of the window in base64."""
        return str(self._call("GET", f"{self._session}/screenshot"))

    def requests(self) -> list[str]:
        """Give the addresses that were asked for since the last call."""
        entries = self._call("POST", f"{self._session}/se/log", {"type": "performance"})
        messages = [json.loads(entry["message"])["message"] for entry in entries]
        return [
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        ]
