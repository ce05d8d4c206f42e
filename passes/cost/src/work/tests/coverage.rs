//! Tests that all operators with inference have a class and a rule.

use super::super::{Class, opaque_work, work};
use crate::testing::Random;
use divi_onnx::{Attr, Attributes, DType, Dim, Node, Op, Tensor, TensorType, Value, schema};

/// Operators that no class fits, with the reason.
const UNCLASSIFIED: &[(&str, &str)] = &[
    ("DFT", "a fast Fourier transform has a special memory access pattern"),
    ("Det", "elimination is serial in the rows"),
    ("ImageDecoder", "decompression depends on the format"),
    ("NonMaxSuppression", "sorting, then a data-dependent loop"),
    ("STFT", "a fast Fourier transform has a special memory access pattern"),
    ("TfIdfVectorizer", "dictionary lookups"),
    ("Unique", "sorting"),
];

fn known() -> impl Iterator<Item = Op> {
    Op::all().iter().copied().filter(|op| op.is_inferred())
}

#[test]
fn all_known_operators_have_a_class() {
    assert!(known().count() > 180, "the table is not empty");
    for op in known() {
        let listed = UNCLASSIFIED.iter().any(|(other, _)| *other == op.name());
        assert_eq!(op.class() == Class::Other, listed, "{op}");
    }
}

#[test]
fn all_known_operators_have_a_rule() {
    for op in known() {
        assert!(op.work_rule().is_some(), "{op}");
    }
}

impl Random {
    fn int(&mut self) -> i64 {
        self.of(&[0, 1, 1, 2, 2, 3, 4, 8, -1, -2, 1 << 40, i64::MAX, i64::MIN])
    }

    fn ty(&mut self) -> TensorType {
        let dtype = self.of(&[DType::F32, DType::I64, DType::I4, DType::Bool, DType::String, DType::F16]);
        if self.below(20) == 0 {
            return TensorType::unranked(dtype);
        }
        let dim = |random: &mut Self| match random.below(12) {
            0 => Dim::Unknown,
            1 => Dim::Known(random.int()),
            _ => Dim::Known(1 + random.below(6) as i64),
        };
        let rank = self.below(6);
        TensorType::new(dtype, (0..rank).map(|_| dim(self)).collect::<Vec<_>>())
    }

    fn value(&mut self) -> Option<Value> {
        match self.below(8) {
            0 => None,
            1 => Some(Value::constant(Tensor::scalar_i64(self.int()))),
            2 => {
                let list: Vec<_> = (0..self.below(5)).map(|_| self.int()).collect();
                Some(Value::constant(Tensor::from_shape(&list)))
            }
            _ => Some(Value::new(self.ty())),
        }
    }

    fn attr(&mut self) -> Attr {
        let words =
            ["", "linear", "cubic", "nearest", "tanh", "gated_delta", "ij,jk->ik", "...i->...", "i...,é", "silu"];
        match self.below(6) {
            0 | 1 => Attr::Int(self.int()),
            2 => Attr::Float(self.of(&[0.0, 1.0, -1.5, f32::NAN])),
            3 => Attr::Str(self.of(&words).into()),
            4 => Attr::Ints((0..self.below(5)).map(|_| self.int()).collect()),
            _ => Attr::Strs((0..self.below(4)).map(|_| self.of(&["Relu", "Tanh", "Affine", "?"]).into()).collect()),
        }
    }
}

/// Counts all operators on random operands and attributes, which must succeed or fail without a panic.
#[test]
fn hostile_operators_do_not_panic() {
    let mut random = Random::new();
    let (mut counted, mut rejected) = (0, 0);
    for op in known().map(Some).chain([None]) {
        let attributes_of = op.and_then(|op| schema::find(op.name())).map_or(&[][..], |schema| schema.attributes);
        for _ in 0..400 {
            let values: Vec<_> = (0..random.below(9)).map(|_| random.value()).collect();
            let inputs: Vec<_> = values.iter().map(Option::as_ref).collect();
            let chosen = attributes_of.iter().filter(|_| random.below(2) == 0).collect::<Vec<_>>();
            let attributes: Attributes = chosen.iter().map(|attribute| (attribute.name, random.attr())).collect();
            let results: Vec<_> = (0..random.below(4)).map(|_| random.ty()).collect();
            let constant: Vec<_> = (0..random.below(9)).map(|_| random.below(2) == 0).collect();
            let counted_work = match op {
                Some(op) => {
                    let node = Node { op, inputs: &inputs, attributes: &attributes, outputs: results.len() };
                    work(&node, &results, &constant)
                }
                None => opaque_work(&inputs, &results, &constant),
            };
            match counted_work {
                Ok(_) => counted += 1,
                Err(error) => {
                    assert!(!error.to_string().is_empty(), "{op:?}");
                    rejected += 1;
                }
            }
        }
    }
    assert!(counted > 1000 && rejected > 1000, "{counted} counted, {rejected} rejected");
}
