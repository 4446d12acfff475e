#!/usr/bin/env python3
"""check_page.py [--figures N] [--screenshots DIR] PAGE.html …: opens pages in headless Chromium, without network.

Fails where a page writes an error to the console, asks for anything but itself, scrolls sideways, or has a figure that
is missing, invisible, blank or without an alternative text: at 1280 and 390 pixels width, on light and on dark ground.
Speaks Chromium's DevTools protocol over a pipe, so that it needs nothing but Python.
"""
import argparse
import base64
import collections
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

WIDTHS = (1280, 390)
GROUNDS = ("light", "dark")
FIGURES = """JSON.stringify([...document.querySelectorAll('img, svg')].map(e => {
  const r = e.getBoundingClientRect();
  return {x: r.x + scrollX, y: r.y + scrollY, width: r.width, height: r.height, alt: e.getAttribute('alt') || '',
          loaded: e.tagName != 'IMG' || (e.complete && e.naturalWidth > 0)};
}))"""
SIDEWAYS = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


class Browser:
    """Sends commands to its own Chromium and receives events."""

    def __init__(self, program):
        self.folder = tempfile.TemporaryDirectory(prefix="hone-chromium-", ignore_cleanup_errors=True)
        to_read, self.to_browser = os.pipe()
        self.from_browser, to_write = os.pipe()

        def connect():  # Chromium reads commands from descriptor 3 and answers on 4
            high = [os.dup2(to_read, 30), os.dup2(to_write, 31)]
            os.dup2(high[0], 3, inheritable=True)
            os.dup2(high[1], 4, inheritable=True)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
             "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
             "--remote-debugging-pipe", f"--user-data-dir={self.folder.name}", "about:blank"],
            preexec_fn=connect, pass_fds=(3, 4), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.buffer, self.count, self.events = b"", 0, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.send("Browser.close")
            self.process.wait(timeout=20)
        except (OSError, SystemExit, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        self.folder.cleanup()  # what a child of Chromium may still be writing there stays

    def read(self):
        while b"\0" not in self.buffer:
            part = os.read(self.from_browser, 1 << 16)
            if not part:
                sys.exit("check_page: Chromium ended by itself")
            self.buffer += part
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def send(self, method, session=None, **parameters):
        self.count += 1
        command = {"id": self.count, "method": method, "params": parameters}
        if session:
            command["sessionId"] = session
        os.write(self.to_browser, json.dumps(command).encode() + b"\0")
        while True:
            message = self.read()
            if message.get("id") == self.count:
                if "error" in message:
                    sys.exit(f"check_page: {method}: {message['error']}")
                return message["result"]
            self.events.append(message)

    def wait_for(self, method):
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self.read())


def pixels_of(png):
    """Width, height and the (r, g, b) of all pixels of an 8-bit RGB or RGBA image."""
    at, data, header = 8, b"", None
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at:at + 8])
        if kind == b"IHDR":
            header = struct.unpack(">IIBBBBB", png[at + 8:at + 8 + size])
        if kind == b"IDAT":
            data += png[at + 8:at + 8 + size]
        at += size + 12
    width, height, depth, colour = header[:4]
    assert depth == 8 and colour in (2, 6) and header[6] == 0, "not a PNG file as Chromium writes it"
    step = 3 if colour == 2 else 4
    raw, row, result = zlib.decompress(data), bytearray(width * step), []
    for y in range(height):
        begin = y * (width * step + 1)
        rule, line = raw[begin], bytearray(raw[begin + 1:begin + 1 + width * step])
        for i in range(len(line)):
            left = line[i - step] if i >= step else 0
            up, corner = row[i], row[i - step] if i >= step else 0
            if rule == 1:
                line[i] = (line[i] + left) & 255
            elif rule == 2:
                line[i] = (line[i] + up) & 255
            elif rule == 3:
                line[i] = (line[i] + (left + up) // 2) & 255
            elif rule == 4:
                guess = left + up - corner
                nearest = min((abs(guess - left), 0, left), (abs(guess - up), 1, up), (abs(guess - corner), 2, corner))
                line[i] = (line[i] + nearest[2]) & 255
        result += [tuple(line[i:i + 3]) for i in range(0, len(line), step)]
        row = line
    return width, height, result


def fault_of_picture(png):
    """Faults in how a figure looks: only background, or ink that hardly differs from it."""
    _, _, pixels = pixels_of(png)
    counts = collections.Counter(pixels)
    ground = counts.most_common(1)[0][0]
    contrast = [sum(n for colour, n in counts.items() if max(abs(a - b) for a, b in zip(colour, ground)) > least)
                for least in (20, 100)]
    if contrast[0] < 0.002 * len(pixels):
        return "is blank"
    return "cannot be read on this ground" if contrast[1] < 0.0005 * len(pixels) else None


def faults_of(browser, page, width, ground, options):
    faults, url = [], page.resolve().as_uri()
    target = browser.send("Target.createTarget", url="about:blank")["targetId"]
    session = browser.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    for domain in ("Page", "Runtime", "Log", "Network"):
        browser.send(domain + ".enable", session)
    browser.send("Emulation.setDeviceMetricsOverride", session, width=width, height=900, deviceScaleFactor=1,
                 mobile=width < 500)
    browser.send("Emulation.setEmulatedMedia", session, features=[{"name": "prefers-color-scheme", "value": ground}])
    browser.events.clear()
    browser.send("Page.navigate", session, url=url)
    browser.wait_for("Page.loadEventFired")

    def value(expression):
        return browser.send("Runtime.evaluate", session, expression=expression, returnByValue=True)["result"]["value"]

    figures = json.loads(value(FIGURES))
    if len(figures) < options.figures:
        faults.append(f"has {len(figures)} figures, expected {options.figures}")
    if value(SIDEWAYS):
        faults.append("scrolls sideways")
    for number, figure in enumerate(figures, 1):
        name = f"figure {number} ({figure['alt'][:40]})"
        if not figure["alt"]:
            faults.append(f"{name} has no alternative text")
        if not figure["loaded"] or figure["width"] < 50 or figure["height"] < 10 or figure["x"] < 0 \
                or figure["x"] + figure["width"] > width:
            faults.append(f"{name} is not there as a whole")
            continue
        clip = {key: figure[key] for key in ("x", "y", "width", "height")} | {"scale": 1}
        picture = browser.send("Page.captureScreenshot", session, format="png", clip=clip, captureBeyondViewport=True)
        if fault := fault_of_picture(base64.b64decode(picture["data"])):
            faults.append(f"{name} {fault}")
    if options.screenshots:
        whole = browser.send("Page.captureScreenshot", session, format="png", captureBeyondViewport=True)
        name = f"{page.resolve().parent.name}-{page.stem}-{width}-{ground}.png"
        (pathlib.Path(options.screenshots) / name).write_bytes(base64.b64decode(whole["data"]))
    for event in browser.events:
        parameters = event.get("params", {})
        if event["method"] == "Network.requestWillBeSent":
            asked = parameters["request"]["url"]
            if asked != url and not asked.startswith("data:"):
                faults.append(f"asks for {asked}")
        if event["method"] == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            faults.append(f"console: {parameters['entry']['text']}")
        if event["method"] == "Runtime.exceptionThrown":
            faults.append(f"console: {parameters['exceptionDetails']['text']}")
        if event["method"] == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            faults.append(f"console: {parameters['args']}")
    browser.send("Target.closeTarget", targetId=target)
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="+", type=pathlib.Path)
    parser.add_argument("--figures", type=int, default=0, help="least number of figures of each page")
    parser.add_argument("--screenshots", help="folder for screenshots of the whole pages")
    options = parser.parse_args()
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not program:
        sys.exit("check_page: Chromium is not installed (Debian: apt-get install chromium)")
    failed = False
    with Browser(program) as browser:
        for page in options.pages:
            for width in WIDTHS:
                for ground in GROUNDS:
                    for fault in faults_of(browser, page, width, ground, options):
                        print(f"{page}, {width} pixels, {ground}: {fault}")
                        failed = True
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
