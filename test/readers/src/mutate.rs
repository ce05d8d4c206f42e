//! Seeded mutations: of bytes, and of what formats are made of.

mod bytes;
mod json;
mod lines;
mod protobuf;
pub mod wire;

pub use protobuf::Message;

use crate::random::Random;

/// Structure of a format that some mutations keep, so that mutants get past its parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Protobuf,
    Json,
    /// Lines of text.
    Lines,
    /// Numbers in binary and in digits.
    Binary,
}

/// A file that mutants are made of.
pub struct Original {
    bytes: Vec<u8>,
    message: Option<Message>,
    value: Option<serde_json::Value>,
    kind: Kind,
}

impl Original {
    pub fn new(kind: Kind, bytes: Vec<u8>) -> Self {
        let message = (kind == Kind::Protobuf).then(|| Message::new(bytes.clone())).flatten();
        let value = (kind == Kind::Json).then(|| serde_json::from_slice(&bytes).ok()).flatten();
        Self { bytes, message, value, kind }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Makes a mutant. `other` is another file of the same format.
    pub fn mutant(&self, other: &Self, random: &mut Random) -> Vec<u8> {
        let mut mutant = match (self.kind, &self.message, &self.value) {
            // One in four has its bytes changed alone.
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
