"""A fitted model as an ONNX graph: ``PredictionModule`` with one input per column, and text for categories."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from seqatt.prediction.inputs import OTHER
from seqatt.version import __version__

if TYPE_CHECKING:
    from seqatt.prediction.fitted_model import FittedModel

OPSET, ML_OPSET, IR_VERSION = 17, 3, 8  # of 2022: every runtime since then reads them
LABEL_TYPES = {
    "b": TensorProto.BOOL,
    "i": TensorProto.INT64,
    "f": TensorProto.DOUBLE,
    "O": TensorProto.STRING,
}


def onnx_bytes(model: FittedModel) -> bytes:
    """The content of an ``.onnx`` file.

    Inputs are (rows,): numbers as float64, NaN where missing; categories as text, empty where missing. Outputs are
    "label" and "probabilities" (rows, classes), or "prediction"; one that has the name of an input gets an underscore.
    """
    graph = _Graph(model.inputs.names)
    outputs = _add_outputs(graph, model, _add_networks(graph, model))
    graph.inputs.sort(key=lambda each: model.inputs.names_in_table.index(each.name))
    made = helper.make_model(
        helper.make_graph(graph.nodes, "seqatt", graph.inputs, outputs, graph.constants),
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)],
        ir_version=IR_VERSION,
        producer_name="seqatt",
        producer_version=__version__,
    )
    facts = model.metadata().items()
    helper.set_model_props(made, {key: v if isinstance(v, str) else json.dumps(v) for key, v in facts})
    onnx.checker.check_model(made, full_check=True)
    return bytes(made.SerializeToString())


class _Graph:
    """Nodes, constants and inputs of a graph; no value has the name of an input."""

    def __init__(self, names: list[str]) -> None:
        self._taken = set(names)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []

    def unused(self, name: str) -> str:
        """The name, with underscores behind it until it is no other's."""
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name

    def add(self, operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add a node; returns the name of its output."""
        output = output or self.unused(f"{operator}_{len(self.nodes)}")
        self.nodes.append(helper.make_node(operator, inputs, [output], **attributes))
        return output

    def constant(self, values: Any, dtype: Any = np.float64) -> str:
        name = self.unused(f"constant_{len(self.constants)}")
        self.constants.append(numpy_helper.from_array(np.asarray(values, dtype=dtype), name))
        return name

    def input(self, name: str, element_type: int) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, element_type, ["rows"]))
        return name


def _add_networks(graph: _Graph, model: FittedModel) -> str:
    """The mean output (rows, outputs) of the networks; the steps are those of ``PredictionModule.outputs``."""
    module, inputs = model.module, model.inputs
    number_parts, codes = [], []
    axis = graph.constant([1], np.int64)
    for position, name in enumerate(inputs.names):
        if position in inputs.categories:
            values = inputs.category_codes()[name]
            lookup: dict[str, Any] = {
                "keys_strings": list(values),
                "values_int64s": list(values.values()),
                "default_int64": OTHER,
            }
            text = graph.input(name, TensorProto.STRING)
            codes.append(graph.add("LabelEncoder", text, domain="ai.onnx.ml", **lookup))
        else:
            number_parts.append(graph.add("Unsqueeze", graph.input(name, TensorProto.DOUBLE), axis))
    parts = []
    if number_parts:
        parts = _add_numbers(graph, module, graph.add("Concat", *number_parts, axis=1))
    for category, rows in zip(module.one_hot, module.one_hot_rows, strict=True):
        parts.append(graph.add("Gather", graph.constant(rows), codes[category], axis=0))
    if parts:
        encoded = graph.add("Concat", *parts, axis=1)
        sums = graph.add("MatMul", encoded, graph.constant(module.weights[0]))
        sums = graph.add("Add", sums, graph.constant(module.biases[0]))
    else:
        sums = graph.constant(module.biases[0])
    for category, table, weights in zip(
        module.coded, module.embeddings, module.embedding_weights, strict=True
    ):
        embedded = graph.add("Gather", graph.constant(table), codes[category], axis=1)
        sums = graph.add("Add", sums, graph.add("MatMul", embedded, graph.constant(weights)))
    for weights, biases in zip(module.weights[1:], module.biases[1:], strict=True):
        sums = graph.add("MatMul", _add_activation(graph, module.activation, sums), graph.constant(weights))
        sums = graph.add("Add", sums, graph.constant(biases))
    scaled = graph.add(
        "Mul", graph.add("ReduceMean", sums, axes=[0], keepdims=0), graph.constant(module.output_scale)
    )
    return graph.add("Add", scaled, graph.constant(module.output_shift))


def _add_numbers(graph: _Graph, module: Any, numbers: str) -> list[str]:
    """Standardised numbers, and indicators of missing ones."""
    missing = graph.add("IsNaN", numbers)
    if module.logarithms:
        one_more = graph.add("Add", graph.add("Abs", numbers), graph.constant(1.0))
        logarithms = graph.add("Mul", graph.add("Sign", numbers), graph.add("Log", one_more))
        which = np.isin(np.arange(len(module.shift)), module.logarithms)
        numbers = graph.add("Where", graph.constant(which, bool), logarithms, numbers)
    standard = graph.add(
        "Div", graph.add("Sub", numbers, graph.constant(module.shift)), graph.constant(module.scale)
    )
    standard = graph.add("Max", standard, graph.constant(module.lowest))
    standard = graph.add("Min", standard, graph.constant(module.highest))
    parts = [graph.add("Where", missing, graph.constant(0.0), standard)]
    if module.indicated:
        flags = graph.add("Cast", missing, to=TensorProto.DOUBLE)
        flags = graph.add("Gather", flags, graph.constant(module.indicated, np.int64), axis=1)
        flags = graph.add("Sub", flags, graph.constant(module.indicator_shift))
        parts.append(graph.add("Div", flags, graph.constant(module.indicator_scale)))
    return parts


def _add_activation(graph: _Graph, activation: str, sums: str) -> str:
    if activation == "silu":
        return graph.add("Mul", sums, graph.add("Sigmoid", sums))
    if activation == "gelu":
        # onnxruntime has the error function of float32 alone.
        scaled = graph.add("Mul", sums, graph.constant(0.5**0.5))
        error = graph.add("Erf", graph.add("Cast", scaled, to=TensorProto.FLOAT))
        share = graph.add("Add", graph.add("Cast", error, to=TensorProto.DOUBLE), graph.constant(1.0))
        return graph.add("Mul", graph.add("Mul", sums, share), graph.constant(0.5))
    return graph.add({"relu": "Relu", "tanh": "Tanh"}[activation], sums)


def _add_outputs(graph: _Graph, model: FittedModel, outputs: str) -> list[Any]:
    """Labels and probabilities, or predicted values, from the outputs of the networks."""
    if model.task == "regression":
        prediction = graph.unused("prediction")
        graph.add("Identity", outputs, output=prediction)
        return [helper.make_tensor_value_info(prediction, TensorProto.DOUBLE, ["rows", model.outputs])]
    label, probabilities = graph.unused("label"), graph.unused("probabilities")
    if model.task == "multiclass":
        graph.add("Softmax", outputs, axis=1, output=probabilities)
    elif model.task == "binary":
        both = graph.add("Concat", graph.add("Neg", outputs), outputs, axis=1)
        graph.add("Sigmoid", both, output=probabilities)
    else:
        graph.add("Sigmoid", outputs, output=probabilities)
    shape: list[str | int] = ["rows"]
    if model.classes is None:
        above = graph.add("Greater", outputs, graph.constant(0.0))
        graph.add("Cast", above, to=TensorProto.INT64, output=label)
        label_type, shape = TensorProto.INT64, ["rows", model.outputs]
    else:
        classes = _plain_labels(model.classes)
        label_type = LABEL_TYPES[classes.dtype.kind]
        best = graph.add("ArgMax", probabilities, axis=1, keepdims=0)
        graph.add("Gather", graph.constant(classes, classes.dtype), best, output=label)
    return [
        helper.make_tensor_value_info(label, label_type, shape),
        helper.make_tensor_value_info(probabilities, TensorProto.DOUBLE, ["rows", model.outputs]),
    ]


def _plain_labels(classes: Any) -> Any:
    """Labels as booleans, int64, float64 or objects that are text."""
    labels = np.array(classes.tolist())  # objects as what they are
    kinds = {"b": bool, "i": np.int64, "u": np.int64, "f": np.float64}
    kind = kinds.get(labels.dtype.kind)
    return np.array(list(map(str, classes)), dtype=object) if kind is None else labels.astype(kind)
