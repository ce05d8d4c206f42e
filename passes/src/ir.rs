//! Small conveniences over MLIR's C API that several passes share.

pub(crate) use divi_dialect::{emit_error as error, emit_warning as warning, text};
use divi_dialect::{tensor_type, tensor_type_of};
use divi_onnx::{Op, TensorType};
use melior::{
    Context, StringRef,
    ir::{Type, TypeLike},
};
use mlir_sys::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ffi::c_void;

/// What went wrong has been said in diagnostics: MLIR's `failure()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure;

pub(crate) fn operation_name<'a>(operation: MlirOperation) -> &'a str {
    // SAFETY: an operation's name lives as long as its context.
    unsafe { text(mlirIdentifierStr(mlirOperationGetName(operation))) }
}

/// The operator of the table that an operation is; `None` for other dialects and for operations that are no operators.
pub(crate) fn op_of(operation: MlirOperation) -> Option<Op> {
    Op::from_operation(operation_name(operation))
}

/// The operation that holds a constant.
pub(crate) const ONNX_CONSTANT: &str = Op::Constant.operation_name();

/// An attribute by name; `None` if the operation does not have it.
pub(crate) fn attribute(operation: MlirOperation, name: &str) -> Option<MlirAttribute> {
    // SAFETY: the operation is alive.
    let attribute = unsafe { mlirOperationGetAttributeByName(operation, StringRef::new(name).to_raw()) };
    (!attribute.ptr.is_null()).then_some(attribute)
}

pub(crate) fn string_attribute<'a>(attribute: MlirAttribute) -> Option<&'a str> {
    // SAFETY: the attribute is alive, and its text lives as long as its context.
    unsafe { mlirAttributeIsAString(attribute).then(|| text(mlirStringAttrGetValue(attribute))) }
}

/// An integer, whatever its signedness.
pub(crate) fn integer_attribute(attribute: MlirAttribute) -> Option<i64> {
    // SAFETY: the attribute is alive, and each accessor is called on the kind it is for.
    unsafe {
        if !mlirAttributeIsAInteger(attribute) {
            return None;
        }
        let r#type = mlirAttributeGetType(attribute);
        Some(if mlirTypeIsAInteger(r#type) && mlirIntegerTypeIsSigned(r#type) {
            mlirIntegerAttrGetValueSInt(attribute)
        } else if mlirTypeIsAInteger(r#type) && mlirIntegerTypeIsUnsigned(r#type) {
            i64::try_from(mlirIntegerAttrGetValueUInt(attribute)).ok()?
        } else {
            mlirIntegerAttrGetValueInt(attribute)
        })
    }
}

pub(crate) fn float_attribute(attribute: MlirAttribute) -> Option<f64> {
    // SAFETY: the attribute is alive, and a float if it is read as one.
    unsafe { mlirAttributeIsAFloat(attribute).then(|| mlirFloatAttrGetValueDouble(attribute)) }
}

/// The elements of an array attribute; `None` for others.
pub(crate) fn array_attribute(attribute: MlirAttribute) -> Option<Vec<MlirAttribute>> {
    // SAFETY: the attribute is alive, and indices are below the count.
    unsafe {
        mlirAttributeIsAArray(attribute).then(|| {
            (0..mlirArrayAttrGetNumElements(attribute)).map(|i| mlirArrayAttrGetElement(attribute, i)).collect()
        })
    }
}

/// An attribute under a name, as operations are created with.
pub(crate) fn named_attribute(context: &Context, name: &str, attribute: MlirAttribute) -> MlirNamedAttribute {
    // SAFETY: the context is alive, and the name outlives the call.
    let name = unsafe { mlirIdentifierGet(context.to_raw(), StringRef::new(name).to_raw()) };
    MlirNamedAttribute { name, attribute }
}

/// An array of attributes.
pub(crate) fn array(context: &Context, elements: &[MlirAttribute]) -> MlirAttribute {
    // SAFETY: the context is alive, and so are the elements.
    unsafe { mlirArrayAttrGet(context.to_raw(), elements.len() as isize, elements.as_ptr()) }
}

/// An array of strings.
pub(crate) fn string_array(context: &Context, strings: &[&str]) -> MlirAttribute {
    // SAFETY: the context is alive, and the string outlives the call.
    let string = |text: &&str| unsafe { mlirStringAttrGet(context.to_raw(), StringRef::new(text).to_raw()) };
    array(context, &strings.iter().map(string).collect::<Vec<_>>())
}

/// `… : f64`
pub(crate) fn number(context: &Context, value: f64) -> MlirAttribute {
    // SAFETY: the context is alive.
    unsafe { mlirFloatAttrDoubleGet(context.to_raw(), mlirF64TypeGet(context.to_raw()), value) }
}

/// `… : i64`
pub(crate) fn integer(context: &Context, value: i64) -> MlirAttribute {
    // SAFETY: the context is alive.
    unsafe { mlirIntegerAttrGet(mlirIntegerTypeGet(context.to_raw(), 64), value) }
}

pub(crate) fn string(context: &Context, text: &str) -> MlirAttribute {
    // SAFETY: the context is alive, and the text outlives the call.
    unsafe { mlirStringAttrGet(context.to_raw(), StringRef::new(text).to_raw()) }
}

/// A reference to a symbol of this scope.
pub(crate) fn symbol_reference(context: &Context, name: &str) -> MlirAttribute {
    // SAFETY: the context is alive, and the name outlives the call.
    unsafe { mlirFlatSymbolRefAttrGet(context.to_raw(), StringRef::new(name).to_raw()) }
}

/// `array<i64: …>`
pub(crate) fn integer_array(context: &Context, values: &[i64]) -> MlirAttribute {
    // SAFETY: the context is alive, and the list outlives the call.
    unsafe { mlirDenseI64ArrayGet(context.to_raw(), values.len() as isize, values.as_ptr()) }
}

/// The name that a reference to a symbol of this scope has; `None` for other attributes.
pub(crate) fn symbol_attribute<'a>(attribute: MlirAttribute) -> Option<&'a str> {
    // SAFETY: the attribute is alive, and its text lives as long as its context.
    unsafe { mlirAttributeIsAFlatSymbolRef(attribute).then(|| text(mlirFlatSymbolRefAttrGetValue(attribute))) }
}

/// An entry of a dictionary; `None` if it has no such entry, or is none.
pub(crate) fn dictionary_entry(dictionary: MlirAttribute, name: &str) -> Option<MlirAttribute> {
    // SAFETY: the attribute is alive, and asked for entries only if it can have some.
    unsafe {
        if !mlirAttributeIsADictionary(dictionary) {
            return None;
        }
        let value = mlirDictionaryAttrGetElementByName(dictionary, StringRef::new(name).to_raw());
        (!value.ptr.is_null()).then_some(value)
    }
}

pub(crate) fn set_attribute(operation: MlirOperation, name: &str, attribute: MlirAttribute) {
    // SAFETY: operation and attribute are alive and of one context.
    unsafe { mlirOperationSetAttributeByName(operation, StringRef::new(name).to_raw(), attribute) }
}

/// The elements of an `array<i64: …>`; `None` for other attributes.
pub(crate) fn integers_attribute(attribute: MlirAttribute) -> Option<Vec<i64>> {
    // SAFETY: the attribute is alive, and a list of integers where it is read as one; indices are below the count.
    unsafe {
        mlirAttributeIsADenseI64Array(attribute).then(|| {
            (0..mlirDenseArrayGetNumElements(attribute)).map(|i| mlirDenseI64ArrayGetElement(attribute, i)).collect()
        })
    }
}

/// Makes an operation, and what is in it, read other values instead of those that are listed.
pub(crate) fn read_instead(operation: MlirOperation, others: &FxHashMap<*const c_void, MlirValue>) {
    walk(operation, &mut |inner| {
        for (i, operand) in operands(inner).into_iter().enumerate() {
            if let Some(&other) = others.get(&operand.ptr) {
                // SAFETY: operation and value are alive.
                unsafe { mlirOperationSetOperand(inner, i as isize, other) };
            }
        }
    });
}

/// An operation that nobody owns yet.
pub(crate) fn create_operation(
    name: &str,
    location: MlirLocation,
    operands: &[MlirValue],
    results: &[MlirType],
    attributes: &[MlirNamedAttribute],
) -> MlirOperation {
    // SAFETY: everything is alive and of one context, and the lists outlive the calls.
    unsafe {
        let mut state = mlirOperationStateGet(StringRef::new(name).to_raw(), location);
        mlirOperationStateAddOperands(&mut state, operands.len() as isize, operands.as_ptr());
        mlirOperationStateAddResults(&mut state, results.len() as isize, results.as_ptr());
        mlirOperationStateAddAttributes(&mut state, attributes.len() as isize, attributes.as_ptr());
        mlirOperationCreate(&mut state)
    }
}

/// What messages call an operation: the ONNX node it came from, if it says so, or the first of those that a cluster has.
pub(crate) fn describe(operation: MlirOperation) -> String {
    let op = operation_name(operation);
    let first_member = || {
        let members = attribute(operation, "divi.members").and_then(array_attribute)?;
        string_attribute(*members.first()?)
    };
    match attribute(operation, "onnx_node_name").and_then(string_attribute).or_else(first_member) {
        Some(name) => format!("'{op}' op '{name}'"),
        None => format!("'{op}' op"),
    }
}

/// The operations of a block, as they are when this is called.
pub(crate) fn operations(block: MlirBlock) -> Vec<MlirOperation> {
    let mut operations = vec![];
    // SAFETY: the block is alive; the list ends with null.
    unsafe {
        let mut next = mlirBlockGetFirstOperation(block);
        while !next.ptr.is_null() {
            operations.push(next);
            next = mlirOperationGetNextInBlock(next);
        }
    }
    operations
}

/// The blocks of all regions of an operation.
pub(crate) fn blocks(operation: MlirOperation) -> Vec<MlirBlock> {
    let mut blocks = vec![];
    // SAFETY: the operation is alive; lists end with null.
    unsafe {
        for i in 0..mlirOperationGetNumRegions(operation) {
            let mut next = mlirRegionGetFirstBlock(mlirOperationGetRegion(operation, i));
            while !next.ptr.is_null() {
                blocks.push(next);
                next = mlirBlockGetNextInRegion(next);
            }
        }
    }
    blocks
}

/// The blocks of all regions of an operation, each behind those that dominate it.
pub(crate) fn blocks_in_order(operation: MlirOperation) -> Vec<MlirBlock> {
    let mut ordered = vec![];
    let mut visited = FxHashSet::default();
    // A region's first block comes first and reaches all others but dead ones.
    for root in blocks(operation) {
        if !visited.insert(root.ptr) {
            continue;
        }
        let start = ordered.len();
        let mut path = vec![(root, 0)];
        while let Some((block, next)) = path.last_mut() {
            // SAFETY: the block is alive, and the index is below the count, which is 0 without a terminator.
            let successor = unsafe {
                let count =
                    if mlirBlockGetTerminator(*block).ptr.is_null() { 0 } else { mlirBlockGetNumSuccessors(*block) };
                (*next < count).then(|| mlirBlockGetSuccessor(*block, *next))
            };
            *next += 1;
            match successor {
                Some(successor) if visited.insert(successor.ptr) => path.push((successor, 0)),
                Some(_) => {}
                None => {
                    ordered.push(*block);
                    path.pop();
                }
            }
        }
        ordered[start..].reverse();
    }
    ordered
}

pub(crate) fn operands(operation: MlirOperation) -> Vec<MlirValue> {
    // SAFETY: the operation is alive, and indices are below the count.
    unsafe { (0..mlirOperationGetNumOperands(operation)).map(|i| mlirOperationGetOperand(operation, i)).collect() }
}

pub(crate) fn results(operation: MlirOperation) -> Vec<MlirValue> {
    // SAFETY: the operation is alive, and indices are below the count.
    unsafe { (0..mlirOperationGetNumResults(operation)).map(|i| mlirOperationGetResult(operation, i)).collect() }
}

/// An attribute of one of a function's arguments (`arg_attrs`) or results (`res_attrs`).
pub(crate) fn signature_attribute(
    function: MlirOperation,
    list: &str,
    index: usize,
    name: &str,
) -> Option<MlirAttribute> {
    let dictionaries = array_attribute(attribute(function, list)?)?;
    dictionary_entry(*dictionaries.get(index)?, name)
}

pub(crate) fn arguments_of(block: MlirBlock) -> Vec<MlirValue> {
    // SAFETY: the block is alive, and indices are below the count.
    unsafe { (0..mlirBlockGetNumArguments(block)).map(|i| mlirBlockGetArgument(block, i)).collect() }
}

/// The operations that use a value, each with the operand that it is, as they are when this is called.
pub(crate) fn uses(value: MlirValue) -> Vec<(MlirOperation, isize)> {
    let mut uses = vec![];
    // SAFETY: the value is alive; the list ends with null.
    unsafe {
        let mut next = mlirValueGetFirstUse(value);
        while !mlirOpOperandIsNull(next) {
            uses.push((mlirOpOperandGetOwner(next), mlirOpOperandGetOperandNumber(next) as isize));
            next = mlirOpOperandGetNextUse(next);
        }
    }
    uses
}

pub(crate) fn type_of(value: MlirValue) -> MlirType {
    // SAFETY: the value is alive.
    unsafe { mlirValueGetType(value) }
}

/// What a value's type says in ONNX's terms; `None` if it is no tensor.
pub(crate) fn tensor_type_of_value(value: MlirValue) -> Option<TensorType> {
    // SAFETY: the type of a live value is alive.
    tensor_type_of(unsafe { Type::from_raw(type_of(value)) })
}

/// The bytes of a tensor. An open dimension counts as 1.
pub(crate) fn byte_length(ty: &TensorType) -> u64 {
    let sizes = ty.shape.iter().flatten().map(|dim| u64::try_from(dim.known().unwrap_or(1)).unwrap_or(0));
    divi_cost::work::bytes(ty.dtype, sizes.fold(1, u64::saturating_mul))
}

/// The bytes of a value as the module has it, whatever its elements are. What is no tensor takes none.
pub(crate) fn value_bytes(value: MlirValue) -> u64 {
    if let Some(ty) = tensor_type_of_value(value) {
        return byte_length(&ty);
    }
    let r#type = type_of(value);
    // SAFETY: the type is alive, and each accessor is called on the kind it is for.
    unsafe {
        if !mlirTypeIsARankedTensor(r#type) {
            return 0;
        }
        let element = mlirShapedTypeGetElementType(r#type);
        let bits = if mlirTypeIsAInteger(element) {
            mlirIntegerTypeGetWidth(element)
        } else if mlirTypeIsAFloat(element) {
            mlirFloatTypeGetWidth(element)
        } else {
            // An index, or a type of which nothing is known.
            64
        };
        let sizes = (0..mlirShapedTypeGetRank(r#type) as isize).map(|i| match mlirShapedTypeIsDynamicDim(r#type, i) {
            true => 1,
            false => u64::try_from(mlirShapedTypeGetDimSize(r#type, i)).unwrap_or(0),
        });
        sizes.fold(u64::from(bits).div_ceil(8), u64::saturating_mul)
    }
}

/// A tensor type with another shape: how `original` writes elements stays, and its encoding, if the rank does.
pub(crate) fn reshaped_type(context: &Context, original: MlirType, ty: &TensorType) -> MlirType {
    // SAFETY: the type is alive.
    let before = tensor_type_of(unsafe { Type::from_raw(original) });
    let Some(before) = before.filter(|before| before.dtype == ty.dtype) else {
        return tensor_type(context, ty).to_raw();
    };
    // SAFETY: the original is a tensor type, and a ranked one where its encoding is asked for; the shape outlives the
    // call.
    unsafe {
        let element = mlirShapedTypeGetElementType(original);
        let Some(shape) = &ty.shape else { return mlirUnrankedTensorTypeGet(element) };
        let encoding = match before.shape {
            Some(before) if before.len() == shape.len() => mlirRankedTensorTypeGetEncoding(original),
            _ => mlirAttributeGetNull(),
        };
        let dynamic = mlirShapedTypeGetDynamicSize();
        let dims: Vec<i64> = shape.iter().map(|dim| dim.known().unwrap_or(dynamic)).collect();
        mlirRankedTensorTypeGet(dims.len() as isize, dims.as_ptr(), element, encoding)
    }
}

/// Calls `visit` on every operation below `root`, parents first.
pub(crate) fn walk(root: MlirOperation, visit: &mut dyn FnMut(MlirOperation)) {
    let mut pending = vec![root];
    while let Some(operation) = pending.pop() {
        visit(operation);
        let children: Vec<_> = blocks(operation).into_iter().flat_map(operations).collect();
        pending.extend(children.into_iter().rev());
    }
}
