"""Brings the bytes of an SQLite database to its last committed state, without opening it (sqlite.org/fileformat2.html).

* `with_log` applies the committed frames of a write-ahead log; a frame counts if its salts and running checksum hold.
* `before_transaction` puts back the pages that a rollback journal saved: a writer was stopped in the middle.
* `in_memory` marks the image as one without a log, so that it can be opened from memory.

Nothing is decided about the content. All functions give new bytes and raise `ImageError` for what is no database.
"""

import struct

_MAGIC = b"SQLite format 3\0"
_WAL_MAGIC = (0x377F0682, 0x377F0683)
_WAL_HEADER = struct.Struct(">8I")
_FRAME_HEADER = struct.Struct(">6I")
_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
_JOURNAL_HEADER = struct.Struct(">8s5I")
_ALL_RECORDS = 0xFFFFFFFF
_WORD = 0xFFFFFFFF
IMAGE_LIMIT = 536_870_912
"""Bytes of a state that is made here: page numbers in a log or journal could promise far more."""


class ImageError(ValueError):
    """The bytes are not an SQLite database."""


def page_size(image: bytes) -> int:
    """Bytes of one page."""
    if len(image) < 100 or not image.startswith(_MAGIC):
        raise ImageError("file is not a database")
    size: int = struct.unpack_from(">H", image, 16)[0]
    size = 65536 if size == 1 else size
    if not _is_page_size(size):
        raise ImageError("file is not a database")
    return size


def _is_page_size(size: int) -> bool:
    return 512 <= size <= 65536 and not size & (size - 1)


def with_log(image: bytes, log: bytes) -> tuple[bytes, int]:
    """The image with all committed frames of a write-ahead log, and the number of frames that counted."""
    size = len(image) and page_size(image)
    if len(log) < _WAL_HEADER.size:
        return image, 0
    magic, _, log_page, _, *salts, _, _ = _WAL_HEADER.unpack_from(log)
    if magic not in _WAL_MAGIC or (size and log_page != size) or not _is_page_size(log_page):
        return image, 0
    order = ">" if magic & 1 else "<"
    running = _checksum(order, log[:24], (0, 0))
    if running != _WAL_HEADER.unpack_from(log)[6:]:
        return image, 0
    pages: dict[int, bytes] = {}
    pending: dict[int, bytes] = {}
    committed = final = 0
    step = _FRAME_HEADER.size + log_page
    for seen, start in enumerate(range(_WAL_HEADER.size, len(log) - step + 1, step), 1):
        number, commit, *frame_salts, first, second = _FRAME_HEADER.unpack_from(log, start)
        content = log[start + _FRAME_HEADER.size : start + step]
        running = _checksum(order, log[start : start + 8] + content, running)
        if frame_salts != salts or running != (first, second) or number == 0:
            break
        pending[number] = content
        if commit:
            pages |= pending
            pending, committed, final = {}, seen, commit
    return _patched(image, log_page, pages, final) if committed else image, committed


def before_transaction(image: bytes, journal: bytes) -> tuple[bytes, bool]:
    """The image as it was before the transaction that a rollback journal belongs to, and whether there was one."""
    if not journal.startswith(_JOURNAL_MAGIC) or len(journal) < _JOURNAL_HEADER.size:
        return image, False
    size = page_size(image)
    _, _, _, initial, sector, journal_page = _JOURNAL_HEADER.unpack_from(journal)
    if journal_page != size or sector < 32:
        return image, False
    pages: dict[int, bytes] = {}
    start = 0
    while start + _JOURNAL_HEADER.size <= len(journal):
        magic, count, nonce, *_ = _JOURNAL_HEADER.unpack_from(journal, start)
        if magic != _JOURNAL_MAGIC:
            break
        start += sector
        if count == _ALL_RECORDS:
            count = max(0, len(journal) - start) // (size + 8)
        for _ in range(count):
            record = journal[start : start + size + 8]
            number = int.from_bytes(record[:4], "big")
            if len(record) < size + 8 or number == 0 or not _sound(record, nonce):
                return _patched(image, size, pages, initial), True
            pages.setdefault(number, record[4:-4])
            start += size + 8
        start += -start % sector
    return _patched(image, size, pages, initial), True


def in_memory(image: bytes) -> bytes:
    """The image marked as one that keeps no write-ahead log."""
    page_size(image)
    return image[:18] + b"\1\1" + image[20:]


def _patched(image: bytes, size: int, pages: dict[int, bytes], final: int) -> bytes:
    """The image with pages replaced, cut or filled to `final` pages, but to no page that is not known."""
    final = min(final, max(len(image) // size, *pages, 0))
    if final * size > IMAGE_LIMIT:
        raise ImageError(f"its last committed state would have {final * size} bytes")
    whole = bytearray(image[: final * size].ljust(final * size, b"\0"))
    for number, content in pages.items():
        if number <= final:
            whole[(number - 1) * size : number * size] = content
    return bytes(whole)


def _sound(record: bytes, nonce: int) -> bool:
    content = record[4:-4]
    total = nonce + sum(content[len(content) - 200 : 0 : -200])
    return total & _WORD == int.from_bytes(record[-4:], "big")


def _checksum(order: str, data: bytes, start: tuple[int, int]) -> tuple[int, int]:
    first, second = start
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & _WORD
        second = (second + odd + first) & _WORD
    return first, second
