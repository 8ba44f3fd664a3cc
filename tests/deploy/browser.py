# SPDX-License-Identifier: Apache-2.0
"""Chromium without a window, through its DevTools protocol over a pipe
(https://chromedevtools.github.io/devtools-protocol), so that no package is needed."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

DEADLINE_SECONDS = 30


class Browser:
    """One page of a headless Chromium. Collects errors of the console, exceptions,
    requests and their bytes."""

    def __init__(self, program="chromium"):
        self.profile = tempfile.mkdtemp()
        commands, self.commands = os.pipe()
        self.answers, answers = os.pipe()

        def connect():
            # Through numbers that neither pipe has, so that no end is closed early.
            read, write = os.dup(commands), os.dup(answers)
            os.dup2(read, 3)
            os.dup2(write, 4)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu",
             "--remote-debugging-pipe", f"--user-data-dir={self.profile}",
             "--no-first-run", "--hide-scrollbars", "about:blank"],
            pass_fds=(3, 4, commands, answers), preexec_fn=connect,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(commands)
        os.close(answers)
        self.buffer, self.number = b"", 0
        self.errors, self.network_errors = [], []
        self.requests, self.bytes = {}, 0
        self.session = None
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(t for t in targets if t["type"] == "page")
        self.session = self.call("Target.attachToTarget",
                                 {"targetId": page["targetId"], "flatten": True})["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self):
        """Ends the browser and removes its profile."""
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.commands)
        os.close(self.answers)
        shutil.rmtree(self.profile, ignore_errors=True)

    def call(self, method, params=None):
        """Sends a command and returns its result."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params or {}}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + DEADLINE_SECONDS
        while True:
            answer = self._read(deadline)
            if answer is None:
                raise TimeoutError(f"{method}: no answer in {DEADLINE_SECONDS} s")
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def wait(self, seconds):
        """Takes the events of so many seconds."""
        deadline = time.monotonic() + seconds
        while self._read(deadline) is not None:
            pass

    def evaluate(self, script):
        """The value of a JavaScript expression, or of its promise."""
        result = self.call("Runtime.evaluate", {
            "expression": script, "returnByValue": True, "awaitPromise": True})
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"])
        return result["result"].get("value")

    def until(self, script, seconds=DEADLINE_SECONDS):
        """Waits until the expression is true; False: not in time."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.evaluate(script):
                return True
            self.wait(0.1)
        return False

    def open(self, url):
        """Opens the page and waits until it is loaded."""
        self.call("Page.navigate", {"url": url})
        if not self.until("document.readyState === 'complete'"):
            raise TimeoutError(f"{url} is not loaded")

    def look(self, width, dark):
        """Sets the width in CSS pixels and the colour scheme."""
        self.call("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500})
        self.call("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
        self.wait(0.3)

    def press(self, key, code=None):
        """Presses and releases a key."""
        keys = {"Tab": 9, "Enter": 13, " ": 32}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", {
                "type": kind, "key": key, "code": code or key,
                "windowsVirtualKeyCode": keys[key],
                **({"text": "\r" if key == "Enter" else key}
                   if kind == "keyDown" and key != "Tab" else {})})

    def screenshot(self, path):
        """Writes the whole page as a PNG."""
        shot = self.call("Page.captureScreenshot", {"captureBeyondViewport": True})
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))

    def _read(self, deadline):
        """The next message, which is counted; None: no message came in time."""
        while b"\0" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.answers], [], [], left)[0]:
                return None
            piece = os.read(self.answers, 1 << 16)
            if not piece:
                raise ConnectionError("Chromium has ended")
            self.buffer += piece
        text, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(text)
        self._count(message.get("method"), message.get("params", {}))
        return message

    def _count(self, method, params):
        if method == "Runtime.exceptionThrown":
            self.errors.append(params["exceptionDetails"].get("exception", {}).get(
                "description", params["exceptionDetails"]["text"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert"):
            self.errors.append(str(params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            entry = params["entry"]
            listed = self.network_errors if entry["source"] == "network" else self.errors
            listed.append(f"{entry['text']} {entry.get('url', '')}")
        elif method == "Network.requestWillBeSent":
            url = params["request"]["url"]
            self.requests[url] = self.requests.get(url, 0) + 1
        elif method == "Network.loadingFinished":
            self.bytes += params["encodedDataLength"]
