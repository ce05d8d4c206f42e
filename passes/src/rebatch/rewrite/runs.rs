//! Operators that mix the inputs of a batch: one run after the other.

use super::{Rewriter, name, name_of};
use crate::{
    ir::{operands, reshaped_type, results, tensor_type_of_value, type_of, uses, walk},
    rebatch::{
        analysis::Batch,
        layout::{Layout, scaled},
    },
};
use divi_onnx::{Dim, Op, TensorType};
use mlir_sys::*;
use rustc_hash::FxHashMap;
use std::ffi::c_void;

impl Rewriter<'_> {
    /// Runs an operator once for each run, on its part of the operands, and puts the results together.
    pub(super) fn unroll(&mut self, operation: MlirOperation) {
        let mut used = vec![];
        walk(operation, &mut |inner| used.extend(operands(inner)));
        let mut parts: FxHashMap<*const c_void, Vec<MlirValue>> = FxHashMap::default();
        for value in used.into_iter().filter(|&value| self.rebatched.analysis.batch(value) != Batch::Same) {
            parts.insert(value.ptr, self.parts(operation, value));
        }
        let mut runs: Vec<Vec<MlirValue>> = vec![];
        for run in 0..self.factor() as usize {
            // SAFETY: the operation is alive; the block takes ownership of the clone.
            let clone = unsafe {
                let clone = mlirOperationClone(operation);
                mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(operation), operation, clone);
                clone
            };
            walk(clone, &mut |inner| {
                for (i, value) in operands(inner).into_iter().enumerate() {
                    if let Some(part) = parts.get(&value.ptr) {
                        // SAFETY: operation and value are alive.
                        unsafe { mlirOperationSetOperand(inner, i as isize, part[run]) };
                    }
                }
            });
            if let Some(name) = name(operation) {
                self.builder(operation).set_name(clone, &format!("{name}#{run}"));
            }
            runs.push(results(clone));
        }
        for (i, result) in results(operation).into_iter().enumerate() {
            let of_result: Vec<_> = runs.iter().map(|run| run[i]).collect();
            match self.rebatched.analysis.batch(result) {
                Batch::At(layout) => {
                    let ty = tensor_type_of_value(result).and_then(|ty| scaled(&ty, layout.axis, self.factor()));
                    let ty = ty.expect("the analysis found the size");
                    let together = self.concat(operation, &of_result, layout.axis, &ty, name(operation));
                    self.replacements.push((result, together));
                }
                // Absent results are alike; others are taken from `parts`.
                _ if !uses(result).is_empty() => self.replacements.push((result, of_result[0])),
                _ => {}
            }
            self.parts.insert(result.ptr, of_result);
        }
        self.dead.push(operation);
    }

    /// The runs of a batched value, in front of an operator.
    fn parts(&mut self, before: MlirOperation, value: MlirValue) -> Vec<MlirValue> {
        if let Some(parts) = self.parts.get(&value.ptr) {
            return parts.clone();
        }
        let Batch::At(layout) = self.rebatched.analysis.batch(value) else {
            unreachable!("what is not together has been taken apart when it was made")
        };
        let parts: Vec<_> = (0..self.factor()).map(|run| self.part(before, value, layout, run)).collect();
        self.parts.insert(value.ptr, parts.clone());
        parts
    }

    /// One run of a value.
    fn part(&mut self, before: MlirOperation, value: MlirValue, layout: Layout, run: i64) -> MlirValue {
        let Layout { axis, outer } = layout;
        let ty = tensor_type_of_value(value).expect("what is batched is a tensor");
        let shape = ty.shape.clone().expect("what is batched has the axis");
        let size = shape[axis].known().expect("the analysis found the size") / self.factor();
        let one = with_size(&ty, axis, size);
        let of = |rewriter: &Self, ty: &TensorType| reshaped_type(rewriter.context, type_of(value), ty);
        let suffix = |what: &str| name_of(value).map(|name| format!("{name}#{what}{run}"));
        // Parts that are not behind each other are, once their number is an axis of its own.
        let (source, source_ty, at, rest) = match outer {
            1 => (value, ty.clone(), axis, size),
            _ => {
                let rest = size / outer;
                let mut split = shape;
                split[axis] = Dim::Known(rest * self.factor());
                split.insert(axis, Dim::Known(outer));
                let split = TensorType::new(ty.dtype, split);
                let r#type = of(self, &split);
                let split_value = self.reshaped(before, value, r#type, suffix("split").as_deref());
                (split_value, split, axis + 1, rest)
            }
        };
        let operands = [
            source,
            self.list(before, &[run * rest]),
            self.list(before, &[(run + 1) * rest]),
            self.list(before, &[at as i64]),
            self.list(before, &[1]),
        ];
        let r#type = of(self, &with_size(&source_ty, at, rest));
        let part =
            self.builder(before).result(Op::Slice.operation_name(), &operands, r#type, &[], suffix("slice").as_deref());
        if outer == 1 {
            return part;
        }
        let r#type = of(self, &one);
        self.reshaped(before, part, r#type, suffix("merge").as_deref())
    }

    /// Values behind each other along an axis.
    fn concat(
        &self,
        before: MlirOperation,
        values: &[MlirValue],
        axis: usize,
        ty: &TensorType,
        name: Option<&str>,
    ) -> MlirValue {
        let builder = self.builder(before);
        let r#type = reshaped_type(self.context, type_of(values[0]), ty);
        let name = name.map(|name| format!("{name}#concat"));
        builder.result(
            Op::Concat.operation_name(),
            values,
            r#type,
            &[builder.int("axis", axis as i64)],
            name.as_deref(),
        )
    }

    /// The runs of a value that has no axis for them, along a new first axis.
    pub(super) fn stack(&mut self, before: MlirOperation, value: MlirValue) -> MlirValue {
        let ty = tensor_type_of_value(value).expect("the analysis found a tensor");
        let mut shape = ty.shape.clone().expect("the analysis found the rank");
        shape.insert(0, Dim::Known(1));
        let row = TensorType::new(ty.dtype, shape);
        let axes = self.list(before, &[0]);
        let mut rows = vec![];
        for part in self.parts(before, value) {
            let r#type = reshaped_type(self.context, type_of(value), &row);
            let name = name_of(part).map(|name| format!("{name}#row"));
            rows.push(self.builder(before).result(
                Op::Unsqueeze.operation_name(),
                &[part, axes],
                r#type,
                &[],
                name.as_deref(),
            ));
        }
        let ty = scaled(&row, 0, self.factor()).expect("a new axis is as long as there are runs");
        self.concat(before, &rows, 0, &ty, name_of(value))
    }
}

fn with_size(ty: &TensorType, axis: usize, size: i64) -> TensorType {
    let mut ty = ty.clone();
    if let Some(dim) = ty.shape.as_mut().and_then(|shape| shape.get_mut(axis)) {
        *dim = Dim::Known(size);
    }
    ty
}
