"""Random changes to files, and the smallest change that still makes something fail."""

import re

TOKENS = [
    *(b'"', b'""', b",", b"\t", b";", b" ", b"\n", b"\r", b"\r\n", b"\n\n", b"\0", b"'", b"'=", b"=1+1", b"{}", b"["),
    *(b"\xff", b"\xc3\xa9", b"\xe2\x80\xa8", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"id", b"id,id", b"label", b"-link"),
    *(b"nan", b"NaN", b"inf", b"-inf", b"1e400", b"1" * 400, b"-0", b"1_000", b"0x1F", b"NULL", b"9" * 20, b"-1", b"2"),
    *(b"must", b"cannot", b"true", b"2020-01-01", b"1,234.5", b"12 kg", b"a" * 5000, b"x" * 70_000, b"[" * 3000),
]
"""What confuses those who read files."""


def mutated(draw, content, others):
    """The content of a file after one to four random changes."""
    found = bytearray(content)
    for _ in range(draw.randint(1, 4)):
        a, b = sorted(draw.randint(0, len(found)) for _ in range(2))
        b = min(b, a + draw.choice([1, 4, 40, 4000]))
        match draw.randrange(8):
            case 0:
                found[a:b] = b""
            case 1:
                found[a:a] = found[a:b]
            case 2 | 3:
                found[a:a] = draw.choice(TOKENS)
            case 4:
                found[a:b] = draw.choice(TOKENS)
            case 5:
                found[a:b] = draw.randbytes(b - a)
            case 6:
                other = draw.choice(others)
                c = draw.randint(0, len(other))
                found[a:b] = other[c : c + (b - a)]
            case 7:  # a cell or a line is doubled, moved or dropped
                parts = re.split(draw.choice([b"(\n)", b"(,)", b'(")']), bytes(found))
                i, j = (draw.randrange(len(parts)) for _ in range(2))
                parts[i] = draw.choice([parts[j], b"", parts[i] * 2])
                found = bytearray(b"".join(parts))
    return bytes(found)


def smallest(content, fails, most=400):
    """The content without all parts that it can lose and still fail; after so many tries what is left."""
    size, tries = max(len(content) // 2, 1), 0
    while size:
        place = 0
        while place < len(content) and tries < most:
            shorter = content[:place] + content[place + size :]
            tries += 1
            if fails(shorter):
                content = shorter
            else:
                place += size
        size //= 2
    return content
