//! Mutations of JSON.

use super::bytes::NUMBERS;
use crate::random::Random;
use serde_json::{Number, Value, json};

/// Makes one to four changes to a document.
pub(super) fn changed(value: &Value, other: &Value, random: &mut Random) -> Vec<u8> {
    let mut value = value.clone();
    for _ in 0..1 + random.below(4) {
        let count = count(&value);
        let (target, source) = (random.below(count), random.below(count));
        let piece = if random.one_in(3) {
            nth(other, random.below(self::count(other))).cloned()
        } else {
            nth(&value, source).cloned()
        };
        // A piece that contains the whole document would double it with each change.
        let piece = piece.filter(|piece| self::count(piece) < 200).unwrap_or_default();
        if let Some(place) = nth_mut(&mut value, &mut { target }) {
            change(place, piece, random);
        }
    }
    value.to_string().into_bytes()
}

fn change(place: &mut Value, piece: Value, random: &mut Random) {
    match (random.below(6), &mut *place) {
        (0, Value::Array(items)) if !items.is_empty() => {
            let (a, b) = (random.below(items.len()), random.below(items.len()));
            items.swap(a, b);
        }
        (1, Value::Array(items)) if !items.is_empty() => drop(items.remove(random.below(items.len()))),
        (2, Value::Array(items)) => {
            let at = random.below(items.len() + 1);
            items.insert(at, piece);
        }
        (0 | 1, Value::Object(fields)) if !fields.is_empty() => {
            let name = fields.keys().nth(random.below(fields.len())).cloned().unwrap_or_default();
            fields.remove(&name);
        }
        (2, Value::Object(fields)) if !fields.is_empty() => {
            let name = fields.keys().nth(random.below(fields.len())).cloned().unwrap_or_default();
            fields.insert(name, piece);
        }
        (0..4, Value::Number(_)) => *place = number(random),
        (3, _) => *place = small(random),
        _ => *place = piece,
    }
}

fn number(random: &mut Random) -> Value {
    let fractions = [0.5, -0.0, 1e308, -1e308, 1e-320, 0.1, 1e19];
    match random.below(3) {
        0 => Number::from_f64(*random.choose(&fractions)).map_or(Value::Null, Value::Number),
        _ => json!(*random.choose(NUMBERS)),
    }
}

fn small(random: &mut Random) -> Value {
    match random.below(8) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(""),
        3 => json!([]),
        4 => json!({}),
        5 => json!("\u{0}\u{ffff}x"),
        6 => json!([[[[[[[[[[]]]]]]]]]]),
        _ => number(random),
    }
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(fields) => fields.values().collect(),
        _ => vec![],
    }
}

/// Counts the values of a document.
fn count(value: &Value) -> usize {
    1 + children(value).into_iter().map(count).sum::<usize>()
}

fn nth(value: &Value, mut index: usize) -> Option<&Value> {
    if index == 0 {
        return Some(value);
    }
    index -= 1;
    for child in children(value) {
        let size = count(child);
        if index < size {
            return nth(child, index);
        }
        index -= size;
    }
    None
}

fn nth_mut<'a>(value: &'a mut Value, index: &mut usize) -> Option<&'a mut Value> {
    if *index == 0 {
        return Some(value);
    }
    *index -= 1;
    let children: Vec<&mut Value> = match value {
        Value::Array(items) => items.iter_mut().collect(),
        Value::Object(fields) => fields.values_mut().collect(),
        _ => vec![],
    };
    for child in children {
        let size = count(child);
        if *index < size {
            return nth_mut(child, index);
        }
        *index -= size;
    }
    None
}
