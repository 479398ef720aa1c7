"""A small driver of Chromium for tests: DevTools messages through a pipe, so that no package and no port is needed.

With ``--remote-debugging-pipe`` the browser reads from descriptor 3 and writes to 4: JSON, each message ended by NUL.
"""

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PATIENCE = 60.0
"""Seconds to wait for an answer, on a busy machine."""

# Becomes the browser with the given descriptors as 3 and 4, wherever they were.
_LAUNCH = """
import fcntl, os, sys
reading, writing = (fcntl.fcntl(int(fd), fcntl.F_DUPFD, 10) for fd in sys.argv[1:3])
os.dup2(reading, 3), os.dup2(writing, 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""
_FLAGS = [
    "--headless",
    "--remote-debugging-pipe",
    "--no-sandbox",  # which containers, and root, do not have
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--mute-audio",
]


def found() -> str | None:
    """The browser, if there is one."""
    return os.environ.get("PCPO_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)


@contextlib.contextmanager
def started() -> Generator["Browser"]:
    """A browser of its own, with nothing remembered. Without one, the test is skipped, and says so."""
    path = found()
    if path is None:
        pytest.skip("no Chromium: the report page was not opened in a browser (make setup-browser installs one)")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        flags = [*_FLAGS, f"--user-data-dir={home}", "about:blank"]
        process = subprocess.Popen(
            [sys.executable, "-S", "-c", _LAUNCH, str(theirs_in), str(theirs_out), path, *flags],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": home},
        )
        os.close(theirs_in)
        os.close(theirs_out)
        try:
            yield Browser(ours_in, ours_out)
        finally:
            os.close(ours_out)  # which ends it
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            os.close(ours_in)


class Browser:
    """Sends messages and waits for answers; what else comes is kept as events."""

    def __init__(self, reading: int, writing: int) -> None:
        self.reading, self.writing = reading, writing
        self.count = 0
        self.buffer = b""
        self.events: list[dict[str, Any]] = []

    def send(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """The answer to one message."""
        self.count += 1
        message = {"id": self.count, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self.writing, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + PATIENCE
        while True:
            answer = self._receive(until)
            if answer is None:
                raise TimeoutError(f"the browser did not answer {method} within {PATIENCE:g} s")
            if answer.get("id") == self.count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def _receive(self, until: float) -> dict[str, Any] | None:
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.reading], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                return None
            chunk = os.read(self.reading, 1 << 20)
            if not chunk:
                raise ConnectionError("the browser has ended")
            self.buffer += chunk
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def open(self, path: Path, width: int = 1280, height: int = 900, **media: str) -> "Tab":
        """A tab with a file in it, loaded and drawn."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = Tab(self, session, target)
        for domain in ("Page", "Runtime", "Log", "Network"):
            tab.send(f"{domain}.enable")
        tab.resize(width, height)
        tab.emulate(**media)
        tab.send("Page.navigate", url=path.as_uri())
        tab.until("document.readyState === 'complete' && location.protocol === 'file:'")
        return tab


class Tab:
    """One page."""

    def __init__(self, browser: Browser, session: str, target: str) -> None:
        self.browser, self.session, self.target = browser, session, target

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """The answer to one message to this page."""
        return self.browser.send(method, self.session, **params)

    def __call__(self, expression: str) -> Any:
        """The value of an expression of JavaScript."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def until(self, condition: str) -> None:
        """Waits for an expression to be true."""
        until = time.monotonic() + PATIENCE
        while not self(condition):
            if time.monotonic() > until:
                raise TimeoutError(f"never true: {condition}")
            time.sleep(0.02)

    def resize(self, width: int, height: int, mobile: bool = False) -> None:
        """The size of the window."""
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile
        )  # fmt: skip
        self.frame()

    def emulate(self, medium: str = "", **features: str) -> None:
        """What ``@media`` asks for: ``emulate(prefers_color_scheme="dark")``."""
        listed = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.send("Emulation.setEmulatedMedia", media=medium, features=listed)

    def frame(self) -> None:
        """Waits until what was asked for has been drawn."""
        self("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """``Moved``, ``Pressed``, ``Released`` or ``Wheel``."""
        self.send("Input.dispatchMouseEvent", type=f"mouse{kind}", x=x, y=y, **more)

    def press(self, key: str, **more: Any) -> None:
        """A key, down and up."""
        text = {"text": key} if len(key) == 1 else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, **text, **more)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, **more)

    def complaints(self) -> list[str]:
        """Everything that the console would show as an error or a warning, and every exception."""
        self.frame()
        found: list[str] = []
        for event in self.browser.events:
            if event.get("sessionId") != self.session:
                continue
            said = event.get("params", {})
            match event["method"]:
                case "Runtime.exceptionThrown":
                    found.append(str(said["exceptionDetails"]))
                case "Runtime.consoleAPICalled" if said["type"] in {"error", "warning", "assert"}:
                    found.append(str(said["args"]))
                case "Log.entryAdded" if said["entry"]["level"] in {"error", "warning"}:
                    found.append(str(said["entry"]["text"]))
                case _:
                    pass
        return found

    def fetched(self) -> list[str]:
        """The addresses that the page asked for, itself among them."""
        sent = [event for event in self.browser.events if event.get("sessionId") == self.session]
        return [e["params"]["request"]["url"] for e in sent if e["method"] == "Network.requestWillBeSent"]

    def screenshot(self, path: Path, whole: bool = True) -> Path:
        """A PNG of the page, or of what is seen of it."""
        answer = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole, **self._clip(whole))
        path.write_bytes(base64.b64decode(answer["data"]))
        return path

    def _clip(self, whole: bool) -> dict[str, Any]:
        if not whole:
            return {}
        size = self.send("Page.getLayoutMetrics")["cssContentSize"]
        return {"clip": {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 12_000), "scale": 1}}

    def pdf(self, path: Path) -> Path:
        """The page as it is printed."""
        path.write_bytes(base64.b64decode(self.send("Page.printToPDF", printBackground=True)["data"]))
        return path

    def close(self) -> None:
        """Closes it."""
        self.browser.send("Target.closeTarget", targetId=self.target)
