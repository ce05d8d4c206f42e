//! Hashes attributes and types independent of printing options.

use super::Hash;
use divi_dialect::{ExternalAttribute, attr, elements_of, print_type};
use melior::ir::{Attribute, Type};
use rustc_hash::FxHashMap;
use sha2::{Digest, Sha256};
use std::path::Path;

/// Hashes of attributes. Attributes are uniqued in a context, and large ones are shared.
#[derive(Default)]
pub(super) struct Attributes<'m> {
    known: FxHashMap<Attribute<'m>, Hash>,
    /// True if an attribute had elided elements.
    pub(super) is_elided: bool,
}

impl<'m> Attributes<'m> {
    pub(super) fn hash(&mut self, attribute: Attribute<'m>) -> Hash {
        if let Some(&known) = self.known.get(&attribute) {
            return known;
        }
        let mut hash = Sha256::new();
        // Printing options change the text of elements, so it is not used.
        if let Some(elements) = attr::as_array(attribute) {
            hash.update("array");
            elements.into_iter().for_each(|element| hash.update(self.hash(element)));
        } else if let Some(entries) = attr::as_dictionary(attribute) {
            hash.update("dictionary");
            for (key, value) in entries {
                hash.update((key.len() as u64).to_le_bytes());
                hash.update(key);
                hash.update(self.hash(value));
            }
        } else if let Some(external) = ExternalAttribute::from_attribute(attribute) {
            // The folder depends on the location of the IR.
            let file = Path::new(external.path()).file_name().unwrap_or_default();
            hash.update("external");
            hash.update(printed_type(attr::type_of(attribute)));
            hash.update(format!("{file:?} {} {}", external.offset(), external.length()));
        } else if attr::is_resource(attribute) || is_many(attribute) {
            hash.update("elements");
            hash.update(printed_type(attr::type_of(attribute)));
            match elements_of(attribute, u64::MAX) {
                Some(elements) => hash.update(elements.bytes()),
                None if attr::is_resource(attribute) => self.is_elided = true,
                None => hash.update(printed(attribute)),
            }
        } else {
            hash.update(printed(attribute));
        }
        let hash: Hash = hash.finalize().into();
        self.known.insert(attribute, hash);
        hash
    }
}

/// Returns true for dense elements that are not a splat. The text of a splat is short.
fn is_many(attribute: Attribute<'_>) -> bool {
    attr::is_dense(attribute) && !attr::is_splat(attribute)
}

/// Hashes the textual form of an attribute.
fn printed(attribute: Attribute<'_>) -> Hash {
    let mut hash = Sha256::new();
    attr::print(attribute, &mut |text| hash.update(text));
    hash.finalize().into()
}

/// Hashes the textual form of a type.
pub(super) fn printed_type(r#type: Type<'_>) -> Hash {
    let mut hash = Sha256::new();
    print_type(r#type, &mut |text| hash.update(text));
    hash.finalize().into()
}
