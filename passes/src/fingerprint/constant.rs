//! Attributes and types by what they are, however they are printed.

use super::Hash;
use crate::ir::{array_attribute, text};
use divi_dialect::{ExternalAttribute, elements_of};
use melior::ir::Attribute;
use mlir_sys::*;
use rustc_hash::FxHashMap;
use sha2::{Digest, Sha256};
use std::{ffi::c_void, path::Path};

/// The attributes that have been hashed: one is unique in its context, and large ones are shared.
#[derive(Default)]
pub(super) struct Attributes {
    known: FxHashMap<*const c_void, Hash>,
    /// Whether one had elements that are not there.
    pub(super) is_elided: bool,
}

impl Attributes {
    pub(super) fn hash(&mut self, attribute: MlirAttribute) -> Hash {
        if let Some(&known) = self.known.get(&attribute.ptr) {
            return known;
        }
        let mut hash = Sha256::new();
        // Options for printing change the text of elements, so they are not taken from it.
        // SAFETY: the attribute is alive, and each accessor is called on the kind it is for.
        unsafe {
            let own = Attribute::from_raw(attribute);
            if let Some(elements) = array_attribute(attribute) {
                hash.update("array");
                elements.into_iter().for_each(|element| hash.update(self.hash(element)));
            } else if mlirAttributeIsADictionary(attribute) {
                hash.update("dictionary");
                for i in 0..mlirDictionaryAttrGetNumElements(attribute) {
                    let entry = mlirDictionaryAttrGetElement(attribute, i);
                    let key = text(mlirIdentifierStr(entry.name));
                    hash.update((key.len() as u64).to_le_bytes());
                    hash.update(key);
                    hash.update(self.hash(entry.attribute));
                }
            } else if let Some(external) = ExternalAttribute::from_attribute(own) {
                // The folder depends on where the IR is.
                let file = Path::new(external.path()).file_name().unwrap_or_default();
                hash.update("external");
                hash.update(printed_type(mlirAttributeGetType(attribute)));
                hash.update(format!("{file:?} {} {}", external.offset(), external.length()));
            } else if mlirAttributeIsADenseResourceElements(attribute) || is_many(attribute) {
                hash.update("elements");
                hash.update(printed_type(mlirAttributeGetType(attribute)));
                match elements_of(own, u64::MAX) {
                    Some(elements) => hash.update(elements.bytes()),
                    None if mlirAttributeIsADenseResourceElements(attribute) => self.is_elided = true,
                    None => hash.update(printed_as(|to, data| mlirAttributePrint(attribute, to, data))),
                }
            } else {
                hash.update(printed_as(|to, data| mlirAttributePrint(attribute, to, data)));
            }
        }
        let hash: Hash = hash.finalize().into();
        self.known.insert(attribute.ptr, hash);
        hash
    }
}

/// Whether an attribute has elements that are not all the same: one that says what all of them are is short.
fn is_many(attribute: MlirAttribute) -> bool {
    // SAFETY: the attribute is alive, and elements if it is asked about them.
    unsafe { mlirAttributeIsADenseElements(attribute) && !mlirDenseElementsAttrIsSplat(attribute) }
}

pub(super) fn printed_type(r#type: MlirType) -> Hash {
    // SAFETY: the type is alive.
    printed_as(|to, data| unsafe { mlirTypePrint(r#type, to, data) })
}

/// What MLIR prints, hashed as it comes.
fn printed_as(print: impl FnOnce(MlirStringCallback, *mut c_void)) -> Hash {
    unsafe extern "C" fn append(part: MlirStringRef, data: *mut c_void) {
        if part.length > 0 {
            // SAFETY: MLIR hands back the hash that it was given, and text that is alive.
            unsafe { (*data.cast::<Sha256>()).update(std::slice::from_raw_parts(part.data.cast::<u8>(), part.length)) }
        }
    }
    let mut hash = Sha256::new();
    print(Some(append), (&raw mut hash).cast());
    hash.finalize().into()
}
