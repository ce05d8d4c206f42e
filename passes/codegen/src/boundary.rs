//! Layout assignment at stage boundaries.
//!
//! CPU kernels compute with blocked images (NCHWc). A value that is passed between stages stays blocked wherever a CPU stage writes or
//! reads it: CPU stages use it directly, and GPUs reorder it in microseconds. Inputs and outputs of the model, and values that are
//! sliced or gathered along the batch, are row-major.

#[cfg(test)]
mod tests;

use crate::{
    layout::{Layout, StageLayouts},
    program::Program,
};
use divi_cost::device::MemorySpace;
use divi_runtime::bundle::{Action, Step, Tensor};

/// Layouts of the values of a program. A value, its copies on other devices, and the stage inputs and outputs bound to it share one layout.
pub(crate) struct LayoutAssignment {
    /// Union-find forest over values and stage inputs and outputs ("ends"): the parent of each, which has the same layout.
    same: Vec<usize>,
    /// Layout of each equivalence class; only entries of roots are valid.
    layouts: Vec<Layout>,
    /// First input, first output and one past the last output of each stage.
    stages: Vec<[usize; 3]>,
}

impl LayoutAssignment {
    /// Assigns row-major layouts wherever no other is possible: to inputs and outputs of the model, constants, operands and results of
    /// slices and gathers, and at boundaries of stages on devices that do not accept blocked layouts.
    pub(crate) fn of(program: &Program, accepts_blocked: &dyn Fn(usize) -> bool) -> Self {
        let mut count = program.values.len();
        let mut stages = vec![];
        for stage in &program.stages {
            let outputs = count + stage.graph.inputs.len();
            stages.push([count, outputs, outputs + stage.graph.outputs.len()]);
            count = outputs + stage.graph.outputs.len();
        }
        let mut assignment = Self { same: (0..count).collect(), layouts: vec![Layout::Unassigned; count], stages };
        for step in &program.steps {
            match &step.action {
                Action::Launch { stage, inputs, outputs } => {
                    let [first_input, first_output, _] = assignment.stages[*stage];
                    let ends = (first_input..).zip(inputs).chain((first_output..).zip(outputs));
                    ends.for_each(|(end, &value)| assignment.unite(end, value));
                }
                Action::Transfer { input, output } => assignment.unite(*input, *output),
                Action::Slice { .. } | Action::Gather { .. } | Action::Send { .. } | Action::Receive { .. } => {}
            }
        }
        for step in &program.steps {
            match &step.action {
                Action::Slice { input, output, .. } => assignment.set_all(&[*input, *output], Layout::RowMajor),
                Action::Gather { inputs, output, .. } => {
                    assignment.set_all(inputs, Layout::RowMajor);
                    assignment.set(*output, Layout::RowMajor);
                }
                Action::Launch { .. } | Action::Transfer { .. } | Action::Send { .. } | Action::Receive { .. } => {}
            }
        }
        for (number, _) in program.stages.iter().enumerate().filter(|(_, stage)| !accepts_blocked(stage.device)) {
            let [first, _, end] = assignment.stages[number];
            (first..end).for_each(|end| assignment.set(end, Layout::RowMajor));
        }
        for port in program.inputs.iter().chain(&program.outputs) {
            assignment.set(port.value, Layout::RowMajor);
        }
        for (value, _) in program.values.iter().enumerate().filter(|(_, value)| value.constant.is_some()) {
            assignment.set(value, Layout::RowMajor);
        }
        // A stage assigns each of its ends independently: if two of them are one value, their layouts could differ.
        for stage in 0..assignment.stages.len() {
            let [first, _, end] = assignment.stages[stage];
            let mut roots: Vec<_> = (first..end).map(|end| assignment.root(end)).collect();
            roots.sort_unstable();
            let twice: Vec<_> = roots.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
            assignment.set_all(&twice, Layout::RowMajor);
        }
        assignment
    }

    /// Returns the layout of a value of the program.
    pub(crate) fn layout(&self, value: usize) -> Layout {
        self.layouts[self.root(value)]
    }

    /// Returns the layouts assigned so far to the inputs and outputs of a stage.
    pub(crate) fn stage_layouts(&self, stage: usize) -> StageLayouts {
        let [inputs, outputs, end] = self.stages[stage];
        let layouts = |range: std::ops::Range<usize>| range.map(|end| self.layout(end)).collect();
        StageLayouts { inputs: layouts(inputs..outputs), outputs: layouts(outputs..end) }
    }

    /// Assigns the layouts that a stage was compiled with. Fails if one of them contradicts an earlier assignment.
    pub(crate) fn assign_stage(&mut self, stage: usize, ends: &StageLayouts) -> Result<(), ()> {
        let [first, ..] = self.stages[stage];
        let layouts = ends.inputs.iter().chain(&ends.outputs);
        for (end, &layout) in (first..).zip(layouts) {
            let assigned = self.layout(end);
            if assigned != Layout::Unassigned && assigned != layout {
                return Err(());
            }
            self.set(end, layout);
        }
        Ok(())
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

    fn set(&mut self, end: usize, layout: Layout) {
        let root = self.root(end);
        self.layouts[root] = layout;
    }

    fn set_all(&mut self, ends: &[usize], layout: Layout) {
        ends.iter().for_each(|&end| self.set(end, layout));
    }
}

/// Returns, for each output of each stage, true if it is read only by transfers to devices with their own memory. `memory` returns the
/// memory space of a device.
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
    // A stage that is launched several times binds several values to each output.
    let mut stages: Vec<_> = program.stages.iter().map(|stage| vec![true; stage.graph.outputs.len()]).collect();
    for Step { action, .. } in &program.steps {
        if let Action::Launch { stage, outputs, .. } = action {
            stages[*stage].iter_mut().zip(outputs).for_each(|(all, &value)| *all &= is_streamed[value]);
        }
    }
    stages
}

/// Sets layout and size of a row-major tensor description of the bundle.
pub(crate) fn describe(layout: Layout, tensor: &mut Tensor) {
    if let Layout::Blocked(blocked) = layout {
        tensor.layout = blocked.to_bundle();
        tensor.bytes = blocked.elements() as u64 * 4;
    }
}
