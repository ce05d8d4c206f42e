//! How images lie in memory on their way from stage to stage.
//!
//! CPUs compute with images in blocks. What is handed from stage to stage stays in them wherever a CPU has one of the ends: other CPUs
//! read it so, and GPUs, which take microseconds for that, put it into another order and back. Inputs and outputs of the model are
//! dense, and so is whatever is cut into batches on its way.

#[cfg(test)]
mod tests;

use crate::{
    layout::{Ends, Form},
    program::Program,
};
use divi_cost::device::MemorySpace;
use divi_runtime::bundle::{Action, Step, Tensor};

/// The forms of a program's values: the same for a value, its copies on other devices, and the ends of stages that it is at.
pub(crate) struct Borders {
    /// Of each value and of each end, another one with the same form; roots are their own.
    same: Vec<usize>,
    /// Those of roots count.
    forms: Vec<Form>,
    /// The first input and the first output of each stage, and what is behind its last output.
    stages: Vec<[usize; 3]>,
}

impl Borders {
    /// Assigns row-major layouts wherever no other is possible: at the model's inputs and outputs, at slices and gathers, and at stages of
    /// devices that do not accept blocked ones.
    pub(crate) fn of(program: &Program, accepts_blocked: &dyn Fn(usize) -> bool) -> Self {
        let mut count = program.values.len();
        let mut stages = vec![];
        for stage in &program.stages {
            let outputs = count + stage.graph.inputs.len();
            stages.push([count, outputs, outputs + stage.graph.outputs.len()]);
            count = outputs + stage.graph.outputs.len();
        }
        let mut borders = Self { same: (0..count).collect(), forms: vec![Form::Free; count], stages };
        for step in &program.steps {
            match &step.action {
                Action::Launch { stage, inputs, outputs } => {
                    let [first_input, first_output, _] = borders.stages[*stage];
                    let ends = (first_input..).zip(inputs).chain((first_output..).zip(outputs));
                    ends.for_each(|(end, &value)| borders.unite(end, value));
                }
                Action::Transfer { input, output } => borders.unite(*input, *output),
                Action::Slice { .. } | Action::Gather { .. } => {}
            }
        }
        for step in &program.steps {
            match &step.action {
                Action::Slice { input, output, .. } => borders.set_all(&[*input, *output], Form::Dense),
                Action::Gather { inputs, output, .. } => {
                    borders.set_all(inputs, Form::Dense);
                    borders.set(*output, Form::Dense);
                }
                Action::Launch { .. } | Action::Transfer { .. } => {}
            }
        }
        for (number, stage) in program.stages.iter().enumerate().filter(|(_, stage)| !accepts_blocked(stage.device)) {
            let [first, _, end] = borders.stages[number];
            debug_assert_eq!(end - first, stage.graph.inputs.len() + stage.graph.outputs.len());
            (first..end).for_each(|end| borders.set(end, Form::Dense));
        }
        for port in program.inputs.iter().chain(&program.outputs) {
            borders.set(port.value, Form::Dense);
        }
        for (value, _) in program.values.iter().enumerate().filter(|(_, value)| value.constant.is_some()) {
            borders.set(value, Form::Dense);
        }
        // Who has two of these would be asked about both at once, and might answer differently.
        for stage in 0..borders.stages.len() {
            let [first, _, end] = borders.stages[stage];
            let mut roots: Vec<_> = (first..end).map(|end| borders.root(end)).collect();
            roots.sort_unstable();
            let twice: Vec<_> = roots.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
            borders.set_all(&twice, Form::Dense);
        }
        borders
    }

    /// The form of a value of the program.
    pub(crate) fn form(&self, value: usize) -> Form {
        self.forms[self.root(value)]
    }

    pub(crate) fn ends(&self, stage: usize) -> Ends {
        let [inputs, outputs, end] = self.stages[stage];
        let forms = |range: std::ops::Range<usize>| range.map(|end| self.form(end)).collect();
        Ends { inputs: forms(inputs..outputs), outputs: forms(outputs..end) }
    }

    /// Keeps what a stage was lowered with, for whoever else has those values.
    pub(crate) fn settle(&mut self, stage: usize, ends: &Ends) {
        let [first, ..] = self.stages[stage];
        let forms = ends.inputs.iter().chain(&ends.outputs);
        (first..).zip(forms).for_each(|(end, &form)| self.set(end, form));
    }

    fn root(&self, mut end: usize) -> usize {
        while self.same[end] != end {
            end = self.same[end];
        }
        end
    }

    fn unite(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.same[a] = b;
    }

    fn set(&mut self, end: usize, form: Form) {
        let root = self.root(end);
        self.forms[root] = form;
    }

    fn set_all(&mut self, ends: &[usize], form: Form) {
        ends.iter().for_each(|&end| self.set(end, form));
    }
}

/// Returns for each output of each stage whether only copies to memory of other devices read it. `memory` returns the memory space of a
/// device.
pub(crate) fn streamed_outputs(program: &Program, memory: &dyn Fn(usize) -> MemorySpace) -> Vec<Vec<bool>> {
    let mut is_streamed = vec![true; program.values.len()];
    let has_own_memory = |value: usize| memory(program.values[value].device) == MemorySpace::Device;
    for Step { action, .. } in &program.steps {
        match action {
            Action::Transfer { output, .. } if has_own_memory(*output) => {}
            _ => action.reads().iter().for_each(|&value| is_streamed[value] = false),
        }
    }
    program.outputs.iter().for_each(|port| is_streamed[port.value] = false);
    // A stage that runs several times has several values at each end.
    let mut stages: Vec<_> = program.stages.iter().map(|stage| vec![true; stage.graph.outputs.len()]).collect();
    for Step { action, .. } in &program.steps {
        if let Action::Launch { stage, outputs, .. } = action {
            stages[*stage].iter_mut().zip(outputs).for_each(|(all, &value)| *all &= is_streamed[value]);
        }
    }
    stages
}

/// Sets the layout of a tensor of the bundle, which is described as a row-major one.
pub(crate) fn describe(form: Form, tensor: &mut Tensor) {
    if let Form::Blocked(blocked) = form {
        tensor.layout = blocked.layout();
        tensor.bytes = blocked.elements() as u64 * 4;
    }
}
