"""The part of curl that the guides use, for machines without curl."""

from __future__ import annotations

import argparse
import http.client
import sys
import time
from pathlib import Path as File
from urllib.parse import urlsplit

TIMEOUT_SECONDS = 60
TIMED_OUT = 28


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("curl", allow_abbrev=False)
    for flag in "sSN":
        parser.add_argument(f"-{flag}", action="store_true")
    parser.add_argument("-X", dest="method")
    parser.add_argument("-H", dest="headers", action="append", default=[])
    parser.add_argument("-d", dest="body")
    parser.add_argument("--data-binary", dest="file")
    parser.add_argument("-b", dest="shown")
    parser.add_argument("-c", dest="kept")
    parser.add_argument("--max-time", type=float, default=60)
    parser.add_argument("url")
    return parser.parse_args()


def main() -> int:
    ask = parse_arguments()
    url = urlsplit(ask.url)
    target = url.path + (f"?{url.query}" if url.query else "")
    headers = dict(header.split(": ", 1) for header in ask.headers)
    if ask.shown:
        headers["Cookie"] = File(ask.shown).read_text("latin-1")
    connection = http.client.HTTPConnection(url.netloc, timeout=TIMEOUT_SECONDS)
    body = ask.body and ask.body.encode()
    if ask.file:
        body = File(ask.file.removeprefix("@")).read_bytes()
    method = ask.method or ("POST" if body else "GET")
    connection.request(method, target, body, headers)
    answer = connection.getresponse()
    if ask.kept:
        cookies = answer.headers.get_all("Set-Cookie") or []
        File(ask.kept).write_text(
            "; ".join(cookie.partition(";")[0] for cookie in cookies), "latin-1"
        )
    ends = time.monotonic() + ask.max_time  # the time to the first byte does not count
    try:
        while chunk := answer.read1():
            sys.stdout.buffer.write(chunk)
            sys.stdout.flush()
            if connection.sock is not None:
                connection.sock.settimeout(max(0.01, ends - time.monotonic()))
    except TimeoutError:
        return TIMED_OUT
    return 0


if __name__ == "__main__":
    sys.exit(main())
