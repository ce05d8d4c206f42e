//! Mutations of bytes.

use crate::random::Random;

/// Boundary values of integers.
pub(super) const NUMBERS: &[i64] = &[
    0,
    1,
    2,
    3,
    7,
    16,
    99,
    127,
    128,
    255,
    65_535,
    65_536,
    (1 << 31) - 1,
    1 << 31,
    u32::MAX as i64,
    1 << 32,
    1 << 40,
    1 << 53,
    1 << 62,
    i64::MAX,
    -1,
    -2,
    -128,
    -(1 << 31),
    i64::MIN,
];

/// Makes one to four changes.
pub(super) fn changed(bytes: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..1 + random.below(4) {
        if bytes.is_empty() {
            return vec![random.next_u64() as u8];
        }
        change(&mut bytes, other, random);
    }
    bytes
}

fn change(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let position = random.below(bytes.len());
    match random.below(9) {
        0 => bytes.truncate(position),
        1 => bytes[position] ^= 1 << random.below(8),
        2 => bytes[position] = random.next_u64() as u8,
        3 => drop(bytes.drain(position..(position + 1 + random.below(16)).min(bytes.len()))),
        4 => {
            // Duplicates a piece of the file.
            let end = (position + 1 + random.below(64)).min(bytes.len());
            let piece = bytes[position..end].to_vec();
            let to = random.below(bytes.len());
            bytes.splice(to..to, piece);
        }
        5 if !other.is_empty() => {
            let start = random.below(other.len());
            let end = (start + 1 + random.below(64)).min(other.len());
            let replaced = (position + (end - start) * random.below(2)).min(bytes.len());
            bytes.splice(position..replaced, other[start..end].iter().copied());
        }
        6 => {
            // Overwrites with a binary number.
            let number = random.choose(NUMBERS).to_le_bytes();
            let width = (1 << random.below(4)).min(bytes.len() - position);
            bytes[position..position + width].copy_from_slice(&number[..width]);
        }
        _ => digits(bytes, random),
    }
}

/// Replaces a decimal number.
pub(super) fn digits(bytes: &mut Vec<u8>, random: &mut Random) {
    let start = random.below(bytes.len());
    let Some(first) = (start..bytes.len()).find(|&i| bytes[i].is_ascii_digit()) else { return };
    let end = (first..bytes.len()).find(|&i| !bytes[i].is_ascii_digit()).unwrap_or(bytes.len());
    let text = match random.below(8) {
        0 => "1e308".to_owned(),
        1 => "1e-320".to_owned(),
        2 => "9".repeat(40),
        3 => "0.5".to_owned(),
        _ => random.choose(NUMBERS).to_string(),
    };
    bytes.splice(first..end, text.into_bytes());
}
