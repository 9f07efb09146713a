"""A headless Chromium, driven through a pipe by the DevTools protocol. Needs no package.

$SMEMKERN_BROWSER names the browser, as .ci/run does; without it one of BROWSERS is looked for.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-headless-shell", "chromium-browser", "google-chrome", "chrome")
_OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run")


def browser() -> str:
    """The browser's path; skips the test if there is none."""
    named = os.environ.get("SMEMKERN_BROWSER")
    found = next(filter(None, map(shutil.which, [named] if named else BROWSERS)), None)
    if found is None and named:
        pytest.fail(f"SMEMKERN_BROWSER names {named}, which is not there")
    if found is None:
        pytest.skip(f"no browser here: none of {', '.join(BROWSERS)} is on PATH")
    return found


class Tab:
    """One page. Messages and exceptions of the page are kept in .console."""

    def __init__(self, send: int, receive: int) -> None:
        self._send, self._receive = send, receive
        self._last, self._rest = 0, b""
        self._session: str | None = None
        self.console: list[str] = []
        self.requests: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, timeout: float = 60, **params: Any) -> dict[str, Any]:
        self._last += 1
        message = {"id": self._last, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._send, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + timeout
        while True:
            answer = self._next(end - time.monotonic())
            if answer.get("id") == self._last:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self._note(answer)

    def _next(self, seconds: float) -> dict[str, Any]:
        end = time.monotonic() + seconds
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._receive], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise TimeoutError(f"the browser gave no answer; its console: {self.console}")
            more = os.read(self._receive, 1 << 20)
            assert more, f"the browser ended; its console: {self.console}"
            self._rest += more
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def _note(self, event: dict[str, Any]) -> None:
        method, params = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            thrown = details.get("exception", {}).get("description", "")
            self.console.append(f"{details['text']} {thrown}")
        elif method == "Runtime.consoleAPICalled":
            self.console.append(" ".join(str(one.get("value")) for one in params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.console.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def open(self, url: str) -> None:
        """Loads a page anew, also if only the fragment of its address differs."""
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete'")

    def run(self, script: str, timeout: float = 60) -> Any:
        """The value of an expression, awaited if it is a promise."""
        answer = self.call(
            "Runtime.evaluate",
            timeout,
            expression=script,
            awaitPromise=True,
            returnByValue=True,
        )
        details = answer.get("exceptionDetails")
        assert details is None, details["exception"].get("description", details)
        return answer["result"].get("value")

    def until(self, condition: str, timeout: float = 30) -> Any:
        """Waits until an expression is true, and returns its value."""
        end = time.monotonic() + timeout
        while True:
            if value := self.run(condition):
                return value
            if time.monotonic() > end:
                raise TimeoutError(f"{condition} did not become true; console: {self.console}")
            time.sleep(0.02)

    def look(self, width: int, height: int, *, dark: bool = False, reduced: bool = False) -> None:
        """The window's size, and what the visitor prefers."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce" if reduced else "no-preference"},
        ]
        self.call("Emulation.setEmulatedMedia", features=features)

    def picture(self, path: Path) -> None:
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        Path(path).write_bytes(base64.b64decode(data))


@contextlib.contextmanager
def tab() -> Iterator[Tab]:
    """A page of a new browser."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        to_browser, send = os.pipe()
        receive, from_browser = os.pipe()

        def connect() -> None:  # the browser reads descriptor 3 and writes descriptor 4
            os.dup2(os.dup(to_browser), 3)
            os.dup2(os.dup(from_browser), 4)

        process = subprocess.Popen(
            [browser(), *_OPTIONS, "--remote-debugging-pipe", f"--user-data-dir={profile}"],
            preexec_fn=connect,
            pass_fds=(3, 4),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        try:
            yield Tab(send, receive)
        finally:
            process.kill()
            process.wait()
            os.close(send)
            os.close(receive)
