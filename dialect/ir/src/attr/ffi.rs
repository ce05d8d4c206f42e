//! Accessors and constructors of attributes of MLIR's builtin dialect.

use crate::{
    ContextLike, NamedAttribute,
    context::{Sink, print_to_sink, text},
    ffi::call,
};
use melior::{
    StringRef,
    ir::{Attribute, AttributeLike, Type, TypeLike},
};
use mlir_sys::*;

fn wrap<'m>(raw: MlirAttribute) -> Attribute<'m> {
    // SAFETY: attributes live as long as their context.
    unsafe { Attribute::from_raw(raw) }
}

/// Returns the text of a string attribute; `None` for attributes of other kinds.
pub fn as_string(attribute: Attribute<'_>) -> Option<&str> {
    let raw = attribute.to_raw();
    call!(mlirAttributeIsAString(raw)).then(|| {
        let value = call!(mlirStringAttrGetValue(raw));
        call!(text(value))
    })
}

/// Returns true for integers of at most 64 bits, which MLIR's C API can read.
fn is_readable_integer(raw: MlirAttribute) -> bool {
    if !call!(mlirAttributeIsAInteger(raw)) {
        return false;
    }
    let r#type = call!(mlirAttributeGetType(raw));
    let is_index = !call!(mlirTypeIsAInteger(r#type));
    is_index || call!(mlirIntegerTypeGetWidth(r#type)) <= 64
}

/// Returns an integer of any signedness; `None` if it does not fit into `i64`, if its type has more than 64 bits, or if
/// the attribute is of another kind.
pub fn as_integer(attribute: Attribute<'_>) -> Option<i64> {
    let raw = attribute.to_raw();
    if !is_readable_integer(raw) {
        return None;
    }
    let r#type = call!(mlirAttributeGetType(raw));
    let is_integer = call!(mlirTypeIsAInteger(r#type));
    if is_integer && call!(mlirIntegerTypeIsSigned(r#type)) {
        Some(call!(mlirIntegerAttrGetValueSInt(raw)))
    } else if is_integer && call!(mlirIntegerTypeIsUnsigned(r#type)) {
        i64::try_from(call!(mlirIntegerAttrGetValueUInt(raw))).ok()
    } else {
        Some(call!(mlirIntegerAttrGetValueInt(raw)))
    }
}

/// Returns an integer of any signedness; unsigned ones that do not fit into `i64` wrap around. `None` if its type has
/// more than 64 bits, or if the attribute is of another kind.
pub fn as_wrapping_integer(attribute: Attribute<'_>) -> Option<i64> {
    let raw = attribute.to_raw();
    as_integer(attribute).or_else(|| is_readable_integer(raw).then(|| call!(mlirIntegerAttrGetValueUInt(raw)) as i64))
}

/// Returns a float of any width; `None` for attributes of other kinds.
pub fn as_float(attribute: Attribute<'_>) -> Option<f64> {
    let raw = attribute.to_raw();
    call!(mlirAttributeIsAFloat(raw)).then(|| call!(mlirFloatAttrGetValueDouble(raw)))
}

/// Returns the contents of a type attribute; `None` for attributes of other kinds.
pub fn as_type(attribute: Attribute<'_>) -> Option<Type<'_>> {
    let raw = attribute.to_raw();
    call!(mlirAttributeIsAType(raw)).then(|| {
        let r#type = call!(mlirTypeAttrGetValue(raw));
        // SAFETY: types live as long as their context.
        unsafe { Type::from_raw(r#type) }
    })
}

/// Returns the type of a typed attribute, such as elements; MLIR's type `none` for others.
pub fn type_of(attribute: Attribute<'_>) -> Type<'_> {
    let r#type = call!(mlirAttributeGetType(attribute.to_raw()));
    // SAFETY: types live as long as their context.
    unsafe { Type::from_raw(r#type) }
}

/// Returns the elements of an array attribute; `None` for attributes of other kinds.
pub fn as_array(attribute: Attribute<'_>) -> Option<Vec<Attribute<'_>>> {
    let raw = attribute.to_raw();
    call!(mlirAttributeIsAArray(raw)).then(|| {
        let count = call!(mlirArrayAttrGetNumElements(raw));
        (0..count).map(|i| wrap(call!(mlirArrayAttrGetElement(raw, i)))).collect()
    })
}

/// Returns the elements of an `array<i64: …>`; `None` for attributes of other kinds.
pub fn as_integers(attribute: Attribute<'_>) -> Option<Vec<i64>> {
    let raw = attribute.to_raw();
    call!(mlirAttributeIsADenseI64Array(raw)).then(|| {
        let count = call!(mlirDenseArrayGetNumElements(raw));
        (0..count).map(|i| call!(mlirDenseI64ArrayGetElement(raw, i))).collect()
    })
}

/// Returns the name of a flat symbol reference; `None` for attributes of other kinds.
pub fn as_symbol(attribute: Attribute<'_>) -> Option<&str> {
    let raw = attribute.to_raw();
    call!(mlirAttributeIsAFlatSymbolRef(raw)).then(|| {
        let value = call!(mlirFlatSymbolRefAttrGetValue(raw));
        call!(text(value))
    })
}

/// Returns the root name of a flat or nested symbol reference; `None` for attributes of other kinds.
pub fn root_symbol(attribute: Attribute<'_>) -> Option<&str> {
    let raw = attribute.to_raw();
    call!(mlirAttributeIsASymbolRef(raw)).then(|| {
        let value = call!(mlirSymbolRefAttrGetRootReference(raw));
        call!(text(value))
    })
}

/// Returns the entries of a dictionary, sorted by name; `None` for attributes of other kinds.
pub fn as_dictionary(attribute: Attribute<'_>) -> Option<Vec<(&str, Attribute<'_>)>> {
    let raw = attribute.to_raw();
    call!(mlirAttributeIsADictionary(raw)).then(|| {
        let count = call!(mlirDictionaryAttrGetNumElements(raw));
        let entry = |i| {
            let named = call!(mlirDictionaryAttrGetElement(raw, i));
            let name = call!(mlirIdentifierStr(named.name));
            (call!(text(name)), wrap(named.attribute))
        };
        (0..count).map(entry).collect()
    })
}

/// Returns an entry of a dictionary; `None` also if the attribute is not a dictionary.
pub fn entry<'m>(dictionary: Attribute<'m>, name: &str) -> Option<Attribute<'m>> {
    let raw = dictionary.to_raw();
    if !call!(mlirAttributeIsADictionary(raw)) {
        return None;
    }
    let value = call!(mlirDictionaryAttrGetElementByName(raw, StringRef::new(name).to_raw()));
    // SAFETY: attributes live as long as their context.
    unsafe { Attribute::from_option_raw(value) }
}

/// Returns true for `dense_resource<…>`.
pub fn is_resource(attribute: Attribute<'_>) -> bool {
    call!(mlirAttributeIsADenseResourceElements(attribute.to_raw()))
}

/// Returns true for `dense<…>`.
pub fn is_dense(attribute: Attribute<'_>) -> bool {
    call!(mlirAttributeIsADenseElements(attribute.to_raw()))
}

/// Returns true for a `dense<…>` whose elements are all equal and stored once.
pub fn is_splat(attribute: Attribute<'_>) -> bool {
    let raw = attribute.to_raw();
    call!(mlirAttributeIsADenseElements(raw)) && call!(mlirDenseElementsAttrIsSplat(raw))
}

/// Creates `unit`.
pub fn unit<'m>(context: impl ContextLike<'m>) -> Attribute<'m> {
    wrap(call!(mlirUnitAttrGet(context.raw())))
}

/// Creates `"…"`.
pub fn string<'m>(context: impl ContextLike<'m>, text: &str) -> Attribute<'m> {
    wrap(call!(mlirStringAttrGet(context.raw(), StringRef::new(text).to_raw())))
}

/// Creates `@…`.
pub fn symbol<'m>(context: impl ContextLike<'m>, name: &str) -> Attribute<'m> {
    wrap(call!(mlirFlatSymbolRefAttrGet(context.raw(), StringRef::new(name).to_raw())))
}

/// Creates `… : i64`.
pub fn integer<'m>(context: impl ContextLike<'m>, value: i64) -> Attribute<'m> {
    let r#type = call!(mlirIntegerTypeGet(context.raw(), 64));
    wrap(call!(mlirIntegerAttrGet(r#type, value)))
}

/// Creates `… : si64`, the integer attribute of the `onnx` dialect.
pub fn signed_integer<'m>(context: impl ContextLike<'m>, value: i64) -> Attribute<'m> {
    let r#type = call!(mlirIntegerTypeSignedGet(context.raw(), 64));
    wrap(call!(mlirIntegerAttrGet(r#type, value)))
}

/// Creates `… : f64`.
pub fn float<'m>(context: impl ContextLike<'m>, value: f64) -> Attribute<'m> {
    let r#type = call!(mlirF64TypeGet(context.raw()));
    wrap(call!(mlirFloatAttrDoubleGet(context.raw(), r#type, value)))
}

/// Creates `array<i64: …>`.
pub fn integers<'m>(context: impl ContextLike<'m>, values: &[i64]) -> Attribute<'m> {
    wrap(call!(mlirDenseI64ArrayGet(context.raw(), values.len() as isize, values.as_ptr())))
}

/// Creates `[…]`.
pub fn array<'m>(context: impl ContextLike<'m>, elements: &[Attribute<'m>]) -> Attribute<'m> {
    let raw: Vec<_> = elements.iter().map(AttributeLike::to_raw).collect();
    wrap(call!(mlirArrayAttrGet(context.raw(), raw.len() as isize, raw.as_ptr())))
}

/// Creates `{… = …}`.
pub fn dictionary<'m>(context: impl ContextLike<'m>, entries: &[(&str, Attribute<'m>)]) -> Attribute<'m> {
    let named: Vec<_> = entries.iter().map(|&(name, value)| NamedAttribute::with_name(name, value)).collect();
    wrap(call!(mlirDictionaryAttrGet(context.raw(), named.len() as isize, named.as_ptr().cast())))
}

/// Creates an attribute that holds a type.
pub fn type_attribute(r#type: Type<'_>) -> Attribute<'_> {
    wrap(call!(mlirTypeAttrGet(r#type.to_raw())))
}

/// Creates an integer of a given type.
pub fn integer_of_type(r#type: Type<'_>, value: i64) -> Attribute<'_> {
    wrap(call!(mlirIntegerAttrGet(r#type.to_raw(), value)))
}

/// Creates a float of a given type.
pub fn float_of_type(r#type: Type<'_>, value: f64) -> Attribute<'_> {
    let context = call!(mlirTypeGetContext(r#type.to_raw()));
    wrap(call!(mlirFloatAttrDoubleGet(context, r#type.to_raw(), value)))
}

/// Prints an attribute to `sink`, in chunks.
pub fn print(attribute: Attribute<'_>, mut sink: &mut dyn FnMut(&[u8])) {
    let sink: &mut Sink<'_> = &mut sink;
    call!(mlirAttributePrint(attribute.to_raw(), Some(print_to_sink), std::ptr::from_mut(sink).cast()));
}
