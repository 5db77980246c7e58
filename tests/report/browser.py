"""A headless Chromium, driven through its DevTools protocol over a pipe
(https://chromedevtools.github.io/devtools-protocol/), without further packages."""

import base64
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


class Browser:
    """One page. Messages that it writes to its console are collected in `console`."""

    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="assay-browser-")
        to_browser, self.to_browser = os.pipe()
        self.from_browser, from_browser = os.pipe()
        self.buffer, self.number, self.console = b"", 0, []
        # The browser expects the two ends as descriptors 3 and 4.
        command = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
                   "--disable-extensions", "--hide-scrollbars", "--force-device-scale-factor=1",
                   "--disable-background-networking", f"--user-data-dir={self.profile}",
                   "--remote-debugging-pipe", "about:blank"]
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec 3<&{to_browser} 4>&{from_browser}; exec "$@"', "bash", *command],
            pass_fds=[to_browser, from_browser], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(to_browser)
        os.close(from_browser)
        self.session = None
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page["targetId"],
                                 flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def close(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.to_browser)
        os.close(self.from_browser)
        shutil.rmtree(self.profile, ignore_errors=True)

    def read_message(self):
        while b"\0" not in self.buffer:
            block = os.read(self.from_browser, 1 << 20)
            if not block:
                raise RuntimeError("the browser has ended")
            self.buffer += block
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to_browser, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read_message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            if answer.get("method") in ("Log.entryAdded", "Runtime.consoleAPICalled",
                                        "Runtime.exceptionThrown"):
                self.console.append(answer["params"])

    def open(self, url, width=1280, height=900, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=width < 640)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        # Of more than 50 entries, Chromium drops those first that a page has made without a user.
        self.call("Page.resetNavigationHistory")
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)
        self.wait("document.body && document.body.dataset.ready === 'yes'")
        self.settle()

    def evaluate(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"].get("description"))
        return answer["result"].get("value")

    def wait(self, condition, seconds=20):
        """Also while the browser goes from one document to another, where nothing can be evaluated."""
        end = time.monotonic() + seconds
        while not self.is_true(condition):
            if time.monotonic() > end:
                raise TimeoutError(condition)
            time.sleep(0.05)

    def is_true(self, condition):
        try:
            return self.evaluate(condition)
        except RuntimeError as error:
            if "navigated or closed" in str(error):
                return False
            raise

    def settle(self):
        """Until what was asked for has been drawn, and what runs after drawing has run."""
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame("
                      "() => setTimeout(done, 20))))")

    def press(self, key, text=""):
        code = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowDown": 40, "ArrowUp": 38,
                "ArrowLeft": 37, "ArrowRight": 39, "End": 35, "Home": 36}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=text,
                  windowsVirtualKeyCode=code.get(key, ord(key[0].upper())))
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)
        self.settle()

    def type(self, text):
        self.call("Input.insertText", text=text)
        self.settle()

    def screenshot(self, path):
        self.settle()
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
