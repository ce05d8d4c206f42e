#!/usr/bin/env python3
"""Generates OnnxOps.td and schema_table.rs from the operator schemas of the `onnx` package: the newest version of each
ai.onnx operator.

    .venv/bin/python dialect/ir/td/generate_onnx_ops.py dialect/ir/td/OnnxOps.td dialect/onnx/src/schema_table.rs

Absent optional operands and results have type `none`, as in onnx-mlir.
"""

import sys

import numpy
import onnx
from onnx import AttributeProto, TensorProto, defs

# Defined by hand in Onnx.td, because they have custom syntax or semantics.
BY_HAND = {"Constant", "ConstantOfShape"}

# Represented as unregistered operators, because they have regions or special types.
OPAQUE = {"If", "Loop", "Scan", "SequenceMap", "Optional"}

# Not `Pure`: two of these with the same operands must not be merged.
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

# Oldest opset that models are exported in; current tools all support it.
FLOOR = 18

# Versions that changed an operator's semantics or the valid values of its attributes, which schemas do not record, and the
# oldest version that ONNX's reference implementation has.
CHANGED = {("AveragePool", 19), ("GroupNormalization", 21), ("Pad", 19), ("Resize", 19), ("DequantizeLinear", 19)}

KINDS = {
    "FLOAT": "Float", "INT": "Int", "STRING": "Str", "TENSOR": "Tensor", "GRAPH": "Graph", "FLOATS": "Floats",
    "INTS": "Ints", "STRINGS": "Strs", "SPARSE_TENSOR": "SparseTensor", "TYPE_PROTO": "Type",
}  # fmt: skip

TYPE_CODES = {name.lower(): code for name, code in TensorProto.DataType.items()}

FormalParameterOption = defs.OpSchema.FormalParameterOption


def value_constraint(schema, parameter):
    """Returns the ODS type constraint of an operand or a result."""
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
    """Returns the ODS constraint of an attribute."""
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
    """Returns the ODS definition of an operator."""
    traits = [] if schema.name in IMPURE else ["Pure"]
    taken = {p.name for p in schema.inputs} | set(schema.attributes)
    arguments = [f"{value_constraint(schema, p)}:${p.name}" for p in schema.inputs]
    arguments += [f"{attribute_constraint(schema.name, a)}:${name}" for name, a in sorted(schema.attributes.items())]
    # In ONNX an operand and a result may share a name; in ODS they may not.
    results = [f"{value_constraint(schema, p)}:${p.name if p.name not in taken else 'out_' + p.name}" for p in schema.outputs]
    return "\n".join([
        f'def ONNX_{schema.name}Op : ONNX_Op<"{schema.name}", [{", ".join(traits)}]> {{',
        f'  let summary = "ONNX {schema.name}, opset {schema.since_version}";',
        "  let arguments = (ins" + ("\n    " + ",\n    ".join(arguments) if arguments else "") + ");",
        "  let results = (outs" + ("\n    " + ",\n    ".join(results) if results else "") + ");",
        "}",
    ])


def older_version(old, new):
    """Returns the restrictions on nodes exported as an older version of their operator; None if no node can be."""
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
    """Returns the versions of an operator that nodes can be exported as, newest first, down to the oldest opset."""
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
    """Returns the default of an attribute as a Rust expression."""
    default = attribute.default_value
    if default.name and default.type == AttributeProto.INT:
        return f"Some(DefaultValue::Int({default.i}))"
    if default.name and default.type == AttributeProto.FLOAT:
        return f"Some(DefaultValue::Float({numpy.float32(default.f)!s}))"
    if default.name and default.type == AttributeProto.STRING:
        return f'Some(DefaultValue::Str("{default.s.decode()}"))'
    return "None"


def table_row(schema, history):
    """Returns the row of an operator in schema_table.rs."""
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
    note = f"// Generated by generate_onnx_ops.py from the schemas of opset {opset}; do not edit.\n\n"
    names = sorted(set(schemas) - BY_HAND - OPAQUE)
    with open(td_path, "w") as out:
        out.write(note)
        out.write("\n\n".join(definition(schemas[name]) for name in names) + "\n")
    with open(table_path, "w") as out:
        out.write(note)
        out.write("use super::{Arity, Attribute, DefaultValue, Kind, Schema, Version};\n\n")
        out.write(f"pub(super) const OPSET: i64 = {opset};\n")
        out.write(f"pub(super) const IR_VERSION: i64 = {onnx.IR_VERSION};\n")
        out.write(f"pub(super) const MIN_EXPORT_OPSET: i64 = {FLOOR};\n\n")
        out.write("/// Opsets and the IR version that each was released with.\n#[rustfmt::skip]\n")
        pairs = ", ".join(f"({opset}, {version})" for opset, version in sorted(set(ir_versions)))
        out.write(f"pub(super) const IR_VERSIONS: &[(i64, i64)] = &[{pairs}];\n\n")
        out.write("#[rustfmt::skip]\npub(super) const SCHEMAS: &[Schema] = &[\n")
        out.writelines(table_row(schemas[name], history[name]) for name in sorted(schemas))
        out.write("];\n")


main(*sys.argv[1:])
