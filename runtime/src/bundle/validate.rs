//! Validation of a description: indices are in range and sizes are consistent. A description that this module and the drivers
//! of its devices accept can be run without further checks, provided that its files are unchanged.

use super::{ALIGNMENT, Buffer, Bundle, Call, Constant, Executable, Port, Source, Stage, TaskResult, Tensor, WEIGHTS};
use crate::{dtype::DType, prepare::Expression};
use std::collections::HashSet;
use std::path::{Component, Path};

/// Limit of all sizes in bytes, so that their sums do not overflow.
const MOST_BYTES: u64 = 1 << 48;

/// Limit of the number of queued inputs.
const MOST_INPUTS: u64 = 1 << 32;

pub(super) type Validation = Result<(), String>;

impl Bundle {
    /// Checks the description except for the driver-specific parts: targets of executables and payloads.
    pub(crate) fn validate_format(&self) -> Validation {
        self.validate_files()?;
        if self.objective.inputs > MOST_INPUTS {
            return Err(format!("{} queued inputs exceed the limit of {MOST_INPUTS}", self.objective.inputs));
        }
        self.validate_hosts()?;
        self.validate_losses()?;
        for (index, constant) in self.constants.iter().enumerate() {
            self.validate_constant(constant).map_err(|reason| format!("constant {index}: {reason}"))?;
        }
        for value in &self.values {
            let name = &value.name;
            check_index(value.device, self.devices.len(), "devices")
                .map_err(|reason| format!("value '{name}': {reason}"))?;
            validate_tensor(&value.tensor).map_err(|reason| format!("value '{name}': {reason}"))?;
            if let Some(constant) = value.constant {
                check_index(constant, self.constants.len(), "constants")
                    .map_err(|reason| format!("value '{name}': {reason}"))?;
                let (found, expected) = (self.constants[constant].bytes, value.tensor.bytes);
                if found != expected {
                    return Err(format!("value '{name}' has {expected} bytes, and its constant {found}"));
                }
            }
        }
        // Later code sums up sizes without overflow checks.
        self.values.iter().try_fold(0, |sum, value| add_sizes(sum, value.tensor.bytes))?;
        self.constants.iter().try_fold(0, |sum, constant| add_sizes(sum, constant.bytes))?;
        self.validate_ports(&self.inputs, "input")?;
        self.validate_ports(&self.outputs, "output")?;
        self.validate_task_results().map_err(|reason| format!("results of tasks: {reason}"))?;
        if self.prepare_executable.is_none() && !self.prepare.is_empty() {
            return Err("prepare: 'prepare_executable' is missing".into());
        }
        if let Some(executable) = self.prepare_executable {
            check_index(executable, self.executables.len(), "executables")
                .map_err(|reason| format!("prepare: {reason}"))?;
        }
        self.validate_calls(&self.prepare, None).map_err(|reason| format!("prepare: {reason}"))?;
        for stage in &self.stages {
            self.validate_stage(stage).map_err(|reason| format!("stage '{}': {reason}", stage.name))?;
        }
        self.validate_steps()
    }

    fn validate_files(&self) -> Validation {
        for Executable { file, .. } in &self.executables {
            let components: Vec<_> = Path::new(file).components().collect();
            if !matches!(components[..], [Component::Normal(_)]) || !self.has_file(file) {
                return Err(format!("the code '{file}' is not one of the files of the bundle"));
            }
        }
        let is_packed = |constant: &Constant| matches!(constant.source, Source::Packed { .. });
        if self.constants.iter().any(is_packed) && !self.has_file(WEIGHTS) {
            return Err(format!("{WEIGHTS} is not one of the files of the bundle"));
        }
        Ok(())
    }

    fn has_file(&self, path: &str) -> bool {
        self.files.iter().any(|file| file.path == path)
    }

    fn validate_constant(&self, constant: &Constant) -> Validation {
        check_size(constant.bytes)?;
        if self.has_extents() && constant.crc32.is_some() != constant.file_range().is_some() {
            return Err("it must have a checksum if and only if it is in a file".into());
        }
        let end = |offset: u64| offset.checked_add(constant.bytes).ok_or("its end overflows");
        match &constant.source {
            Source::Packed { offset } => {
                let size = self.files.iter().find(|file| file.path == WEIGHTS).map_or(0, |file| file.bytes);
                if !offset.is_multiple_of(ALIGNMENT) {
                    return Err(format!("its offset {offset} is not a multiple of {ALIGNMENT}"));
                }
                if end(*offset)? > size {
                    return Err(format!("{WEIGHTS} has {size} bytes, too few for {} at {offset}", constant.bytes));
                }
            }
            Source::File { offset, path } => self.validate_range(path, end(*offset)?)?,
            Source::Evaluated(expression) => {
                self.validate_expression(expression)?;
                let made =
                    expression.length().ok_or("the size of its expression overflows, or its operands do not match")?;
                if made != constant.bytes {
                    return Err(format!("it has {} bytes, and its expression {made}", constant.bytes));
                }
            }
            Source::Computed => {}
        }
        Ok(())
    }

    /// Checks that the files that an expression reads are listed as the model's.
    fn validate_expression(&self, expression: &Expression) -> Validation {
        if let Expression::File { path, offset, length } = expression {
            self.validate_range(path, offset.checked_add(*length).ok_or("its end overflows")?)?;
        }
        expression.parts().into_iter().try_for_each(|part| self.validate_expression(part))
    }

    /// Checks that a file is listed as one of the model's and has at least `end` bytes.
    fn validate_range(&self, path: &str, end: u64) -> Validation {
        if !self.has_extents() {
            return Ok(());
        }
        let Some(file) = self.model_files.iter().find(|file| file.path == path) else {
            return Err(format!("'{path}' is not one of the model's files"));
        };
        match end <= file.bytes {
            true => Ok(()),
            false => Err(format!("'{path}' has {} bytes, and it ends at {end}", file.bytes)),
        }
    }

    fn validate_ports(&self, ports: &[Port], kind: &str) -> Validation {
        let mut names = HashSet::new();
        for Port { name, value } in ports {
            check_index(*value, self.values.len(), "values").map_err(|reason| format!("{kind} '{name}': {reason}"))?;
            let layout = &self.values[*value].tensor.layout;
            if !layout.is_row_major() {
                return Err(format!("{kind} '{name}' has the layout {layout}: inputs and outputs are row-major"));
            }
            if !names.insert(name) {
                return Err(format!("there are two {kind}s '{name}'"));
            }
        }
        Ok(())
    }

    fn validate_task_results(&self) -> Validation {
        let count = self.outputs.len();
        let mut seen = HashSet::new();
        for TaskResult { output, computed_from } in &self.task_results {
            check_index(*output, count, "outputs")?;
            computed_from.iter().try_for_each(|&index| check_index(index, count, "outputs"))?;
            if !seen.insert(output) {
                return Err(format!("output {output} is the result of two tasks"));
            }
        }
        Ok(())
    }

    fn validate_stage(&self, stage: &Stage) -> Validation {
        check_index(stage.device, self.devices.len(), "devices")?;
        check_index(stage.executable, self.executables.len(), "executables")?;
        stage.constants.iter().try_for_each(|&constant| check_index(constant, self.constants.len(), "constants"))?;
        check_size(stage.arena)?;
        stage.inputs.iter().chain(&stage.outputs).try_for_each(validate_tensor)?;
        self.validate_calls(&stage.calls, Some(stage))
    }

    fn validate_calls(&self, calls: &[Call], stage: Option<&Stage>) -> Validation {
        for (index, call) in calls.iter().enumerate() {
            let wrong = |reason| format!("kernel '{}': {reason}", call.kernel);
            self.validate_call(call, stage).map_err(wrong)?;
            if let Some(other) = call.after.iter().find(|&&other| other >= index) {
                return Err(wrong(format!("it depends on call {other}, which is not an earlier one")));
            }
        }
        Ok(())
    }

    fn validate_call(&self, call: &Call, stage: Option<&Stage>) -> Validation {
        if call.extent < 0 || call.grain < 1 {
            return Err(format!("invalid extent {} or grain {}", call.extent, call.grain));
        }
        if call.kernel.is_empty() || call.kernel.contains('\0') {
            return Err("its name is not a valid symbol".into());
        }
        let tasks = stage.map_or(0, |stage| stage.tasks.len());
        check_index(call.task, tasks.max(1), "tasks")?;
        for buffer in &call.buffers {
            match (buffer, stage) {
                (Buffer::Constant(index), _) => {
                    check_index(*index, self.constants.len(), "constants")?;
                }
                (Buffer::Input(index), Some(stage)) => check_index(*index, stage.inputs.len(), "inputs")?,
                (Buffer::Output(index), Some(stage)) => check_index(*index, stage.outputs.len(), "outputs")?,
                (Buffer::Arena(offset), Some(stage)) if *offset <= stage.arena => {}
                (Buffer::Arena(offset), Some(stage)) => {
                    return Err(format!("a buffer at {offset} is outside the arena of {} bytes", stage.arena));
                }
                (_, None) => return Err("it has buffers that are not constants".into()),
            }
        }
        if self.has_extents() { self.validate_extents(call, stage) } else { Ok(()) }
    }

    /// Checks that a call accesses its buffers within bounds, and that the buffers that it writes are writable and do not
    /// overlap others. The indices of the buffers have been validated.
    fn validate_extents(&self, call: &Call, stage: Option<&Stage>) -> Validation {
        let Call { buffers, bytes, writes, .. } = call;
        if bytes.len() != buffers.len() || !writes.is_sorted_by(|a, b| a < b) {
            return Err("'bytes' must have an entry for each buffer, and 'writes' must be ascending".into());
        }
        writes.iter().try_for_each(|&index| check_index(index, buffers.len(), "buffers"))?;
        for (number, (buffer, &bytes)) in buffers.iter().zip(bytes).enumerate() {
            let size = self.buffer_bytes(buffer, stage);
            if bytes > size {
                return Err(format!("it accesses {bytes} bytes of buffer {number}, which has {size}"));
            }
        }
        for &written in writes {
            let is_writable = match &buffers[written] {
                Buffer::Output(_) | Buffer::Arena(_) => true,
                Buffer::Input(_) => false,
                Buffer::Constant(index) => stage.is_none() && matches!(self.constants[*index].source, Source::Computed),
            };
            if !is_writable {
                return Err(format!("it writes buffer {written}, which is read-only"));
            }
            let overlaps = |&other: &usize| {
                other != written && overlap((&buffers[written], bytes[written]), (&buffers[other], bytes[other]))
            };
            if let Some(other) = (0..buffers.len()).find(overlaps) {
                return Err(format!("it writes buffer {written}, which overlaps buffer {other}"));
            }
        }
        Ok(())
    }

    /// Returns the size in bytes of a buffer whose index has been validated.
    pub(crate) fn buffer_bytes(&self, buffer: &Buffer, stage: Option<&Stage>) -> u64 {
        match (buffer, stage) {
            (Buffer::Constant(index), _) => self.constants[*index].bytes,
            (Buffer::Input(index), Some(stage)) => stage.inputs[*index].bytes,
            (Buffer::Output(index), Some(stage)) => stage.outputs[*index].bytes,
            (Buffer::Arena(offset), Some(stage)) => stage.arena.saturating_sub(*offset),
            (_, None) => 0,
        }
    }
}

/// Returns true if two buffers of a call overlap.
fn overlap((a, a_bytes): (&Buffer, u64), (b, b_bytes): (&Buffer, u64)) -> bool {
    match (a, b) {
        _ if a_bytes == 0 || b_bytes == 0 => false,
        (Buffer::Arena(a), Buffer::Arena(b)) => *a < b.saturating_add(b_bytes) && *b < a.saturating_add(a_bytes),
        _ => a == b,
    }
}

/// Checks that an index is in range.
pub(super) fn check_index(index: usize, length: usize, what: &str) -> Validation {
    if index < length { Ok(()) } else { Err(format!("index {index} is outside the {length} {what}")) }
}

fn add_sizes(sum: u64, bytes: u64) -> Result<u64, String> {
    let sum = sum.saturating_add(bytes);
    check_size(sum).map(|()| sum)
}

fn check_size(bytes: u64) -> Validation {
    if bytes < MOST_BYTES { Ok(()) } else { Err(format!("a size of {bytes} bytes is out of range")) }
}

fn validate_tensor(tensor: &Tensor) -> Validation {
    let dtype = DType::from_name(&tensor.dtype).ok_or_else(|| format!("unknown element type '{}'", tensor.dtype))?;
    match tensor.layout_bytes(dtype) {
        Some(bytes) if bytes == tensor.bytes => check_size(bytes),
        _ => Err(format!("{tensor} does not take {} bytes", tensor.bytes)),
    }
}

impl Expression {
    /// Returns the size of the result in bytes; `None` if it overflows or the sizes of the operands do not match.
    pub fn length(&self) -> Option<u64> {
        match self {
            Self::File { offset, length, .. } => offset.checked_add(*length).map(|_| *length),
            Self::Bytes(digits) => digits.len().is_multiple_of(2).then_some(digits.len() as u64 / 2),
            Self::Random { element, count, .. } => {
                let bits = u64::from(element.bits());
                let is_known = matches!(bits, 1 | 2 | 4 | 8 | 16 | 32 | 64);
                is_known.then(|| count.checked_mul(bits))?.map(|bits| bits.div_ceil(8))
            }
            Self::Zeros(count) => count.checked_mul(4),
            Self::Widen { source, .. } => source.length().filter(|length| length.is_multiple_of(2))?.checked_mul(2),
            Self::Narrow { source, .. } => source.length().filter(|length| length.is_multiple_of(4)).map(|it| it / 2),
            Self::Concat(parts) => parts.iter().try_fold(0_u64, |sum, part| sum.checked_add(part.length()?)),
            Self::Pack(pack) => pack.length(),
            Self::Scale { source, by, inner } => {
                let is_valid = by.length()? >= 4 && *inner > 0;
                source.length().filter(|_| is_valid)
            }
            Self::Winograd { source } => {
                source.length().filter(|length| length.is_multiple_of(36))?.checked_div(9)?.checked_mul(16)
            }
            Self::NormalizedScale { scale, variance, .. } => {
                let length = scale.length().filter(|length| length.is_multiple_of(4))?;
                (variance.length()? == length).then_some(length)
            }
            Self::NormalizedShift { shift, mean, factor, bias } => {
                let length = shift.length().filter(|length| length.is_multiple_of(4))?;
                if let Some(bias) = bias {
                    bias.length()?;
                }
                (mean.length()? == length && factor.length()? == length).then_some(length)
            }
        }
    }
}
