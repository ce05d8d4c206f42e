//! Windows and mel filters, computed at compile time.

use super::known_int;
use crate::{
    error::{Result, unsupported},
    graph::{Id, Node},
    lowering::Lowering,
};
use divi_onnx::{Op, Tensor};
use divi_runtime::prepare::Expression;
use std::f64::consts::{LN_10, PI};

/// Makes a result a constant.
fn define(cx: &mut Lowering<'_>, result: Id, values: &[f64]) -> Result<()> {
    let (dtype, shape) = (cx.dtype(result), cx.shape(result).to_vec());
    let tensor = if dtype.is_float() {
        Tensor::from_floats(dtype, shape.clone(), values)
    } else {
        let whole: Vec<_> = values.iter().map(|&value| value as i64).collect();
        Tensor::from_ints(dtype, shape.clone(), &whole)
    };
    let Some(tensor) = tensor else { return unsupported(format!("results of type {dtype} are not supported")) };
    let constant = cx.constant(dtype, &shape, Expression::bytes(tensor.bytes()));
    cx.alias(result, constant);
    Ok(())
}

pub(super) fn window(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let size = known_int(cx, node.input(0)?, "the window's size")?;
    let period = if node.attributes().flag("periodic", true)? { size } else { size - 1 };
    let value = |i: i64| {
        // A symmetric window of one element consists of its middle.
        if period == 0 {
            return 1.0;
        }
        let angle = 2.0 * PI * i as f64 / period as f64;
        match node.op {
            Op::HannWindow => 0.5 - 0.5 * angle.cos(),
            Op::HammingWindow => 25.0 / 46.0 - 21.0 / 46.0 * angle.cos(),
            _ => 0.42 - 0.5 * angle.cos() + 0.08 * (2.0 * angle).cos(),
        }
    };
    let values: Vec<_> = (0..size).map(value).collect();
    define(cx, node.output()?, &values)
}

/// Lowers MelWeightMatrix: triangular filters over the bins of a spectrum, of equal width on the mel scale.
pub(super) fn mel_weight_matrix(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let bins = known_int(cx, node.input(0)?, "the number of bins")?;
    let length = known_int(cx, node.input(1)?, "the length of the transform")?;
    let rate = known_int(cx, node.input(2)?, "the sample rate")?;
    let edge = |index: usize| -> Result<f64> {
        let id = node.input(index)?;
        match cx.tensor(id).and_then(Tensor::floats).as_deref() {
            Some(&[hertz]) => Ok(hertz),
            _ => unsupported("the edges of the frequencies must be constant: the filter is computed at compile time"),
        }
    };
    let mel = |hertz: f64| 2595.0 * (hertz / 700.0).ln_1p() / LN_10;
    let (low, high) = (mel(edge(3)?), mel(edge(4)?));
    let step = (high - low) / (bins + 2) as f64;
    let point = |i: i64| {
        let hertz = 700.0 * ((i as f64 * step + low) / 2595.0 * LN_10).exp_m1();
        ((length + 1) as f64 * hertz / rate as f64).floor() as i64
    };
    let rows = length / 2 + 1;
    let mut values = vec![0.0; (rows * bins) as usize];
    let mut set = |row: i64, column: i64, value: f64| {
        if (0..rows).contains(&row) {
            values[(row * bins + column) as usize] = value;
        }
    };
    for column in 0..bins {
        let (left, middle, right) = (point(column), point(column + 1), point(column + 2));
        if left == middle {
            set(middle, column, 1.0);
        } else {
            for row in left.max(0)..=middle.min(rows) {
                set(row, column, (row - left) as f64 / (middle - left) as f64);
            }
        }
        for row in middle.max(0)..right.min(rows) {
            set(row, column, (right - row) as f64 / (right - middle) as f64);
        }
    }
    define(cx, node.output()?, &values)
}
