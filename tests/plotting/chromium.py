"""A headless Chromium for tests, driven by its DevTools protocol over a pipe.

The pipe needs no library: messages are JSON that ends in a zero byte, read from descriptor 4 and
written to descriptor 3 of the browser.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time

SECONDS = 120  # the longest wait for anything
NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
WANTED = f"needs a browser: none of {', '.join(NAMES)} is installed"

# subprocess cannot choose the child's descriptors, so a child of ours does and becomes Chromium.
LAUNCH = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
os.dup2(ends[0], 3), os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
FLAGS = (
    "--headless=new", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu",
    "--disable-background-networking", "--disable-extensions", "--disable-dev-shm-usage",
    *(["--no-sandbox"] if os.geteuid() == 0 else []),
)  # fmt: skip
KEYS = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Tab": 9, "Escape": 27,
        "Enter": 13, "End": 35}  # fmt: skip
COMPLAINTS = {"Runtime.exceptionThrown", "Log.entryAdded", "Page.javascriptDialogOpening"}


class Browser:
    """One page of a headless Chromium."""

    def __init__(self, profile):
        (to_browser, self._write), (self._read, from_browser) = os.pipe(), os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-c", LAUNCH, str(to_browser), str(from_browser), CHROMIUM,
             *FLAGS, f"--user-data-dir={profile}"],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_browser), os.close(from_browser)
        self._rest, self._number, self._session, self.events = b"", 0, None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self):
        try:
            self._session = None
            self.call("Browser.close")
            self._process.wait(SECONDS)
        finally:
            self._process.kill()
            self._process.wait()
            os.close(self._write), os.close(self._read)

    def call(self, method, **parameters):
        self._number += 1
        session = {"sessionId": self._session} if self._session else {}
        message = {"id": self._number, "method": method, "params": parameters, **session}
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            self.events.append(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def _next(self):
        while b"\0" not in self._rest:
            assert select.select([self._read], [], [], SECONDS)[0], "Chromium does not answer"
            read = os.read(self._read, 1 << 20)
            assert read, "Chromium has ended"
            self._rest += read
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def open(self, address, width=1280, height=860, scheme="light"):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)  # fmt: skip
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=features)
        self.call("Page.navigate", url="about:blank")
        self.events.clear()
        self.call("Page.navigate", url=address)
        self.wait("document.readyState === 'complete' && location.protocol === 'file:'")

    def run(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def wait(self, expression):
        end = time.monotonic() + SECONDS
        while not self.run(expression):
            assert time.monotonic() < end, f"never came: {expression}"
            time.sleep(0.02)

    def problems(self):
        """What the page has complained of since it was opened, or asked the network for."""
        self.run("0")  # what happened before has been reported when this is answered
        found = []
        for event in self.events:
            method, parameters = event.get("method"), event.get("params", {})
            if method in COMPLAINTS:
                found.append(event)
            elif method == "Runtime.consoleAPICalled" and parameters["type"] != "log":
                found.append(event)
            elif method == "Network.requestWillBeSent":
                address = parameters["request"]["url"]
                found += [] if address.startswith(("file:", "data:")) else [address]
        return found

    def press(self, *keys):
        for key in keys:
            code = KEYS.get(key, ord(key[0].upper()))
            text = {} if key in KEYS else {"text": key}
            parameters = {"key": key, "windowsVirtualKeyCode": code}
            self.call("Input.dispatchKeyEvent", type="keyDown", **parameters, **text)
            self.call("Input.dispatchKeyEvent", type="keyUp", **parameters)

    def box(self, selector):
        """Where an element is on the screen."""
        element = f"document.querySelector({json.dumps(selector)})"
        return json.loads(self.run(f"JSON.stringify({element}.getBoundingClientRect())"))

    def point(self, selector, across=0.5, down=0.5):
        box = self.box(selector)
        x, y = box["x"] + across * box["width"], box["y"] + down * box["height"]
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        return x, y

    def click(self, selector):
        x, y = self.point(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def choose(self, field, value):
        """Chooses an option of the field with this id."""
        chosen = f"field.value = {json.dumps(value)}; field.dispatchEvent(new Event('change'));"
        self.run(f"{{ const field = document.getElementById({json.dumps(field)}); {chosen} }}")

    def text(self, selector):
        return self.run(f"document.querySelector({json.dumps(selector)})?.textContent")

    def every(self, selector, expression):
        """The values of an expression in `one` for all elements that are selected."""
        found = f"document.querySelectorAll({json.dumps(selector)})"
        return self.run(f"Array.from({found}, (one) => {expression})")

    def texts(self, selector):
        return self.every(selector, "one.textContent")

    def screenshot(self):
        """What the window shows, as the bytes of a PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot")["data"])
