//! Mutations of texts made of lines.

use super::bytes::digits;
use crate::random::Random;

/// Makes one to four changes.
pub(super) fn changed(bytes: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = bytes.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
    let others: Vec<&[u8]> = other.split(|&byte| byte == b'\n').collect();
    for _ in 0..1 + random.below(4) {
        let (a, b) = (random.below(lines.len()), random.below(lines.len()));
        match random.below(7) {
            0 => lines.swap(a, b),
            1 => lines.insert(b, lines[a].clone()),
            2 if lines.len() > 1 => drop(lines.remove(a)),
            3 => lines.insert(a, random.choose(&others).to_vec()),
            4 => {
                // Combines the key of one line with the value of another.
                let value = lines[b].splitn(2, |&byte| byte == b'=').nth(1).map(<[u8]>::to_vec);
                let key = lines[a].split(|&byte| byte == b'=').next().map(<[u8]>::to_vec);
                if let (Some(key), Some(value)) = (key, value) {
                    lines[a] = [&key[..], b"=", &value].concat();
                }
            }
            _ if !lines[a].is_empty() => digits(&mut lines[a], random),
            _ => {}
        }
    }
    lines.join(&b'\n')
}
