# SPDX-License-Identifier: MIT
"""Four threads with a connection each send the same command, while a monitor watches the readers; an unchanged pyscard program.

    pyscard_threads.py COMMAND COUNT      COUNT commands in all; prints how many were answered 9000
"""
import sys
import threading

from smartcard.CardMonitoring import CardMonitor, CardObserver
from smartcard.System import readers
from smartcard.scard import SCARD_LEAVE_CARD

command, count = list(bytes.fromhex(sys.argv[1])), int(sys.argv[2])
good = []


class Observer(CardObserver):
    def update(self, observable, actions):
        pass


def work():
    connection = readers()[0].createConnection()
    connection.connect(disposition=SCARD_LEAVE_CARD)
    for _ in range(count // 4):
        _, sw1, sw2 = connection.transmit(command)
        if (sw1, sw2) == (0x90, 0x00):
            good.append(1)
    connection.disconnect()


monitor, observer = CardMonitor(), Observer()
monitor.addObserver(observer)
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
monitor.deleteObserver(observer)
print(len(good), "answered")
