"""Take the picture at the top of the README: a text that ``herdner serve`` tagged without links and with links.

``python scripts/figures/links_picture.py docs/pages/images`` writes links-light.png and links-dark.png. The script
needs the extras `serve` and `files`, Playwright and Chromium.
"""

from __future__ import annotations

import io
import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
import uvicorn
from PIL import Image
from playwright.sync_api import Page, sync_playwright

from herdner.integrations.serve import create_app
from herdner.integrations.serve.connections import server_config
from herdner.ner.inference import DEFAULT_BACKEND

TEXT = """Lawyers for the captain and for Odero met in Kisumu on Monday.

Odero Shipping Co. had dismissed its captain, Halima Lamu, after a storm. Lamu had refused to leave the harbour. \
"Odero was wrong and Lamu was right," the judge wrote. On Rusinga Island, nobody blames Lamu."""
COLUMNS = {"viterbi": "without links", DEFAULT_BACKEND: "with links"}
SHOWN = """titles => {
    const columns = [...document.querySelectorAll(".column")];
    const name = column => column.querySelector("h2").textContent;
    for (const column of columns) column.style.order = Object.keys(titles).indexOf(name(column));
    for (const column of columns) column.querySelector("h2").textContent = titles[name(column)];
    for (const facts of document.querySelectorAll(".facts")) facts.textContent = "";  // numbers and times
}"""


@contextmanager
def service() -> Iterator[str]:
    """Run `herdner serve` with the model `en`, and yield the address of its web page."""
    app = create_app("en")
    listener = socket.create_server(("127.0.0.1", 0))
    config = server_config(app)
    config.lifespan = "off"
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        app.state.pool.close()


def compare(page: Page) -> None:
    """Tag the text on the web page by two backends: by Viterbi without links, and by the default with links."""
    page.wait_for_selector(".entity")
    page.click("#compare summary")
    page.wait_for_selector("#tag:not([aria-busy])")
    for box in page.locator("#backends input").all():
        if box.is_checked() != (box.input_value() in COLUMNS):
            box.evaluate("box => box.click()")
    page.fill("#text", TEXT)
    page.click("#tag")
    page.wait_for_selector("#tag:not([aria-busy])")
    page.evaluate(SHOWN, COLUMNS)


def main(folder: Annotated[Path, typer.Argument(help="Folder to write the pictures to.")]) -> None:
    """Write the picture for a light and a dark background."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with service() as address, sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            page = browser.new_page(color_scheme=scheme, device_scale_factor=1.5)
            page.set_viewport_size({"width": 1000, "height": 1200})
            page.goto(address)
            compare(page)
            picture = Image.open(io.BytesIO(page.locator("#results").screenshot()))
            picture.convert("RGB").quantize(64).save(folder / f"links-{scheme}.png", optimize=True)
        browser.close()


if __name__ == "__main__":
    typer.run(main)
