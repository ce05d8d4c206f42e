//! Unrolls operators that mix the inputs of a batch.

use super::{Rewriter, build::Builder, name, name_of};
use crate::rebatch::{
    analysis::Batch,
    layout::{Layout, scaled},
};
use divi_dialect::{Operation, Value, attr, reshaped_type};
use divi_onnx::{Dim, Op, TensorType};
use rustc_hash::FxHashMap;

impl<'m> Rewriter<'m> {
    /// Clones an operator for each run, on slices of its operands, and concatenates the results.
    pub(super) fn unroll(&mut self, operation: Operation<'m>) {
        let mut used = vec![];
        operation.walk(|inner| used.extend(inner.operands()));
        let mut parts: FxHashMap<Value<'m>, Vec<Value<'m>>> = FxHashMap::default();
        for value in used.into_iter().filter(|&value| self.rebatched.analysis.batch(value) != Batch::Same) {
            parts.insert(value, self.parts(operation, value));
        }
        let mut runs: Vec<Vec<Value<'m>>> = vec![];
        for run in 0..self.factor() as usize {
            let clone = operation.clone_detached().insert_before(operation);
            clone.walk(|inner| {
                for (i, value) in inner.operands().into_iter().enumerate() {
                    if let Some(part) = parts.get(&value) {
                        inner.set_operand(i, part[run]);
                    }
                }
            });
            if let Some(name) = name(operation) {
                clone.set(attr::NODE_NAME, &format!("{name}#{run}"));
            }
            runs.push(clone.results());
        }
        for (i, result) in operation.results().into_iter().enumerate() {
            let of_result: Vec<_> = runs.iter().map(|run| run[i]).collect();
            match self.rebatched.analysis.batch(result) {
                Batch::At(layout) => {
                    let ty = result.tensor_type().and_then(|ty| scaled(&ty, layout.axis, self.factor()));
                    let ty = ty.expect("the analysis found the size");
                    let together = self.concat(operation, &of_result, layout.axis, &ty, name(operation));
                    self.replacements.push((result, together));
                }
                // An absent result is the same in all runs; other values are taken from `parts`.
                _ if !result.uses().is_empty() => self.replacements.push((result, of_result[0])),
                _ => {}
            }
            self.parts.insert(result, of_result);
        }
        self.dead.push(operation);
    }

    /// Slices a batched value into its runs, before an operator.
    fn parts(&mut self, before: Operation<'m>, value: Value<'m>) -> Vec<Value<'m>> {
        if let Some(parts) = self.parts.get(&value) {
            return parts.clone();
        }
        let Batch::At(layout) = self.rebatched.analysis.batch(value) else {
            unreachable!("values of single runs are recorded by `unroll`")
        };
        let parts: Vec<_> = (0..self.factor()).map(|run| self.part(before, value, layout, run)).collect();
        self.parts.insert(value, parts.clone());
        parts
    }

    /// Slices one run out of a value.
    fn part(&mut self, before: Operation<'m>, value: Value<'m>, layout: Layout, run: i64) -> Value<'m> {
        let Layout { axis, outer } = layout;
        let ty = value.tensor_type().expect("only tensors are batched");
        let shape = ty.shape.clone().expect("a batched tensor has the axis");
        let size = shape[axis].known().expect("the analysis found the size") / self.factor();
        let one = with_size(&ty, axis, size);
        let of = |rewriter: &Self, ty: &TensorType| reshaped_type(rewriter.context, value.r#type(), ty);
        let suffix = |what: &str| name_of(value).map(|name| format!("{name}#{what}{run}"));
        // Elements of a run that are not contiguous are, once `outer` is an axis of its own.
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
            Builder { before }.result(Op::Slice.operation_name(), &operands, r#type, &[], suffix("slice").as_deref());
        if outer == 1 {
            return part;
        }
        let r#type = of(self, &one);
        self.reshaped(before, part, r#type, suffix("merge").as_deref())
    }

    /// Concatenates values along an axis.
    fn concat(
        &self,
        before: Operation<'m>,
        values: &[Value<'m>],
        axis: usize,
        ty: &TensorType,
        name: Option<&str>,
    ) -> Value<'m> {
        let builder = Builder { before };
        let r#type = reshaped_type(self.context, values[0].r#type(), ty);
        let name = name.map(|name| format!("{name}#concat"));
        builder.result(
            Op::Concat.operation_name(),
            values,
            r#type,
            &[builder.int("axis", axis as i64)],
            name.as_deref(),
        )
    }

    /// Concatenates the runs of a value that has no axis for them along a new first axis.
    pub(super) fn stack(&mut self, before: Operation<'m>, value: Value<'m>) -> Value<'m> {
        let ty = value.tensor_type().expect("the analysis found a tensor");
        let mut shape = ty.shape.clone().expect("the analysis found the rank");
        shape.insert(0, Dim::Known(1));
        let row = TensorType::new(ty.dtype, shape);
        let axes = self.list(before, &[0]);
        let mut rows = vec![];
        for part in self.parts(before, value) {
            let r#type = reshaped_type(self.context, value.r#type(), &row);
            let name = name_of(part).map(|name| format!("{name}#row"));
            rows.push(Builder { before }.result(
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
