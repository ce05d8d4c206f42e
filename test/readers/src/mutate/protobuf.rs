//! Schema-less mutations of protobuf messages: lengths, fields, numbers and strings.

use super::wire::{self, Field, Payload};
use crate::random::Random;

/// A mutation operator.
type Mutation = fn(&Message, &mut Random) -> Vec<u8>;

/// A protobuf message, indexed for mutation.
pub struct Message {
    bytes: Vec<u8>,
    fields: Vec<Field>,
    extents: Vec<wire::Extent>,
    messages: Vec<Vec<usize>>,
}

impl Message {
    /// Parses a message; `None` if it is invalid or empty.
    pub fn new(bytes: Vec<u8>) -> Option<Self> {
        let fields = wire::read(&bytes).filter(|fields| !fields.is_empty())?;
        let (extents, messages) = (wire::extents(&fields), wire::messages(&fields));
        Some(Self { bytes, fields, extents, messages })
    }

    /// Builds a mutant; returns it with the name of the mutation.
    pub fn mutant(&self, random: &mut Random) -> (&'static str, Vec<u8>) {
        const KINDS: &[(&str, Mutation)] = &[
            ("truncated", Message::truncated),
            ("bits flipped", Message::flipped),
            ("spliced", Message::spliced),
            ("length damaged", Message::with_wrong_length),
            ("fields rearranged", Message::rearranged),
            ("numbers changed", Message::renumbered),
            ("texts exchanged", Message::renamed),
        ];
        let (kind, mutate) = random.choose(KINDS);
        (kind, mutate(self, random))
    }

    /// Truncates before a field, inside its key or length, or before, inside or just short of its content.
    fn truncated(&self, random: &mut Random) -> Vec<u8> {
        let extent = random.choose(&self.extents);
        let middle = (extent.content + extent.end) / 2;
        let ends = [extent.start, extent.start + 1, extent.after_key, extent.content, middle, extent.end - 1];
        self.bytes[..*random.choose(&ends)].to_vec()
    }

    fn flipped(&self, random: &mut Random) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        for _ in 0..1 + random.below(8) {
            let position = random.below(bytes.len());
            bytes[position] ^= 1 << random.below(8);
        }
        bytes
    }

    /// Copies a piece of the file over or between other bytes.
    fn spliced(&self, random: &mut Random) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        let from = random.below(bytes.len());
        let length = 1 + random.below(64.min(bytes.len() - from));
        let piece = bytes[from..from + length].to_vec();
        let to = random.below(bytes.len());
        let replaced = if random.below(2) == 0 { length.min(bytes.len() - to) } else { 0 };
        bytes.splice(to..to + replaced, piece);
        bytes
    }

    fn with_wrong_length(&self, random: &mut Random) -> Vec<u8> {
        let chunks: Vec<_> = self.extents.iter().filter(|extent| extent.content < extent.end).collect();
        if chunks.is_empty() {
            return self.flipped(random);
        }
        let extent = random.choose(&chunks);
        let length = (extent.end - extent.content) as u64;
        let wrong =
            [length - 1, length + 1, 0, length * 2, 1 << 20, u64::from(u32::MAX), 1 << 32, i64::MAX as u64, u64::MAX];
        let mut varint = vec![];
        wire::write_varint(*random.choose(&wrong), &mut varint);
        let mut bytes = self.bytes.clone();
        bytes.splice(extent.after_key..extent.content, varint);
        bytes
    }

    /// Swaps, duplicates, removes, renumbers or moves fields: lengths stay valid, contents do not.
    fn rearranged(&self, random: &mut Random) -> Vec<u8> {
        let mut fields = self.fields.clone();
        for _ in 0..1 + random.below(3) {
            let paths = wire::messages(&fields);
            let path = random.choose(&paths).clone();
            let other = random.choose(&paths).clone();
            let message = wire::message(&mut fields, &path);
            if message.is_empty() {
                continue;
            }
            let (a, b) = (random.below(message.len()), random.below(message.len()));
            match random.below(5) {
                0 => message.swap(a, b),
                1 => message.insert(b, message[a].clone()),
                2 => drop(message.remove(a)),
                3 => message[a].number = 1 + random.below(26) as u64,
                _ => {
                    let field = message[a].clone();
                    wire::message(&mut fields, &other).push(field);
                }
            }
        }
        wire::write(&fields)
    }

    /// Replaces integers by boundary values and others.
    fn renumbered(&self, random: &mut Random) -> Vec<u8> {
        const NUMBERS: &[i64] =
            &[0, 1, 2, 3, 7, 16, 99, 1 << 31, 1 << 40, 1 << 62, i64::MAX, -1, -2, -(1 << 31), i64::MIN];
        let mut fields = self.fields.clone();
        for _ in 0..1 + random.below(4) {
            // Not every message has an integer; retries with other messages.
            for _ in 0..50 {
                let path = random.choose(&self.messages);
                let message = wire::message(&mut fields, path);
                let numbers = message.iter_mut().filter_map(|field| match &mut field.payload {
                    Payload::Varint(number) => Some(number),
                    _ => None,
                });
                let mut numbers: Vec<_> = numbers.collect();
                if !numbers.is_empty() {
                    let position = random.below(numbers.len());
                    *numbers[position] = *random.choose(NUMBERS) as u64;
                    break;
                }
            }
        }
        wire::write(&fields)
    }

    /// Exchanges names and operators: creates cycles, duplicates, and operands of the wrong type.
    fn renamed(&self, random: &mut Random) -> Vec<u8> {
        fn texts<'a>(fields: &'a mut [Field], found: &mut Vec<&'a mut Vec<u8>>) {
            for field in fields {
                match &mut field.payload {
                    Payload::Bytes(bytes) if bytes.len() < 64 => found.push(bytes),
                    Payload::Message(fields) => texts(fields, found),
                    _ => {}
                }
            }
        }
        const OPERATORS: &[&str] =
            &["Concat", "Reshape", "If", "Loop", "Split", "Resize", "Einsum", "LSTM", "Nope", ""];
        let mut fields = self.fields.clone();
        let mut found = vec![];
        texts(&mut fields, &mut found);
        if found.is_empty() {
            return self.flipped(random);
        }
        for _ in 0..1 + random.below(4) {
            let (from, to) = (random.below(found.len()), random.below(found.len()));
            *found[to] = match random.below(4) {
                0 => random.choose(OPERATORS).as_bytes().to_vec(),
                _ => found[from].clone(),
            };
        }
        wire::write(&fields)
    }
}
