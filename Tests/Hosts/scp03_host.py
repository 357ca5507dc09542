# SPDX-License-Identifier: MIT
"""An SCP03 host of its own over libpcsclite: lists the registry of the card in the first reader.

With "vectors" it proves its channel on a recorded exchange alone.
"""
import ctypes
import sys
import time

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.cmac import CMAC


def cmac(key, data):
    mac = CMAC(algorithms.AES(key))
    mac.update(data)
    return mac.finalize()


def cbc(key, iv, data, encrypting=True):
    cipher = Cipher(algorithms.AES(key), modes.CBC(iv))
    step = cipher.encryptor() if encrypting else cipher.decryptor()
    return step.update(data) + step.finalize()


def kdf(key, constant, context, bits):
    out = b""
    for number in (1, 2):
        out += cmac(key, bytes(11) + bytes([constant, 0]) + bits.to_bytes(2, "big") + bytes([number]) + context)
    return out[: bits // 8]


class Channel:
    def __init__(self, enc, mac, host_challenge, offer):
        assert offer[11] == 3, "not SCP03"
        context = host_challenge + offer[13:21]
        bits = 8 * len(enc)
        self.enc, self.mac, self.rmac = kdf(enc, 4, context, bits), kdf(mac, 6, context, bits), kdf(mac, 7, context, bits)
        assert kdf(self.mac, 0, context, 64) == offer[21:29], "card cryptogram"
        self.host = kdf(self.mac, 1, context, 64)
        self.chain, self.counter = bytes(16), 0

    def sign(self, header, data):
        self.chain = cmac(self.mac, self.chain + header + bytes([len(data) + 8]) + data)
        return header + bytes([len(data) + 8]) + data + self.chain[:8]

    def authenticate(self):
        return self.sign(bytes([0x84, 0x82, 0x33, 0x00]), self.host)

    def wrap(self, header, data):
        self.counter += 1
        if data:
            data += b"\x80" + bytes(-(len(data) + 1) % 16)
            iv = cbc(self.enc, bytes(16), self.counter.to_bytes(16, "big"))
            data = cbc(self.enc, iv, data)
        return self.sign(bytes([header[0] | 4]) + header[1:], data)

    def unwrap(self, answer):
        data, word = answer[:-2], answer[-2:]
        if word[0] not in (0x90, 0x62, 0x63):
            return b"", word
        body, mac = data[:-8], data[-8:]
        assert cmac(self.rmac, self.chain + body + word)[:8] == mac, "R-MAC"
        if not body:
            return b"", word
        block = bytearray(self.counter.to_bytes(16, "big"))
        block[0] |= 0x80
        body = cbc(self.enc, cbc(self.enc, bytes(16), bytes(block)), body, False).rstrip(b"\x00")
        assert body[-1] == 0x80, "padding"
        return body[:-1], word


def vectors():
    # osmocom pySim, tests/unittests/test_globalplatform.py, AES-128 at level 33.
    h = bytes.fromhex
    channel = Channel(
        bytes(range(16)), bytes(range(16, 32)), h("fdf38259a1e0de44"),
        h("000000000000000000003003703b1aca81e821f219081cdc01c26b372d000003"))
    assert channel.authenticate() == h("84823300108c36f96bcc00724a4e13ad591d7da3f0")
    assert channel.wrap(h("80e29100"), h("bf3e035c015a")) == h("84e2910018267a85dfe4a98fca6fb0527e0dfecce4914e40401433c87f")
    answer = h("f3ba2b1013aa6224f5e1c138d71805c569e5439b47576260b75fc021b25097cb2e68f8a0144975b99000")
    assert channel.unwrap(answer)[0] == h("bf3e125a1089882119900000000000000000000005")
    assert channel.wrap(h("80f22002"), b"") == h("84f2200208ac6a59024bed84cc")


class Reader:
    class Pci(ctypes.Structure):
        _fields_ = [("protocol", ctypes.c_ulong), ("length", ctypes.c_ulong)]

    def __init__(self, name):
        self.library = ctypes.CDLL("libpcsclite.so.1")
        context, self.card, self.protocol = ctypes.c_long(), ctypes.c_long(), ctypes.c_ulong()
        self.check(self.library.SCardEstablishContext(2, None, None, ctypes.byref(context)))
        # The card may be put in only now.
        deadline = time.monotonic() + 20
        while True:
            code = self.library.SCardConnect(
                context, name.encode(), 2, 3, ctypes.byref(self.card), ctypes.byref(self.protocol))
            if code == 0 or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        self.check(code)

    @staticmethod
    def check(code):
        assert code == 0, "PC/SC %08X" % (code & 0xFFFFFFFF)

    def send(self, command):
        pci = self.Pci(self.protocol.value, ctypes.sizeof(self.Pci))
        answer, length = ctypes.create_string_buffer(300), ctypes.c_ulong(300)
        self.check(self.library.SCardTransmit(
            self.card, ctypes.byref(pci), command, ctypes.c_ulong(len(command)), None, answer, ctypes.byref(length)))
        return answer.raw[: length.value]


def main():
    vectors()
    if sys.argv[1] == "vectors":
        print("vectors hold")
        return
    reader = Reader(sys.argv[1])
    assert reader.send(bytes.fromhex("00a4040000"))[-2:] == b"\x90\x00"
    challenge = bytes(range(8))
    offer = reader.send(bytes.fromhex("8050000008") + challenge + b"\x00")
    key = bytes(range(0x40, 0x50))
    channel = Channel(key, key, challenge, offer[:-2])
    assert reader.send(channel.authenticate()) == b"\x90\x00"
    for scope in (0x80, 0x40, 0x20):
        more = 2
        while True:
            command = channel.wrap(bytes([0x80, 0xF2, scope, more]), bytes([0x4F, 0x00])) + b"\x00"
            data, word = channel.unwrap(reader.send(command))
            assert word in (b"\x90\x00", b"\x63\x10"), word.hex()
            place = 0
            while place < len(data):
                assert data[place] == 0xE3
                entry = data[place + 2 : place + 2 + data[place + 1]]
                print("%02X %s" % (scope, entry[2 : 2 + entry[1]].hex().upper()))
                place += 2 + data[place + 1]
            if word == b"\x90\x00":
                break
            more = 3


main()
