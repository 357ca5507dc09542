# SPDX-License-Identifier: MIT
"""NDEF messages by ndeflib, for a comparison: what it reads out of a message, and messages that it makes.

ndef_peer.py check        whether ndeflib is there
ndef_peer.py read         a message in hex on each line of standard input; what it holds as JSON, a message a line,
                          behind it the octets that ndeflib makes of it
ndef_peer.py write        messages of its own: octets, then what they hold
"""

import json
import sys

import ndef


def told(record):
    if isinstance(record, ndef.TextRecord):
        return ["text", record.language, record.text]
    if isinstance(record, ndef.UriRecord):
        return ["uri", record.iri]
    if isinstance(record, ndef.SmartposterRecord):
        return ["poster", record.resource.iri, record.title or ""]
    return [record.type, record.name, bytes(record.data).hex().upper()]


def line(octets, records):
    return octets.hex().upper() + " " + json.dumps([told(record) for record in records], separators=(",", ":"))


def encoded(records):
    return b"".join(ndef.message_encoder(records))


def read():
    for text in sys.stdin:
        records = list(ndef.message_decoder(bytes.fromhex(text.strip())))
        print(line(encoded(records), records))


def write():
    poster = ndef.SmartposterRecord("https://example.com/menu")
    poster.set_title("the menu", "en")
    posters_with_more = ndef.SmartposterRecord("tel:+4930123456", {"de": "Zentrale"}, action="exec")
    messages = [
        [ndef.TextRecord("hello", "en")],
        [ndef.TextRecord("Grüße", "de-AT")],
        [ndef.TextRecord("Grüße", "de", encoding="UTF-16")],
        [ndef.UriRecord("https://www.example.com/a?b=c")],
        [ndef.UriRecord("mailto:someone@example.com")],
        [ndef.UriRecord("x-unknown:1")],
        [poster],
        [posters_with_more],
        [ndef.Record("text/plain", "", b"plain")],
        [ndef.Record("application/octet-stream", "1", bytes(range(256)) * 3)],
        [ndef.Record("urn:nfc:ext:example.com:thing", "", b"\x01\x02")],
        [ndef.Record("unknown", "", b"\x09")],
        [ndef.Record()],
        [ndef.TextRecord("first"), ndef.UriRecord("http://www.nfc.com"), ndef.Record("image/png", "id", b"\x89PNG")],
    ]
    for records in messages:
        print(line(encoded(records), records))


if __name__ == "__main__":
    {"check": lambda: print(ndef.__name__), "read": read, "write": write}[sys.argv[1]]()
