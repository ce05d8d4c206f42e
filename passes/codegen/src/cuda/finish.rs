//! What is computed of a kernel's sums before they are stored.

use crate::{
    emit::{Builder, V},
    epilogue::Program,
    graph::broadcast_strides,
    lowering::Lowering,
};
use divi_onnx::DType;

/// What is computed of each sum, and where its operands are.
pub(super) struct Finish<'a> {
    program: &'a Program,
    steps: Vec<Vec<i64>>,
}

impl<'a> Finish<'a> {
    /// For results of a shape.
    pub(super) fn of(cx: &Lowering<'_>, program: &'a Program, shape: &[i64]) -> Self {
        let steps = program
            .operands
            .iter()
            .map(|&id| if cx.count(id) == 1 { vec![0; shape.len()] } else { broadcast_strides(cx.shape(id), shape) });
        Self { program, steps: steps.collect() }
    }

    /// The result at a place.
    pub(super) fn emit(&self, b: &Builder, buffers: &[V], place: &[V], sum: V) -> V {
        let operands = self.steps.iter().zip(buffers);
        let operands: Vec<_> =
            operands.map(|(steps, &pointer)| b.load(pointer, DType::F32, b.offset(place, steps))).collect();
        self.program.emit(b, sum, &operands)
    }
}
