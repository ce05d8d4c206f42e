//! Seeded mutations of bytes and of structured formats.

mod bytes;
mod json;
mod lines;
mod protobuf;
pub mod wire;

pub use protobuf::Message;

use crate::random::Random;

/// Structure of a format, which some mutations preserve so that mutants pass its parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Protobuf messages.
    Protobuf,
    /// JSON documents.
    Json,
    /// Lines of text.
    Lines,
    /// Binary and decimal numbers.
    Binary,
}

/// A file that is mutated.
pub struct Original {
    bytes: Vec<u8>,
    message: Option<Message>,
    value: Option<serde_json::Value>,
    kind: Kind,
}

impl Original {
    /// Parses a file as far as its structure allows.
    pub fn new(kind: Kind, bytes: Vec<u8>) -> Self {
        let message = (kind == Kind::Protobuf).then(|| Message::new(bytes.clone())).flatten();
        let value = (kind == Kind::Json).then(|| serde_json::from_slice(&bytes).ok()).flatten();
        Self { bytes, message, value, kind }
    }

    /// Returns the contents of the file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Builds a mutant. `other` is another file of the same format.
    pub fn mutant(&self, other: &Self, random: &mut Random) -> Vec<u8> {
        let mut mutant = match (self.kind, &self.message, &self.value) {
            // One mutant in four changes bytes without regard to structure.
            _ if random.one_in(4) => bytes::changed(&self.bytes, &other.bytes, random),
            (_, Some(message), _) => message.mutant(random).1,
            (_, _, Some(value)) => json::changed(value, other.value.as_ref().unwrap_or(value), random),
            (Kind::Lines, ..) => lines::changed(&self.bytes, &other.bytes, random),
            _ => bytes::changed(&self.bytes, &other.bytes, random),
        };
        if random.one_in(8) {
            mutant = bytes::changed(&mutant, &other.bytes, random);
        }
        mutant
    }
}
