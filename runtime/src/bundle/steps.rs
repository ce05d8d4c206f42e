//! Steps: operands, results, dependences and lanes; validation of their order.

use super::validate::{Validation, check_index};
use super::{Action, Bundle, Step, Tensor, Value};

impl Action {
    /// Returns its operands, with repetitions.
    pub fn reads(&self) -> &[usize] {
        match self {
            Self::Launch { inputs, .. } | Self::Gather { inputs, .. } => inputs,
            Self::Transfer { input, .. } | Self::Slice { input, .. } | Self::Send { input, .. } => {
                std::slice::from_ref(input)
            }
            Self::Receive { .. } => &[],
        }
    }

    /// Returns the stage of a launch.
    pub(crate) fn stage(&self) -> Option<usize> {
        if let Self::Launch { stage, .. } = self { Some(*stage) } else { None }
    }

    /// Returns true if it moves parts of values on one device.
    pub(crate) fn is_part(&self) -> bool {
        matches!(self, Self::Slice { .. } | Self::Gather { .. })
    }

    /// Returns true if it sends or receives a value of another host.
    pub(crate) fn is_message(&self) -> bool {
        matches!(self, Self::Send { .. } | Self::Receive { .. })
    }

    /// Returns its results.
    pub fn writes(&self) -> &[usize] {
        match self {
            Self::Launch { outputs, .. } => outputs,
            Self::Transfer { output, .. }
            | Self::Slice { output, .. }
            | Self::Gather { output, .. }
            | Self::Receive { output, .. } => std::slice::from_ref(output),
            Self::Send { .. } => &[],
        }
    }
}

/// Lanes: resources that run steps in parallel to each other. Lane `i` is device `i`, or link `i` minus the number of devices.
pub struct Lanes {
    /// Ordered pairs of devices with transfers between them.
    pub links: Vec<(usize, usize)>,
    /// By step: its lane.
    pub of_step: Vec<usize>,
}

impl Bundle {
    /// Returns true if a device computes; otherwise it only moves values.
    pub(crate) fn has_stages(&self, device: usize) -> bool {
        self.stages.iter().any(|stage| stage.device == device)
    }

    /// Assigns steps to lanes.
    pub fn lanes(&self) -> Lanes {
        let mut lanes = Lanes { links: vec![], of_step: vec![] };
        for step in &self.steps {
            let device = |value: &usize| self.values[*value].device;
            let lane = match &step.action {
                Action::Launch { stage, .. } => self.stages[*stage].device,
                Action::Slice { output, .. } | Action::Gather { output, .. } | Action::Receive { output, .. } => {
                    device(output)
                }
                Action::Send { input, .. } => device(input),
                Action::Transfer { input, output } => {
                    let link = (device(input), device(output));
                    let known = lanes.links.iter().position(|known| *known == link).unwrap_or(lanes.links.len());
                    if known == lanes.links.len() {
                        lanes.links.push(link);
                    }
                    self.devices.len() + known
                }
            };
            lanes.of_step.push(lane);
        }
        lanes
    }

    /// Returns for each step the steps that write its operands, ascending and without duplicates.
    pub(crate) fn dependencies(&self) -> Vec<Vec<usize>> {
        let mut writers = vec![None; self.values.len()];
        let mut all = Vec::with_capacity(self.steps.len());
        for (index, step) in self.steps.iter().enumerate() {
            let mut dependencies: Vec<usize> = step.action.reads().iter().filter_map(|&value| writers[value]).collect();
            dependencies.sort_unstable();
            dependencies.dedup();
            step.action.writes().iter().for_each(|&value| writers[value] = Some(index));
            all.push(dependencies);
        }
        all
    }

    /// Returns the name of a lane for users: `gpu0`, or `cpu0>gpu0` for a link.
    pub fn lane_name(&self, lanes: &Lanes, lane: usize) -> String {
        match lane.checked_sub(self.devices.len()).map(|link| lanes.links[link]) {
            Some((from, to)) => format!("{}>{}", self.devices[from].id, self.devices[to].id),
            None => self.devices[lane].id.clone(),
        }
    }

    /// Returns the name of a step for users.
    pub fn step_name(&self, step: &Step) -> String {
        let name = |&value: &usize| &self.values[value].name;
        match &step.action {
            Action::Launch { stage, .. } => self.stages[*stage].name.clone(),
            Action::Transfer { input, .. } => format!("transfer of {}", name(input)),
            Action::Slice { input, .. } => format!("slice of {}", name(input)),
            Action::Gather { output, .. } => format!("gather of {}", name(output)),
            Action::Send { input, .. } => format!("send of {}", name(input)),
            Action::Receive { output, .. } => format!("receive of {}", name(output)),
        }
    }

    pub(super) fn validate_steps(&self) -> Validation {
        let mut is_written: Vec<bool> = self.values.iter().map(|value| value.constant.is_some()).collect();
        for input in &self.inputs {
            if std::mem::replace(&mut is_written[input.value], true) {
                return Err(format!("the value of input '{}' is a constant or another input", input.name));
            }
        }
        for (index, step) in self.steps.iter().enumerate() {
            let wrong = |reason: String| format!("step {index}: {reason}");
            let action = &step.action;
            for &value in action.reads().iter().chain(action.writes()) {
                check_index(value, self.values.len(), "values").map_err(wrong)?;
            }
            if let Some(&value) = action.reads().iter().find(|&&value| !is_written[value]) {
                return Err(wrong(format!("value '{}' is read before it is written", self.values[value].name)));
            }
            for &value in action.writes() {
                if std::mem::replace(&mut is_written[value], true) {
                    return Err(wrong(format!("value '{}' is written twice", self.values[value].name)));
                }
            }
            self.validate_action(action).map_err(wrong)?;
        }
        match self.outputs.iter().find(|output| !is_written[output.value]) {
            Some(output) => Err(format!("output '{}' is never written", output.name)),
            None => Ok(()),
        }
    }

    /// Checks that the operands and results of an action are consistent. Their indices have been validated.
    fn validate_action(&self, action: &Action) -> Validation {
        let bytes = |value: usize| self.values[value].tensor.bytes;
        let stays = |values: &[usize], device| match values.iter().find(|&&value| self.values[value].device != device) {
            Some(&value) => Err(format!("value '{}' is on another device", self.values[value].name)),
            None => Ok(()),
        };
        if action.is_part() {
            let is_blocked = |value: &&usize| !self.values[**value].tensor.layout.is_row_major();
            if let Some(&value) = action.reads().iter().chain(action.writes()).find(is_blocked) {
                let Value { name, tensor, .. } = &self.values[value];
                return Err(format!(
                    "value '{name}' has the layout {}: slice and gather need row-major",
                    tensor.layout
                ));
            }
        }
        match action {
            Action::Launch { stage, inputs, outputs } => {
                check_index(*stage, self.stages.len(), "stages")?;
                let stage = &self.stages[*stage];
                for (values, tensors, kind) in [(inputs, &stage.inputs, "inputs"), (outputs, &stage.outputs, "outputs")]
                {
                    let fits = |(&value, tensor): (&usize, &Tensor)| self.values[value].tensor == *tensor;
                    if values.len() != tensors.len() || !values.iter().zip(tensors).all(fits) {
                        return Err(format!("the {kind} are not those of stage '{}'", stage.name));
                    }
                    stays(values, stage.device)?;
                }
                Ok(())
            }
            Action::Transfer { input, output } => {
                let is_same = self.values[*input].tensor == self.values[*output].tensor;
                if is_same { Ok(()) } else { Err("a transfer changes a value's type".into()) }
            }
            Action::Slice { input, output, positions, of, axis, outer } => {
                stays(&[*input], self.values[*output].device)?;
                check_outer(&self.values[*output].tensor.shape, *axis, *outer)?;
                let unit = unit(bytes(*input), *of, *outer).ok_or("a value does not consist of equal parts")?;
                if let Some(position) = positions.iter().find(|position| *position >= of) {
                    return Err(format!("position {position} is outside the {of} inputs of a value"));
                }
                fits(bytes(*output), unit, positions.len() as u64, *outer)
            }
            Action::Gather { inputs, output, of, axis, outer } => {
                stays(inputs, self.values[*output].device)?;
                check_outer(&self.values[*output].tensor.shape, *axis, *outer)?;
                let total = of.iter().try_fold(0_u64, |sum, part| sum.checked_add(*part));
                let total = total.filter(|_| of.len() == inputs.len()).ok_or("'of' and 'inputs' differ in length")?;
                let unit = unit(bytes(*output), total, *outer).ok_or("a value does not consist of equal parts")?;
                inputs.iter().zip(of).try_for_each(|(&input, &of)| fits(bytes(input), unit, of, *outer))
            }
            Action::Send { .. } | Action::Receive { .. } => {
                Err("a message is part of no description: values move to other devices by transfers".into())
            }
        }
    }
}

/// Returns the size in bytes of a part of one input; `None` if the value does not consist of `of` × `outer` equal parts.
pub(crate) fn unit(bytes: u64, of: u64, outer: u64) -> Option<u64> {
    let parts = of.checked_mul(outer).filter(|&parts| parts > 0)?;
    bytes.is_multiple_of(parts).then(|| bytes / parts)
}

/// Checks that `outer` includes the extents before the axis. Earlier compilers wrote only the parts within the axis,
/// and the results of such bundles would be wrong unless the axis is the first.
fn check_outer(shape: &[u64], axis: usize, outer: u64) -> Validation {
    let before =
        shape.get(..axis).ok_or_else(|| format!("axis {axis} is outside the {} axes of a value", shape.len()))?;
    let before = before.iter().try_fold(1_u64, |product, &extent| product.checked_mul(extent));
    if before.is_some_and(|before| outer.is_multiple_of(before)) {
        Ok(())
    } else {
        Err(format!(
            "outer is {outer}, which lacks the extents before axis {axis} of {shape:?}: compile the model again"
        ))
    }
}

fn fits(bytes: u64, unit: u64, of: u64, outer: u64) -> Validation {
    let expected = unit.checked_mul(of).and_then(|bytes| bytes.checked_mul(outer));
    if expected == Some(bytes) {
        Ok(())
    } else {
        Err(format!("a value has {bytes} bytes, not {outer} * {of} * {unit}"))
    }
}
