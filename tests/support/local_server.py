"""A local web server that can simulate interrupted and failing downloads."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Site:
    """Files by name, and how they are served.

    ``max_bytes`` ends every response after so many bytes, ``status`` answers with an error, and while ``proceed``
    is not set the second half of a response is held back. ``requests`` has the file and range of each request.
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.url = ""
        self.max_bytes: int | None = None
        self.status: int | None = None
        self.sends_etag = True
        self.requests: list[tuple[str, str | None]] = []
        self.proceed = threading.Event()
        self.proceed.set()


@contextmanager
def serve() -> Iterator[Site]:
    """Run a server of a new ``Site`` on a free port."""
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.rsplit("/", 1)[1]
            site.requests.append((name, self.headers["Range"]))
            if site.status or name not in site.files:
                self.send_error(site.status or 404)
                return
            whole = site.files[name]
            tag = f'"{hashlib.sha256(whole).hexdigest()[:12]}"'
            start = self._start(tag)
            if start >= len(whole) and start:
                self.send_error(416)
                return
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(whole) - 1}/{len(whole)}")
            if site.sends_etag:
                self.send_header("ETag", tag)
            self.send_header("Content-Length", str(len(whole) - start))
            self.end_headers()
            body = whole[start:][: site.max_bytes]
            with suppress(ConnectionError):  # the client may be killed meanwhile
                self.wfile.write(body[: len(body) // 2])
                site.proceed.wait(20)
                self.wfile.write(body[len(body) // 2 :])

        def _start(self, tag: str) -> int:
            requested, condition = self.headers["Range"], self.headers["If-Range"]
            if requested is None or condition not in (None, tag):
                return 0
            return int(requested.removeprefix("bytes=").rstrip("-"))

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    site.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
