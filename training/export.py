"""Makes the ONNX file of a tuned encoder: BERT's graph by hand, weights to int8, a scale for each channel.

python -m training.export WEIGHTS [--out training/out/model.onnx]

Prints the file's sha256, its size, its average precision on the development stores, and the lowest and mean cosine of
its vectors to torch's.
Each text is embedded by itself: one scale for a whole batch would make a text's vector depend on the others.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping
from pathlib import Path

import click
import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

from training.base import TOKENS, VOCABULARY, load
from training.bert import DIMS, HEADS, depth
from training.examples import examples, texts_of
from training.train import precision, vectors
from training.vectors import Embedder

Arrays = Mapping[str, NDArray[np.float32]]
OPSET, IR = 17, 8
CHECKED = 400
"""Texts whose vectors are compared."""


class Graph:
    """Nodes and weights as they are added."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def weight(self, name: str, value: NDArray[np.generic]) -> str:
        """Add a constant; return its name."""
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def add(self, kind: str, inputs: list[str], name: str, **attributes: object) -> str:
        """Add a node; return the name of its output."""
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def linear(self, given: str, weight: NDArray[np.float32], bias: NDArray[np.float32], name: str) -> str:
        """Add a product with a weight, stored as torch stores it, and a bias."""
        product = self.add("MatMul", [given, self.weight(f"{name}.w", weight.T)], f"{name}.product")
        return self.add("Add", [product, self.weight(f"{name}.b", bias)], name)

    def norm(self, given: str, arrays: Arrays, source: str, name: str) -> str:
        """Add a layer norm."""
        inputs = [given, self.weight(f"{name}.w", arrays[f"{source}.weight"])]
        inputs.append(self.weight(f"{name}.b", arrays[f"{source}.bias"]))
        return self.add("LayerNormalization", inputs, name, axis=-1, epsilon=1e-12)


def graph(arrays: Arrays) -> onnx.ModelProto:
    """Return the float model of weights under their published names."""
    made = Graph()
    states = _embeddings(made, arrays)
    hidden = _mask(made)
    made.weight("heads", np.array([0, 0, HEADS, DIMS // HEADS], dtype=np.int64))
    made.weight("joined", np.array([0, 0, DIMS], dtype=np.int64))
    for name, value in (("scale", 1 / np.sqrt(DIMS // HEADS)), ("root", np.sqrt(2)), ("one", 1.0), ("half", 0.5)):
        made.weight(name, np.array(value, dtype=np.float32))
    for number in range(depth(arrays)):
        states = _layer(made, arrays, states, hidden, number)
    made.add("Identity", [states], "last_hidden_state")
    names = ("input_ids", "attention_mask", "token_type_ids")
    body = helper.make_graph(
        made.nodes, "bert",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"]) for name in names],
        [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "sequence", DIMS])],
        made.weights,
    )  # fmt: skip
    model = helper.make_model(body, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR)
    onnx.checker.check_model(model)
    return model


def _embeddings(made: Graph, arrays: Arrays) -> str:
    tables = {kind: arrays[f"embeddings.{kind}_embeddings.weight"] for kind in ("word", "position", "token_type")}
    words = made.add("Gather", [made.weight("words", tables["word"]), "input_ids"], "of_words")
    types = made.add("Gather", [made.weight("types", tables["token_type"]), "token_type_ids"], "of_types")
    # As a slice whose end is a shape: ONNX Runtime breaks a range that it fuses itself.
    length = made.add("Shape", ["input_ids"], "length", start=1, end=2)
    zero = made.weight("zero", np.array([0], dtype=np.int64))
    places = made.add("Slice", [made.weight("places", tables["position"]), zero, length, zero], "of_places")
    both = made.add("Add", [words, types], "words_and_types")
    return made.norm(made.add("Add", [both, places], "summed"), arrays, "embeddings.LayerNorm", "embedded")


def _mask(made: Graph) -> str:
    axes = made.weight("axes", np.array([1, 2], dtype=np.int64))
    seen = made.add("Cast", ["attention_mask"], "seen", to=TensorProto.FLOAT)
    wide = made.add("Unsqueeze", [seen, axes], "seen_wide")
    hidden = made.add("Sub", [made.weight("all", np.array(1.0, dtype=np.float32)), wide], "hidden")
    return made.add("Mul", [hidden, made.weight("low", np.array(-1e9, dtype=np.float32))], "hidden_low")


def _layer(made: Graph, arrays: Arrays, states: str, hidden: str, number: int) -> str:
    source, name = f"encoder.layer.{number}", f"l{number}"
    split: dict[str, str] = {}
    for part, order in (("query", [0, 2, 1, 3]), ("key", [0, 2, 3, 1]), ("value", [0, 2, 1, 3])):
        at = f"{source}.attention.self.{part}"
        flat = made.linear(states, arrays[f"{at}.weight"], arrays[f"{at}.bias"], f"{name}.{part}")
        shaped = made.add("Reshape", [flat, "heads"], f"{name}.{part}.heads")
        split[part] = made.add("Transpose", [shaped], f"{name}.{part}.turned", perm=order)
    alike = made.add("MatMul", [split["query"], split["key"]], f"{name}.alike")
    scaled = made.add("Mul", [alike, "scale"], f"{name}.scaled")
    shares = made.add("Softmax", [made.add("Add", [scaled, hidden], f"{name}.masked")], f"{name}.shares", axis=-1)
    mixed = made.add("MatMul", [shares, split["value"]], f"{name}.mixed")
    turned = made.add("Transpose", [mixed], f"{name}.turned", perm=[0, 2, 1, 3])
    joined = made.add("Reshape", [turned, "joined"], f"{name}.joined")
    at = f"{source}.attention.output"
    out = made.linear(joined, arrays[f"{at}.dense.weight"], arrays[f"{at}.dense.bias"], f"{name}.out")
    states = made.norm(made.add("Add", [out, states], f"{name}.sum1"), arrays, f"{at}.LayerNorm", f"{name}.norm1")
    at = f"{source}.intermediate.dense"
    inner = made.linear(states, arrays[f"{at}.weight"], arrays[f"{at}.bias"], f"{name}.inner")
    erf = made.add("Erf", [made.add("Div", [inner, "root"], f"{name}.div")], f"{name}.erf")
    gate = made.add("Mul", [inner, made.add("Add", [erf, "one"], f"{name}.erf1")], f"{name}.gate")
    gelu = made.add("Mul", [gate, "half"], f"{name}.gelu")
    at = f"{source}.output"
    outer = made.linear(gelu, arrays[f"{at}.dense.weight"], arrays[f"{at}.dense.bias"], f"{name}.outer")
    return made.norm(made.add("Add", [outer, states], f"{name}.sum2"), arrays, f"{at}.LayerNorm", f"{name}.norm2")


def write(arrays: Arrays, path: Path) -> None:
    """Write the int8 file."""
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "float.onnx"
        onnx.save(graph(arrays), str(plain))
        quantize_dynamic(plain, path, weight_type=QuantType.QInt8, per_channel=True, reduce_range=True)


@click.command()
@click.argument("weights", type=click.Path(exists=True, path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), default=Path(__file__).parent / "out" / "model.onnx")
def main(weights: Path, out: Path) -> None:
    """Export an encoder."""
    tuned = load(weights)
    out.parent.mkdir(parents=True, exist_ok=True)
    write({name: value.float().numpy() for name, value in tuned.weights.items()}, out)
    tuned.tokenizer.save(str(out.with_name(VOCABULARY)))
    content = out.read_bytes()
    click.echo(f"{out}: {len(content)} bytes, sha256 {hashlib.sha256(content).hexdigest()}")
    judged = examples("development")
    texts = texts_of(judged)
    by_text = dict(zip(texts, Embedder(out).embed(texts), strict=True))
    texts = [text for text in texts[::7] if len(tuned.ids(text)) < TOKENS][:CHECKED]
    alike = (np.stack([by_text[text] for text in texts]) * vectors(tuned, texts).numpy()).sum(axis=1)
    click.echo(f"average precision: {precision(by_text, judged)}")
    click.echo(f"cosine to torch over {len(texts)} texts: lowest {alike.min():.4f}, mean {alike.mean():.4f}")


if __name__ == "__main__":
    main()
