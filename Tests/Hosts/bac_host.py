# SPDX-License-Identifier: MIT
"""A terminal of its own: Basic Access Control and the reading of DG1, from ICAO 9303-10 and -11, over pyscard.

    bac_host.py READER NUMBER BIRTH EXPIRY      prints DG1 in hex
    bac_host.py vectors                         proves the arithmetic on ICAO 9303-11 appendix D

It shares nothing with the package that it is run against. Without pyscard it speaks to libpcsclite itself.
"""
import ctypes
import hashlib
import os
import sys

from cryptography.hazmat.primitives.ciphers import Cipher, modes

try:
    from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
except ImportError:
    from cryptography.hazmat.primitives.ciphers.algorithms import TripleDES


# --- The card


def pyscard(name):
    from smartcard.System import readers

    reader = [one for one in readers() if name in str(one)][0]
    connection = reader.createConnection()
    connection.connect()

    def transmit(command):
        data, sw1, sw2 = connection.transmit(list(command))
        return bytes(data) + bytes([sw1, sw2])

    return transmit


def pcsclite(name):
    library = ctypes.CDLL("libpcsclite.so.1")
    context, handle, protocol = ctypes.c_long(), ctypes.c_long(), ctypes.c_ulong()
    assert library.SCardEstablishContext(2, None, None, ctypes.byref(context)) == 0
    length = ctypes.c_ulong(4096)
    names = ctypes.create_string_buffer(4096)
    assert library.SCardListReaders(context, None, names, ctypes.byref(length)) == 0
    full = [one for one in names.raw[: length.value].split(b"\0") if name.encode() in one][0]
    assert library.SCardConnect(context, full, 2, 3, ctypes.byref(handle), ctypes.byref(protocol)) == 0
    request = (ctypes.c_ulong * 2)(protocol.value, 16)

    def transmit(command):
        answer, size = ctypes.create_string_buffer(65548), ctypes.c_ulong(65548)
        code = library.SCardTransmit(handle, request, command, len(command), None, answer, ctypes.byref(size))
        assert code == 0, f"SCardTransmit {code & 0xFFFFFFFF:08X}"
        return answer.raw[: size.value]

    return transmit


# --- Arithmetic (9303-11 9.7 and 9.8)


def des3(key, data, encrypting=True):
    cipher = Cipher(TripleDES(key + key[:8]), modes.CBC(bytes(8)))
    step = cipher.encryptor() if encrypting else cipher.decryptor()
    return step.update(data) + step.finalize()


def pad(data):
    return data + b"\x80" + bytes(-(len(data) + 1) % 8)


def mac(key, data):
    """ISO/IEC 9797-1 algorithm 3 with padding method 2: single DES is triple DES with one key thrice."""
    data, first, second = pad(data), key[:8], key[8:16]
    state = bytes(8)
    for place in range(0, len(data), 8):
        block = bytes(a ^ b for a, b in zip(state, data[place : place + 8]))
        state = des3(first + first, block)
    return des3(first + first, des3(second + second, state, False))


def derive(seed, number):
    key = hashlib.sha1(seed + bytes([0, 0, 0, number])).digest()[:16]
    return bytes(b & 0xFE | bin(b >> 1).count("1") % 2 ^ 1 for b in key)


def check_digit(text):
    values = [0 if c == "<" else int(c, 36) for c in text]
    return str(sum(v * w for v, w in zip(values, [7, 3, 1] * len(values))) % 10)


def seed_of(number, birth, expiry):
    zone = "".join(part + check_digit(part) for part in (number.ljust(9, "<"), birth, expiry))
    return hashlib.sha1(zone.encode()).digest()[:16]


class Channel:
    def __init__(self, enc, mac_key, counter):
        self.enc, self.mac, self.counter = enc, mac_key, counter

    def step(self):
        self.counter = (int.from_bytes(self.counter, "big") + 1).to_bytes(8, "big")
        return self.counter

    def wrap(self, header, data=b"", le=None):
        header = bytes([header[0] | 0x0C]) + header[1:]
        body = b""
        if data:
            sealed = des3(self.enc, pad(data))
            body += bytes([0x87, len(sealed) + 1, 1]) + sealed
        if le is not None:
            body += bytes([0x97, 1, le])
        body += b"\x8e\x08" + mac(self.mac, self.step() + pad(header) + body)
        return header + bytes([len(body)]) + body + b"\x00"

    def unwrap(self, answer):
        assert len(answer) > 2, "answered in plain: " + answer.hex()
        body, place, parts = answer[:-2], 0, []
        while place < len(body):
            tag, length, start = body[place], body[place + 1], place + 2
            if length == 0x81:
                length, start = body[place + 2], place + 3
            elif length == 0x82:
                length, start = int.from_bytes(body[place + 2 : place + 4], "big"), place + 4
            parts.append((tag, body[start : start + length], body[place : start + length]))
            place = start + length
        covered = b"".join(whole for tag, _, whole in parts if tag != 0x8E)
        proof = next(value for tag, value, _ in parts if tag == 0x8E)
        assert mac(self.mac, self.step() + covered) == proof, "the answer's MAC"
        status = next(value for tag, value, _ in parts if tag == 0x99)
        sealed = next((value for tag, value, _ in parts if tag == 0x87), None)
        if sealed is None:
            return b"", status
        return des3(self.enc, sealed[1:], False).rstrip(b"\x00")[:-1], status


# --- The reading


def basic_access(transmit, seed):
    enc, mac_key = derive(seed, 1), derive(seed, 2)
    answer = transmit(bytes.fromhex("0084000008"))
    assert answer[-2:] == b"\x90\x00" and len(answer) == 10, "GET CHALLENGE " + answer.hex()
    chip, own, key = answer[:8], os.urandom(8), os.urandom(16)
    cryptogram = des3(enc, own + chip + key)
    answer = transmit(b"\x00\x82\x00\x00\x28" + cryptogram + mac(mac_key, cryptogram) + b"\x28")
    assert answer[-2:] == b"\x90\x00" and len(answer) == 42, "EXTERNAL AUTHENTICATE " + answer.hex()
    assert mac(mac_key, answer[:32]) == answer[32:40], "the chip's MAC"
    plain = des3(enc, answer[:32], False)
    assert plain[:16] == chip + own, "the chip's numbers"
    shared = bytes(a ^ b for a, b in zip(key, plain[16:]))
    return Channel(derive(shared, 1), derive(shared, 2), chip[4:] + own[4:])


def read_file(transmit, channel, identifier):
    def ask(header, data=b"", le=None):
        plain, status = channel.unwrap(transmit(channel.wrap(header, data, le)))
        assert status == b"\x90\x00", f"{header.hex()}: {status.hex()}"
        return plain

    ask(b"\x00\xa4\x02\x0c", identifier)
    data = ask(b"\x00\xb0\x00\x00", le=4)
    # The length of the outer object (ISO/IEC 8825-1 8.1.3).
    extra = data[1] & 0x7F if data[1] & 0x80 else 0
    total = 2 + extra + (int.from_bytes(data[2 : 2 + extra], "big") if extra else data[1])
    while len(data) < total:
        data += ask(bytes([0, 0xB0, len(data) >> 8, len(data) & 0xFF]), le=min(0xDF, total - len(data)))
    return data


def vectors():
    """ICAO 9303-11 appendix D.2 to D.4."""
    h = bytes.fromhex
    seed = seed_of("L898902C", "690806", "940623")
    assert seed == h("239AB9CB282DAF66231DC5A4DF6BFBAE")
    assert derive(seed, 1) == h("AB94FDECF2674FDFB9B391F85D7F76F2")
    assert derive(seed, 2) == h("7962D9ECE03D1ACD4C76089DCE131543")
    cryptogram = des3(derive(seed, 1), h("781723860C06C2264608F919887022120B795240CB7049B01C19B33E32804F0B"))
    assert cryptogram == h("72C29C2371CC9BDB65B779B8E8D37B29ECC154AA56A8799FAE2F498F76ED92F2")
    assert mac(derive(seed, 2), cryptogram) == h("5F1448EEA8AD90A7")
    channel = Channel(h("979EC13B1CBFE9DCD01AB0FED307EAE5"), h("F1CB1F1FB5ADF208806B89DC579DC1F8"), h("887022120C06C226"))
    wrapped = channel.wrap(h("00A4020C"), h("011E"))
    assert wrapped == h("0CA4020C158709016375432908C044F68E08BF8B92D635FF24F800")
    assert channel.unwrap(h("990290008E08FA855A5D4C50A8ED9000")) == (b"", h("9000"))


def main():
    if sys.argv[1:] == ["vectors"]:
        vectors()
        print("vectors hold")
        return
    name, number, birth, expiry = sys.argv[1:5]
    try:
        import smartcard  # noqa: F401

        transmit = pyscard(name)
    except ImportError:
        transmit = pcsclite(name)
    answer = transmit(bytes.fromhex("00A4040C07A0000002471001"))
    assert answer == b"\x90\x00", "SELECT " + answer.hex()
    channel = basic_access(transmit, seed_of(number, birth, expiry))
    print(read_file(transmit, channel, b"\x01\x01").hex())


main()
