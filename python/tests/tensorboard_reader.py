"""TensorBoard's event files read with nothing but their format: an oracle for the writer in C++."""

import struct
from pathlib import Path


def curves(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """By tag: (step, value), in the order of the files' names. A file ends where a record is cut off."""
    found: dict[str, list[tuple[int, float]]] = {}
    for file in sorted(folder.glob("events.out.tfevents.*")):
        data, at = file.read_bytes(), 0
        while at + 12 <= len(data):
            (length, crc) = struct.unpack_from("<QI", data, at)
            event = data[at + 12:at + 12 + length]
            if at + 16 + length > len(data):
                break
            assert crc == _masked(data[at:at + 8]) and struct.unpack_from("<I", data, at + 12 + length)[0] == _masked(event), (file, at)
            at += 16 + length
            fields = _fields(event)
            for summary in fields.get(5, []):
                for value in map(_fields, _fields(summary)[1]):
                    found.setdefault(value[1][0].decode(), []).append((fields.get(2, [0])[0], struct.unpack("<f", value[2][0])[0]))
    return found


def _masked(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _fields(message: bytes) -> dict[int, list]:
    found: dict[int, list] = {}
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            value |= (message[at] & 0x7F) << shift
            shift, at = shift + 7, at + 1
            if message[at - 1] < 0x80:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            content = varint()
        else:
            size = {1: 8, 5: 4}.get(key & 7) or varint()
            content, at = message[at:at + size], at + size
        found.setdefault(key >> 3, []).append(content)
    return found
