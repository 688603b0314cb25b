"""Chromium for tests of pages; they are skipped, with the reason, where there is none."""

import shutil
from contextlib import contextmanager

import pytest

# Without these it looks for the network at every start, and as root it does not start at all.
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextmanager
def started():
    """Yield a running Chromium."""
    if shutil.which("chromium") is None:
        pytest.skip("no chromium on this machine")
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        yield chromium
        chromium.close()


@contextmanager
def lone_page():
    """Yield a page that opens files, and the list of all that goes wrong in it: requests are faults too."""
    with started() as chromium:
        page, faults = chromium.new_page(viewport={"width": 1280, "height": 800}), []
        page.on(
            "console", lambda said: faults.append(said.text) if said.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda asked: asked.url.startswith("http") and faults.append(asked.url))
        yield page, faults
