#!/usr/bin/env python3
"""Writes OnnxOps.td and schema_table.rs from the operator schemas of the `onnx` package: the newest version of each
ai.onnx operator.

    .venv/bin/python dialect/ir/td/generate_onnx_ops.py dialect/ir/td/OnnxOps.td dialect/onnx/src/schema_table.rs

Optional operands and results are always there and have type `none` when absent, as in onnx-mlir.
"""

import sys

import numpy
import onnx
from onnx import AttributeProto, TensorProto, defs

# Written by hand in Onnx.td, because they have a syntax or a meaning of their own.
BY_HAND = {"Constant", "ConstantOfShape"}

# Carried as unregistered operators with regions or types of their own.
OPAQUE = {"If", "Loop", "Scan", "SequenceMap", "Optional"}

# Two of these with the same operands are not the same value.
IMPURE = {"Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}

ELEMENT_TYPES = {
    "bfloat16": "BF16", "bool": "I1", "complex128": "Complex<F64>", "complex64": "Complex<F32>", "double": "F64",
    "float": "F32", "float16": "F16", "float4e2m1": "F4E2M1FN", "float6e2m3": "F6E2M3FN", "float6e3m2": "F6E3M2FN",
    "float8e4m3fn": "F8E4M3FN",
    "float8e4m3fnuz": "F8E4M3FNUZ", "float8e5m2": "F8E5M2", "float8e5m2fnuz": "F8E5M2FNUZ", "float8e8m0": "F8E8M0FNU",
    "int16": "I16", "int2": "I<2>", "int32": "I32", "int4": "I<4>", "int64": "I64", "int8": "I8",
    "string": "ONNX_String", "uint16": "UI16", "uint2": "UI<2>", "uint32": "UI32", "uint4": "UI<4>", "uint64": "UI64",
    "uint8": "UI8",
}  # fmt: skip

ATTRIBUTE_KINDS = {
    "INT": "SI64Attr", "INTS": "I64ArrayAttr", "FLOAT": "F32Attr", "FLOATS": "F32ArrayAttr", "STRING": "StrAttr",
    "STRINGS": "StrArrayAttr", "TENSOR": "AnyAttr", "SPARSE_TENSOR": "AnyAttr",
}  # fmt: skip

# The oldest opset that anything is written in: every tool of today reads it.
FLOOR = 18

# Versions that changed what an operator computes, or what values its attributes may have, beyond what schemas say; and the
# oldest that ONNX's reference implementation has.
CHANGED = {("AveragePool", 19), ("GroupNormalization", 21), ("Pad", 19), ("Resize", 19), ("DequantizeLinear", 19)}

KINDS = {
    "FLOAT": "Float", "INT": "Int", "STRING": "Str", "TENSOR": "Tensor", "GRAPH": "Graph", "FLOATS": "Floats",
    "INTS": "Ints", "STRINGS": "Strs", "SPARSE_TENSOR": "SparseTensor", "TYPE_PROTO": "Type",
}  # fmt: skip

TYPE_CODES = {name.lower(): code for name, code in TensorProto.DataType.items()}

FormalParameterOption = defs.OpSchema.FormalParameterOption


def value_constraint(schema, parameter):
    """The ODS type constraint of one operand or result."""
    constraints = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    allowed = constraints.get(parameter.type_str, [parameter.type_str])
    tensors = sorted(ELEMENT_TYPES[t[len("tensor(") : -1]] for t in allowed if t.startswith("tensor("))
    kinds = [f"TensorOf<[{', '.join(tensors)}]>"] if tensors else []
    if any(t.startswith("seq(") for t in allowed):
        kinds.append("ONNX_Seq")
    if any(t.startswith("optional(") for t in allowed):
        kinds.append("ONNX_Opt")
    if parameter.option == FormalParameterOption.Optional:
        kinds.append("NoneType")
    constraint = kinds[0] if len(kinds) == 1 else f"AnyTypeOf<[{', '.join(kinds)}]>"
    return f"Variadic<{constraint}>" if parameter.option == FormalParameterOption.Variadic else constraint


def attribute_constraint(op, attribute):
    if (op, attribute.name) in {("Cast", "to"), ("BitCast", "to")}:
        return "TypeAttr"
    kind = ATTRIBUTE_KINDS[attribute.type.name]
    default = attribute.default_value
    if default.name:
        if default.type == AttributeProto.INT:
            return f'DefaultValuedAttr<{kind}, "{default.i}">'
        if default.type == AttributeProto.FLOAT:
            return f'DefaultValuedAttr<{kind}, "{default.f:.9g}">'
        if default.type == AttributeProto.STRING:
            return f'DefaultValuedStrAttr<{kind}, "{default.s.decode()}">'
    return kind if attribute.required else f"OptionalAttr<{kind}>"


def definition(schema):
    traits = [] if schema.name in IMPURE else ["Pure"]
    taken = {p.name for p in schema.inputs} | set(schema.attributes)
    arguments = [f"{value_constraint(schema, p)}:${p.name}" for p in schema.inputs]
    arguments += [f"{attribute_constraint(schema.name, a)}:${name}" for name, a in sorted(schema.attributes.items())]
    # An operand and a result may share a name in ONNX, not in C++.
    results = [f"{value_constraint(schema, p)}:${p.name if p.name not in taken else 'out_' + p.name}" for p in schema.outputs]
    return "\n".join([
        f'def ONNX_{schema.name}Op : ONNX_Op<"{schema.name}", [{", ".join(traits)}]> {{',
        f'  let summary = "ONNX {schema.name}, opset {schema.since_version}";',
        "  let arguments = (ins" + ("\n    " + ",\n    ".join(arguments) if arguments else "") + ");",
        "  let results = (outs" + ("\n    " + ",\n    ".join(results) if results else "") + ");",
        "}",
    ])


def older_version(old, new):
    """How a node may be written in an older version of its operator; None where every node means something else."""
    def default(attribute):
        return attribute.default_value.SerializeToString()

    if len(old.inputs) > len(new.inputs) or len(old.outputs) != len(new.outputs):
        return None
    parameters = list(zip(old.inputs, new.inputs)) + list(zip(old.outputs, new.outputs))
    added = new.inputs[len(old.inputs) :]
    same = all(a.option == b.option for a, b in parameters) and all(p.option == FormalParameterOption.Optional for p in added)
    kept = all(
        name in new.attributes and a.type == new.attributes[name].type and default(a) == default(new.attributes[name])
        for name, a in old.attributes.items()
    )
    if not same or not kept:
        return None
    types = 0
    for a, b in parameters:
        for type_str in set(b.types) - set(a.types):
            types |= 1 << TYPE_CODES[type_str.split("(")[-1].rstrip(")")]
    return {"inputs": len(old.inputs), "attributes": sorted(set(new.attributes) - set(old.attributes)), "types": types}


def versions(schema, history):
    """The versions of an operator in which a node may be written, newest first, down to the oldest opset."""
    rows = [f"Version::newest({schema.since_version}, {len(schema.inputs)})"]
    newer = schema
    for old in sorted((s for s in history if s.since_version < schema.since_version), key=lambda s: -s.since_version):
        form = older_version(old, schema)
        if newer.since_version <= FLOOR or (schema.name, newer.since_version) in CHANGED or form is None:
            break
        attributes = ", ".join(f'"{name}"' for name in form["attributes"])
        rows.append(
            f"Version {{ since: {old.since_version}, inputs: {form['inputs']}, lacks_attributes: &[{attributes}], "
            f"lacks_types: {form['types']:#x} }}"
        )
        newer = old
    return ", ".join(rows)


def default_value(attribute):
    default = attribute.default_value
    if default.name and default.type == AttributeProto.INT:
        return f"Some(Default::Int({default.i}))"
    if default.name and default.type == AttributeProto.FLOAT:
        return f"Some(Default::Float({numpy.float32(default.f)!s}))"
    if default.name and default.type == AttributeProto.STRING:
        return f'Some(Default::Str("{default.s.decode()}"))'
    return "None"


def table_row(schema, history):
    def arity(parameters):
        variadic = any(p.option == FormalParameterOption.Variadic for p in parameters)
        required = sum(p.option == FormalParameterOption.Single for p in parameters)
        return f"Arity {{ required: {required}, named: {len(parameters) - variadic}, variadic: {str(variadic).lower()} }}"

    attributes = ", ".join(
        f'Attribute {{ name: "{name}", kind: Kind::{KINDS[attribute.type.name]}, '
        f"required: {str(attribute.required).lower()}, default: {default_value(attribute)} }}"
        for name, attribute in sorted(schema.attributes.items())
    )
    return (
        f'    Schema {{ name: "{schema.name}", inputs: {arity(schema.inputs)}, outputs: {arity(schema.outputs)}, '
        f"attributes: &[{attributes}], versions: &[{versions(schema, history)}] }},\n"
    )


def main(td_path, table_path):
    schemas = {s.name: s for s in defs.get_all_schemas() if s.domain == "" and not s.deprecated}
    history = {}
    for schema in defs.get_all_schemas_with_history():
        if schema.domain == "" and not schema.deprecated:
            history.setdefault(schema.name, []).append(schema)
    opset = defs.onnx_opset_version()
    ir_versions = [(row[2], row[1]) for row in onnx.helper.VERSION_TABLE if row[2] >= FLOOR]
    note = f"// Written by generate_onnx_ops.py from the schemas of opset {opset}; do not edit.\n\n"
    names = sorted(set(schemas) - BY_HAND - OPAQUE)
    with open(td_path, "w") as out:
        out.write(note)
        out.write("\n\n".join(definition(schemas[name]) for name in names) + "\n")
    with open(table_path, "w") as out:
        out.write(note)
        out.write("use super::{Arity, Attribute, Default, Kind, Schema, Version};\n\n")
        out.write(f"pub(super) const OPSET: i64 = {opset};\n")
        out.write(f"pub(super) const IR_VERSION: i64 = {onnx.IR_VERSION};\n")
        out.write(f"pub(super) const OLDEST_OPSET: i64 = {FLOOR};\n\n")
        out.write("/// Opsets, each with the IR version that it came with.\n#[rustfmt::skip]\n")
        pairs = ", ".join(f"({opset}, {version})" for opset, version in sorted(set(ir_versions)))
        out.write(f"pub(super) const IR_VERSIONS: &[(i64, i64)] = &[{pairs}];\n\n")
        out.write("#[rustfmt::skip]\npub(super) const SCHEMAS: &[Schema] = &[\n")
        out.writelines(table_row(schemas[name], history[name]) for name in sorted(schemas))
        out.write("];\n")


main(*sys.argv[1:])
