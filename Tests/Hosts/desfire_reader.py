# SPDX-License-Identifier: MIT
"""Cards read and written by readers from PyPI, over pcscd: `desfire` for a DESFire, `boltlib` for an NTAG 424 DNA.

desfire_reader.py check               whether both are there
desfire_reader.py desfire READER      the applications and files that everybody may use
desfire_reader.py boltlib URI         version, UID and address; then URI in its place, read again
"""

import json
import sys


def connected(name):
    from smartcard.System import readers

    connection = next(reader for reader in readers() if str(reader) == name).createConnection()
    connection.connect()
    return connection


def desfire(name):
    from desfire.pcsc import PCSCDevice
    from desfire.protocol import DESFire, DESFireCommunicationError

    connection = connected(name)
    # The reader wants the connection itself, not what decorates it.
    card = DESFire(PCSCDevice(getattr(connection, "component", connection)))
    applications = card.get_applications()
    card.select_application(applications[0])
    told = {"applications": ["%06X" % number for number in applications], "files": card.get_file_ids()}
    told["settings"] = card.get_file_settings(1)
    told["before"] = bytes(card.read_data_file(1)).hex().upper()
    card.write_data_file(1, [(7 * index) & 0xFF for index in range(150)])
    told["after"] = bytes(card.read_data_file(1)).hex().upper()
    told["value"] = [card.get_value(2)]
    card.credit_value(2, 25)
    card.commit()
    card.debit_value(2, 100)
    card.commit()
    told["value"].append(card.get_value(2))
    card.create_value_file(9, 0x00, 0xEEEE, 0, 1000, 7, 0)
    told["value"].append(card.get_value(9))
    card.delete_file(9)
    told["files after"] = card.get_file_ids()
    try:
        card.select_application(0x123456)
    except DESFireCommunicationError as error:
        told["refused"] = "%02X" % error.status_code
    print(json.dumps(told, sort_keys=True))


def boltlib(uri):
    from loguru import logger

    logger.remove()
    import boltlib

    card = boltlib.wait_for_card(timeout=10)
    version = boltlib.get_version(card)
    boltlib.check_version(version)
    told = {"version": version, "uid": boltlib.read_uid(card), "before": boltlib.read_uri(card)}
    boltlib.write_uri(uri, cs=card)
    told["after"] = boltlib.read_uri(card)
    card.connection.disconnect()
    print(json.dumps(told, sort_keys=True))


def check():
    import boltlib  # noqa: F401
    import desfire.pcsc  # noqa: F401


if __name__ == "__main__":
    {"check": check, "desfire": desfire, "boltlib": boltlib}[sys.argv[1]](*sys.argv[2:])
