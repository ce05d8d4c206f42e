//! Epilogues of CUDA kernels.

use crate::{
    emit::{Builder, V},
    epilogue::FusedEpilogue,
    graph::broadcast_strides,
    lowering::Lowering,
};
use divi_onnx::DType;

/// Epilogue with the strides of its operands.
pub(super) struct Finish<'a> {
    fused: &'a FusedEpilogue,
    /// Strides of each operand along the axes of the result; 0 where it is broadcast.
    steps: Vec<Vec<i64>>,
}

impl<'a> Finish<'a> {
    /// Creates the epilogue for a result of a shape.
    pub(super) fn of(cx: &Lowering<'_>, fused: &'a FusedEpilogue, shape: &[i64]) -> Self {
        let steps = fused
            .operands
            .iter()
            .map(|&id| if cx.count(id) == 1 { vec![0; shape.len()] } else { broadcast_strides(cx.shape(id), shape) });
        Self { fused, steps: steps.collect() }
    }

    /// Emits the epilogue of the element at coordinates `place`. Returns the result.
    pub(super) fn emit(&self, b: &Builder, buffers: &[V], place: &[V], sum: V) -> V {
        let operands = self.steps.iter().zip(buffers);
        let operands: Vec<_> =
            operands.map(|(steps, &pointer)| b.load(pointer, DType::F32, b.offset(place, steps))).collect();
        self.fused.emit(b, sum, &operands)
    }
}
