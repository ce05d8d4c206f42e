//! What a stage is handed by others, and hands on to them.

use super::{Lowering, Storage};
use crate::{
    borders::Form,
    gpu,
    graph::{Id, Node, Value},
    hot::{
        self,
        layout::{self, Blocked, Margin},
    },
};
use divi_onnx::DType;
use rustc_hash::FxHashSet;

/// Bytes of a cache's line.
const LINE: usize = 64;

impl Lowering<'_> {
    /// Has what is handed on be written with the margins that others want.
    pub(super) fn want_margins_of(&mut self, outputs: &[Id], forms: &[Form]) {
        for (&output, form) in outputs.iter().zip(forms) {
            if let Form::Blocked(layout) = form {
                let known = self.margins.entry(output).or_insert(Margin::NONE);
                *known = known.union(&layout.margin).unwrap_or(*known);
            }
        }
    }

    /// Has what only copies to GPUs will read, and what is handed on in this form, be written past the caches: out of the caches of
    /// cores, they take twice as long.
    pub(super) fn stream(&mut self, output: Id, form: Form) {
        let writes_whole_lines = self.lanes() * 4 == LINE;
        if writes_whole_lines && !self.is_gpu() {
            self.streamed.insert(output, form);
        }
    }

    /// Whether kernels that write whole lines of a value do so past the caches: it lies as it is handed on, and the stage itself
    /// does not read it.
    pub(crate) fn is_streamed(&self, id: Id) -> bool {
        let lies_so = match (self.streamed.get(&id), self.layouts.get(&id)) {
            (None, _) | (Some(Form::Blocked(_)), None) | (Some(Form::Dense), Some(_)) => false,
            (Some(Form::Blocked(wanted)), Some(layout)) => wanted == layout,
            (Some(Form::Free), Some(layout)) => layout.is_worth_it(),
            (Some(Form::Free | Form::Dense), None) => true,
        };
        let is_read_here = self.wholes.contains(&id) || self.readers.get(&id).is_some_and(|readers| readers.len() > 1);
        lies_so && !is_read_here && !self.is_preparing
    }

    /// Makes what the stage is handed be read from its inputs; says how it lies there.
    pub(crate) fn place_inputs(&mut self, inputs: &[Id], nodes: &[Node], forms: &[Form]) -> Vec<Form> {
        let images = if self.is_gpu() { FxHashSet::default() } else { hot::images(self, nodes) };
        let mut decided = vec![];
        for (i, (&input, &form)) in inputs.iter().zip(forms).enumerate() {
            let form = form.or(self.border(input).filter(|_| images.contains(&input)));
            decided.push(form);
            match form {
                Form::Blocked(layout) if self.is_gpu() => {
                    let reader = nodes.iter().find(|node| node.inputs.contains(&Some(input)));
                    self.task = reader.map_or(0, |node| node.task);
                    let blocked = self.temporary(DType::F32, &layout.shape());
                    self.storage[blocked.0] = Storage::Input(i);
                    gpu::to_dense(self, blocked, input, layout);
                }
                Form::Blocked(layout) => {
                    self.layouts.insert(input, layout);
                    self.storage[input.0] = Storage::Input(i);
                }
                Form::Dense | Form::Free => self.storage[input.0] = Storage::Input(i),
            }
        }
        decided
    }

    /// Makes what the stage hands on be written to its outputs, by those who compute it or by a copy; says how it lies there.
    pub(crate) fn place_outputs(&mut self, outputs: &[Id], forms: &[Form], for_gpus: &[bool]) -> Vec<Form> {
        let mut decided = vec![];
        for (i, (&output, &form)) in outputs.iter().zip(forms).enumerate() {
            let form = form.or(self.layouts.get(&output).copied().filter(Blocked::is_worth_it));
            decided.push(form);
            match form {
                Form::Blocked(layout) => self.place_blocked_output(i, output, layout, for_gpus[i]),
                Form::Dense | Form::Free => self.place_dense_output(i, output, for_gpus[i]),
            }
        }
        decided
    }

    fn place_dense_output(&mut self, i: usize, output: Id, is_for_gpus: bool) {
        let output = self.dense(output);
        let root = self.root(output);
        // Buffers of parts are in the arena: an output has no places inside.
        let is_free = self.storage[root.0] == Storage::Unplaced
            && self.values[root.0].constant.is_none()
            && !self.wholes.contains(&root);
        if is_free {
            self.storage[root.0] = Storage::Output(i);
            return;
        }
        let Value { dtype, shape, .. } = self.values[output.0].clone();
        let copy = self.temporary(dtype, &shape);
        self.storage[copy.0] = Storage::Output(i);
        if is_for_gpus {
            self.stream(copy, Form::Dense);
        }
        crate::ops::copy_out(self, output, copy);
    }

    /// How an input would be read in blocks; `None` if that is of no use.
    fn border(&self, input: Id) -> Option<Blocked> {
        let margin = self.margins.get(&input).copied().unwrap_or_default();
        Blocked::of(self.shape(input), self.lanes(), margin)
            .filter(|layout| layout.is_worth_it() && self.dtype(input) == DType::F32)
    }

    /// Makes an image be written to an output in blocks, by those who compute it if they do it so, else by a copy.
    fn place_blocked_output(&mut self, i: usize, output: Id, layout: Blocked, is_for_gpus: bool) {
        let own = self.layouts.get(&output).copied();
        if own == Some(layout) && self.storage[output.0] == Storage::Unplaced && !self.wholes.contains(&output) {
            self.storage[output.0] = Storage::Output(i);
            return;
        }
        if self.is_gpu() {
            let copy = self.temporary(DType::F32, &layout.shape());
            self.storage[copy.0] = Storage::Output(i);
            return gpu::to_blocks(self, output, copy, layout);
        }
        let shape = self.shape(output).to_vec();
        let copy = self.temporary(DType::F32, &shape);
        self.layouts.insert(copy, layout);
        self.storage[copy.0] = Storage::Output(i);
        if is_for_gpus {
            self.stream(copy, Form::Blocked(layout));
        }
        match own {
            Some(source) => layout::with_margin(self, output, copy, &source, &layout),
            None => layout::to_blocks(self, output, copy, &layout),
        }
    }
}
