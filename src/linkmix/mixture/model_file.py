r"""Saves a fitted estimator to one file, without pickle: reading a file never runs code from it.

The file has a fixed preamble, a header in JSON, the raw bytes of the arrays, and a checksum:

    8 bytes   \x93LINKMIX
    4 bytes   version of the format, a little-endian integer
    8 bytes   length of the header
    8 bytes   length of the arrays
              the header in JSON, UTF-8
              the arrays, little-endian, each at a multiple of 64 bytes after the header
    32 bytes  SHA-256 of everything before

The header holds the estimator as a tree of values. Whatever JSON lacks is written as an object with a single key that
begins with a dollar sign: an array, a tuple, a mapping whose keys are not all strings, an estimator, or a value of one
of the dataclasses in ``VALUES``. Such a value is written as its fields; a field that a file does not have takes its
default, so that a class may gain fields without a new format.
"""

import hashlib
import json
import math
import os
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import MT19937, PCG64, PCG64DXSM, SFC64, Generator, Philox, RandomState
from sklearn.utils.validation import check_is_fitted

from linkmix import columns, couplings, densities, engine
from linkmix.basics.arrays import Array
from linkmix.basics.errors import BadFile
from linkmix.basics.files import aside
from linkmix.densities.contaminated import ContaminatedParameters
from linkmix.densities.discrete import DiscreteParameters
from linkmix.densities.gaussian import GaussianParameters
from linkmix.densities.product import ProductParameters
from linkmix.densities.student import StudentParameters
from linkmix.engine import starts
from linkmix.links import Links, Relation, SetRelation
from linkmix.links.label_tables import Rule
from linkmix.mixture.calibration import Quality
from linkmix.native.versions import versions

FORMAT = 1
"""The version written. Older versions can be read."""
MAGIC = b"\x93LINKMIX"
_BEGINNING = struct.Struct("<8sIQQ")
_CHECKSUM_SIZE = 32
_ALIGNMENT = 64
_TYPES = "biufUS"
"""Kinds of NumPy types that a file can hold."""

BIT_GENERATORS: dict[str, Any] = {kind.__name__: kind for kind in (MT19937, PCG64, PCG64DXSM, Philox, SFC64)}
VALUES: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        *(densities.Full, densities.Tied, densities.Diagonal, densities.Spherical),
        *(densities.Gaussian, densities.StudentT, densities.Bernoulli, densities.Poisson),
        *(densities.Categorical, densities.Product, densities.Contaminated),
        *(couplings.Uncoupled, couplings.Pairwise, couplings.Graph),
        *(couplings.MeanField, couplings.Projection, couplings.SoftChunklets),
        *(GaussianParameters, StudentParameters, DiscreteParameters, ProductParameters, ContaminatedParameters),
        *(engine.Parameters, starts.Shape, Quality),
        *(Links, Relation, SetRelation, Rule),
        *columns.PARTS,
    )
}
"""The dataclasses that a file may hold. No other class is ever created from a file."""


@dataclass(frozen=True)
class SavedModel:
    """What a model file holds.

    Attributes
    ----------
    estimator : object
        The fitted estimator.
    notes : dict
        What was saved with it, such as column names.
    version : str
        The version of linkmix that wrote the file.
    """

    estimator: Any
    notes: dict[str, Any]
    version: str


def save(path: str | os.PathLike[str], estimator: Any, notes: Mapping[str, Any] | None = None) -> None:
    """Write a fitted estimator to a file, completely or not at all.

    Parameters
    ----------
    path : path
        The file, which is replaced if it exists.
    estimator : object
        A fitted mixture of linkmix.
    notes : mapping, optional
        Plain values and arrays to save with it.
    """
    check_is_fitted(estimator)
    content = to_bytes(estimator, notes or {})
    with aside(path) as place:
        place.write_bytes(content)


def load(path: str | os.PathLike[str], kinds: Sequence[type], parts: Sequence[type] = ()) -> SavedModel:
    """Read an estimator from a file.

    Parameters
    ----------
    path : path
        The file.
    kinds : sequence of type
        Classes of estimators that the file may hold.
    parts : sequence of type
        Classes of estimators that those may contain.

    Returns
    -------
    SavedModel

    Raises
    ------
    BadFile
        If the file is not a model file, is truncated or changed, or was written by a newer version.
    """
    file = Path(path)
    return from_bytes(file, file.read_bytes(), kinds, parts)


def to_bytes(estimator: Any, notes: Mapping[str, Any]) -> bytes:
    """Content of a model file.

    Parameters
    ----------
    estimator : object
        A fitted mixture of linkmix.
    notes : mapping
        Plain values and arrays.

    Returns
    -------
    bytes
    """
    writer = _Writer()
    tree = {
        "linkmix": versions()["linkmix"],
        "estimator": writer.encode(estimator),
        "notes": writer.encode(dict(notes)),
    }
    header = json.dumps({**tree, "estimators": writer.estimators, "arrays": writer.places}).encode()
    arrays = bytes(writer.arrays)
    body = _BEGINNING.pack(MAGIC, FORMAT, len(header), len(arrays)) + header + arrays
    return body + hashlib.sha256(body).digest()


def from_bytes(path: Path, content: bytes, kinds: Sequence[type], parts: Sequence[type] = ()) -> SavedModel:
    """Read a model from the content of a file; the inverse of `to_bytes`.

    Parameters
    ----------
    path : path
        Where the content comes from, for error messages.
    content : bytes
        Content of a model file.
    kinds, parts : sequence of type
        Classes of estimators that it may hold, and that those may contain.

    Returns
    -------
    SavedModel
    """
    if not content.startswith(MAGIC):
        cut_off = content and MAGIC.startswith(content)
        what = "is cut off" if cut_off else "is empty" if not content else "is not a linkmix model file"
        raise BadFile(path, f"{what}: give a file that was written by save, or by linkmix fit")
    if len(content) < _BEGINNING.size:
        raise BadFile(path, f"is cut off after {len(content)} bytes: copy it again")
    _, version, header_size, arrays_size = _BEGINNING.unpack_from(content)
    if version > FORMAT:
        raise BadFile(
            path, f"has format {version}, and this linkmix reads formats up to {FORMAT}: install a newer linkmix"
        )
    size = _BEGINNING.size + header_size + arrays_size + _CHECKSUM_SIZE
    if len(content) < size:
        raise BadFile(path, f"is cut off: it has {len(content)} of {size} bytes: copy it again")
    body = content[:-_CHECKSUM_SIZE]
    if len(content) != size or hashlib.sha256(body).digest() != content[-_CHECKSUM_SIZE:]:
        raise BadFile(path, "was changed after it was written (its checksum does not match): copy or fit it again")
    start = _BEGINNING.size
    try:
        header = json.loads(body[start : start + header_size])
        records = header["estimators"]
        name = records[header["estimator"]["$estimator"]]["class"]
        if name not in [kind.__name__ for kind in kinds]:
            expected = " or ".join(kind.__name__ for kind in kinds)
            raise _Foreign(f"holds a model of class {name}, not {expected}: load it with the class that wrote it")
        reader = _Reader(header["arrays"], records, memoryview(body)[start + header_size :], (*kinds, *parts))
        return SavedModel(reader.decode(header["estimator"]), reader.decode(header["notes"]), str(header["linkmix"]))
    except _Foreign as error:
        raise BadFile(path, str(error)) from None
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError) as error:
        # The checksum is right, so this was written by something other than a known linkmix.
        raise BadFile(
            path, f"holds a model that cannot be read ({type(error).__name__}: {error}): fit it again"
        ) from None


class _Foreign(ValueError):
    """The file is intact, but holds something that this linkmix does not know."""


class _Writer:
    """Turns values into a tree for JSON, and collects the arrays separately."""

    def __init__(self) -> None:
        self.arrays = bytearray()
        self.places: list[dict[str, Any]] = []
        self.estimators: list[dict[str, Any]] = []
        self._seen: dict[int, tuple[Any, dict[str, int]]] = {}  # keeps the values alive, so that ids stay unique

    def encode(self, value: Any) -> Any:
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"$float": str(value)}
        if id(value) in self._seen:
            return self._seen[id(value)][1]
        if isinstance(value, np.generic) and value.dtype.kind in "biuf":
            return {"$scalar": self._array(np.asarray(value))}
        if isinstance(value, np.ndarray):
            return self._once(value, {"$array": self._array(value)})
        if isinstance(value, list):
            return [self.encode(item) for item in value]
        if isinstance(value, tuple):
            return {"$tuple": [self.encode(item) for item in value]}
        if isinstance(value, Mapping):
            if all(isinstance(key, str) and not key.startswith("$") for key in value):
                return {key: self.encode(item) for key, item in value.items()}
            return {"$mapping": [[self.encode(key), self.encode(item)] for key, item in value.items()]}
        if isinstance(value, RandomState):
            return {"$random": self.encode(value.get_state(legacy=False))}
        if isinstance(value, Generator) and type(value.bit_generator).__name__ in BIT_GENERATORS:
            return {"$generator": self.encode(value.bit_generator.state)}
        kind = VALUES.get(type(value).__name__)
        if kind is not None and type(value) is kind:
            settings = {field.name: self.encode(getattr(value, field.name)) for field in fields(kind)}
            return {"$value": [kind.__name__, settings]}
        if hasattr(value, "get_params") and type(value).__module__.startswith("linkmix."):
            return self._estimator(value)
        raise ValueError(
            f"{value!r} of class {type(value).__name__} cannot be saved in a model file, which holds only parts of "
            "linkmix and plain values: save its parameters yourself, or use a part of linkmix"
        )

    def _estimator(self, value: Any) -> dict[str, int]:
        number = len(self.estimators)
        self.estimators.append({})
        reference = self._once(value, {"$estimator": number})
        settings = value.get_params(deep=False)
        fitted = {name: item for name, item in vars(value).items() if name not in settings and not _is_far(name, item)}
        self.estimators[number] = {
            "class": type(value).__name__,
            "settings": self.encode(settings),
            "fitted": self.encode(fitted),
        }
        return reference

    def _once(self, value: Any, reference: dict[str, int]) -> dict[str, int]:
        self._seen[id(value)] = (value, reference)
        return reference

    def _array(self, array: Array) -> int:
        if array.dtype.kind == "O":
            self.places.append({"items": [self.encode(item) for item in array.ravel().tolist()], "shape": array.shape})
            return len(self.places) - 1
        inner = [kind for kind, *_ in (array.dtype.fields or {}).values()]
        for kind in inner or [array.dtype]:
            if kind.kind not in _TYPES:
                raise ValueError(f"an array of {array.dtype} cannot be saved in a model file: use numbers or strings")
        little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        types = little.dtype.descr if little.dtype.names else little.dtype.str
        self.arrays += b"\0" * (-len(self.arrays) % _ALIGNMENT)
        self.places.append({"type": types, "shape": array.shape, "at": len(self.arrays)})
        self.arrays += little.tobytes()
        return len(self.places) - 1


def _is_far(name: str, value: Any) -> bool:
    """Whether these are labels outside memory, in a scratch file or on a cluster, which a model file does not hold."""
    return name == "labels_" and type(value) is not np.ndarray


class _Reader:
    """Turns the tree back into values: plain ones, known classes, and nothing else."""

    def __init__(self, places: list[Any], estimators: list[Any], arrays: memoryview, classes: Sequence[type]) -> None:
        self._places, self._records, self._arrays = places, estimators, arrays
        self._classes = {kind.__name__: kind for kind in classes}
        self._made: dict[int, Any] = {}

    def decode(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.decode(item) for item in value]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            [(key, item)] = value.items()
            if key.startswith("$"):
                return self._special(key, item)
        return {key: self.decode(item) for key, item in value.items()}

    def _special(self, key: str, item: Any) -> Any:
        match key:
            case "$float":
                return float(item)
            case "$array":
                return self._array(item)
            case "$scalar":
                return self._array(item)[()]
            case "$tuple":
                return tuple(self.decode(part) for part in item)
            case "$mapping":
                return {self.decode(name): self.decode(part) for name, part in item}
            case "$random":
                random = RandomState()
                random.set_state(self.decode(item))
                return random
            case "$generator":
                state = self.decode(item)
                generator = BIT_GENERATORS[state["bit_generator"]]()
                generator.state = state
                return Generator(generator)
            case "$value":
                name, settings = item
                if name not in VALUES:
                    raise _Foreign(f"holds a {name}, which this linkmix does not know: install a newer linkmix")
                kind = VALUES[name]
                return kind(**self._settings(name, settings, [field.name for field in fields(kind)]))
            case "$estimator":
                return self._estimator(item)
        raise _Foreign(f"holds a value of kind {key!r}, which this linkmix does not know: install a newer linkmix")

    def _estimator(self, number: int) -> Any:
        if number not in self._made:
            record = self._records[number]
            name = record["class"]
            if name not in self._classes:
                raise _Foreign(f"holds a part of class {name}, which this linkmix does not know: install a newer one")
            kind = self._classes[name]
            names = kind._get_param_names()  # type: ignore[attr-defined]
            self._made[number] = estimator = kind(**self._settings(name, record["settings"], names))
            vars(estimator).update(self.decode(record["fitted"]))
        return self._made[number]

    def _settings(self, owner: str, settings: Any, known: Sequence[str]) -> dict[str, Any]:
        """Settings as values; settings that are newer than the file take their defaults."""
        for name in settings:
            if name not in known:
                raise _Foreign(
                    f"holds a {owner} with the setting {name!r}, which this linkmix does not know: install a newer one"
                )
        return {name: self.decode(item) for name, item in settings.items()}

    def _array(self, number: int) -> Array:
        key = -1 - number
        if key not in self._made:
            self._made[key] = self._read_array(self._places[number])
        array: Array = self._made[key]
        return array

    def _read_array(self, place: dict[str, Any]) -> Array:
        shape = tuple(int(length) for length in place["shape"])
        if "items" in place:
            items = np.empty(len(place["items"]), dtype=object)
            items[:] = self.decode(place["items"])
            return items.reshape(shape)
        given = place["type"]
        kind = np.dtype(given if isinstance(given, str) else [(str(name), str(of)) for name, of in given])
        size, at = math.prod(shape), int(place["at"])
        if kind.hasobject or min(shape, default=0) < 0 or at < 0 or at + size * kind.itemsize > len(self._arrays):
            raise ValueError("an array lies outside the file")
        read = np.frombuffer(self._arrays, dtype=kind, count=size, offset=at).reshape(shape)
        return np.array(read, dtype=kind.newbyteorder("="))
