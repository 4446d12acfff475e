#!/usr/bin/env python3
"""slow_wire.py A B DELAY LOSS: joins two network interfaces. Frames arrive DELAY seconds later; the share LOSS of them never does.

What the kernel's netem does, for kernels without it. Needs the right to open raw sockets."""
import heapq
import itertools
import random
import select
import socket
import sys
import time

ETH_P_ALL, SOL_PACKET, PACKET_IGNORE_OUTGOING, PACKET_VNET_HDR = 3, 263, 23, 15


def port(interface):
    one = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    one.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    one.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)  # the sender leaves checksums to the hardware: pass that on
    one.bind((interface, ETH_P_ALL))
    return one


def main():
    ports = [port(sys.argv[1]), port(sys.argv[2])]
    delay, loss = float(sys.argv[3]), float(sys.argv[4])
    chance, order, under_way = random.Random(1), itertools.count(), []
    print("ready", flush=True)
    while True:
        wait = max(0, under_way[0][0] - time.monotonic()) if under_way else None
        for source in select.select(ports, [], [], wait)[0]:
            frame = source.recv(1 << 17)
            if chance.random() >= loss:
                heapq.heappush(under_way, (time.monotonic() + delay, next(order), ports[source is ports[0]], frame))
        while under_way and under_way[0][0] <= time.monotonic():
            _, _, target, frame = heapq.heappop(under_way)
            try:
                target.send(frame)
            except OSError:  # the interface is down: the frame is lost
                pass


main()
