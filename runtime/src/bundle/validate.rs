//! Checks of a description: every index inside what it is an index of, every size what it must be. A description that this and the
//! drivers of its devices accept can be run without further checks, if the files are those that were written with it.

use super::{ALIGNMENT, Buffer, Bundle, Call, Constant, Executable, Port, Source, Stage, Tensor, WEIGHTS};
use crate::{dtype::DType, prepare::Expression};
use std::collections::HashSet;
use std::path::{Component, Path};

/// More bytes than any of these can have, so that sums of them can be counted.
const MOST_BYTES: u64 = 1 << 48;

/// More inputs than any plan queues.
const MOST_INPUTS: u64 = 1 << 32;

pub(super) type Verdict = Result<(), String>;

impl Bundle {
    /// Checks all of the description but what the drivers of its devices alone know: targets of executables and payloads.
    pub(crate) fn validate_format(&self) -> Verdict {
        self.validate_files()?;
        if self.objective.inputs > MOST_INPUTS {
            return Err(format!("{} inputs are more than can be queued", self.objective.inputs));
        }
        for (index, constant) in self.constants.iter().enumerate() {
            self.validate_constant(constant).map_err(|reason| format!("constant {index}: {reason}"))?;
        }
        for value in &self.values {
            let name = &value.name;
            inside(value.device, self.devices.len(), "devices")
                .map_err(|reason| format!("value '{name}': {reason}"))?;
            validate_tensor(&value.tensor).map_err(|reason| format!("value '{name}': {reason}"))?;
            if let Some(constant) = value.constant {
                inside(constant, self.constants.len(), "constants")
                    .map_err(|reason| format!("value '{name}': {reason}"))?;
                let (has, takes) = (self.constants[constant].bytes, value.tensor.bytes);
                if has != takes {
                    return Err(format!("value '{name}' takes {takes} bytes, its constant has {has}"));
                }
            }
        }
        // Sums of sizes are computed without checks behind this.
        self.values.iter().try_fold(0, |sum, value| add_countable(sum, value.tensor.bytes))?;
        self.constants.iter().try_fold(0, |sum, constant| add_countable(sum, constant.bytes))?;
        self.validate_ports(&self.inputs, "input")?;
        self.validate_ports(&self.outputs, "output")?;
        if self.prepare_executable.is_none() && !self.prepare.is_empty() {
            return Err("prepare: no executable has its code".into());
        }
        if let Some(executable) = self.prepare_executable {
            inside(executable, self.executables.len(), "executables").map_err(|reason| format!("prepare: {reason}"))?;
        }
        self.validate_calls(&self.prepare, None).map_err(|reason| format!("prepare: {reason}"))?;
        for stage in &self.stages {
            self.validate_stage(stage).map_err(|reason| format!("stage '{}': {reason}", stage.name))?;
        }
        self.validate_steps()
    }

    fn validate_files(&self) -> Verdict {
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

    fn validate_constant(&self, constant: &Constant) -> Verdict {
        countable(constant.bytes)?;
        if self.has_extents() && constant.crc32.is_some() != constant.place().is_some() {
            return Err("a checksum is missing, or there are no bytes in a file that it is for".into());
        }
        let end = |offset: u64| offset.checked_add(constant.bytes).ok_or("it ends beyond all files");
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
            Source::Made(expression) => {
                self.validate_expression(expression)?;
                let made =
                    expression.length().ok_or("it is larger than can be counted, or made of parts that do not fit")?;
                if made != constant.bytes {
                    return Err(format!("it has {} bytes, and is made of {made}", constant.bytes));
                }
            }
            Source::Computed => {}
        }
        Ok(())
    }

    /// Checks that the files of an expression are the model's.
    fn validate_expression(&self, expression: &Expression) -> Verdict {
        if let Expression::File { path, offset, length } = expression {
            self.validate_range(path, offset.checked_add(*length).ok_or("it ends beyond all files")?)?;
        }
        expression.parts().into_iter().try_for_each(|part| self.validate_expression(part))
    }

    /// Checks that a file is one of the model's, and has bytes up to an end.
    fn validate_range(&self, path: &str, end: u64) -> Verdict {
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

    fn validate_ports(&self, ports: &[Port], kind: &str) -> Verdict {
        let mut names = HashSet::new();
        for Port { name, value } in ports {
            inside(*value, self.values.len(), "values").map_err(|reason| format!("{kind} '{name}': {reason}"))?;
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

    fn validate_stage(&self, stage: &Stage) -> Verdict {
        inside(stage.device, self.devices.len(), "devices")?;
        inside(stage.executable, self.executables.len(), "executables")?;
        stage.constants.iter().try_for_each(|&constant| inside(constant, self.constants.len(), "constants"))?;
        countable(stage.arena)?;
        stage.inputs.iter().chain(&stage.outputs).try_for_each(validate_tensor)?;
        self.validate_calls(&stage.calls, Some(stage))
    }

    fn validate_calls(&self, calls: &[Call], stage: Option<&Stage>) -> Verdict {
        for (index, call) in calls.iter().enumerate() {
            let wrong = |reason| format!("kernel '{}': {reason}", call.kernel);
            self.validate_call(call, stage).map_err(wrong)?;
            if let Some(other) = call.after.iter().find(|&&other| other >= index) {
                return Err(wrong(format!("it comes after call {other}, which is not before it")));
            }
        }
        Ok(())
    }

    fn validate_call(&self, call: &Call, stage: Option<&Stage>) -> Verdict {
        if call.extent < 0 || call.grain < 1 {
            return Err(format!("{} iterations with a grain of {}", call.extent, call.grain));
        }
        if call.kernel.is_empty() || call.kernel.contains('\0') {
            return Err("no symbol has this name".into());
        }
        let tasks = stage.map_or(0, |stage| stage.tasks.len());
        inside(call.task, tasks.max(1), "tasks")?;
        for buffer in &call.buffers {
            match (buffer, stage) {
                (Buffer::Constant(index), _) => {
                    inside(*index, self.constants.len(), "constants")?;
                }
                (Buffer::Input(index), Some(stage)) => inside(*index, stage.inputs.len(), "inputs")?,
                (Buffer::Output(index), Some(stage)) => inside(*index, stage.outputs.len(), "outputs")?,
                (Buffer::Arena(offset), Some(stage)) if *offset <= stage.arena => {}
                (Buffer::Arena(offset), Some(stage)) => {
                    return Err(format!("a buffer at {offset} is outside the arena of {} bytes", stage.arena));
                }
                (_, None) => return Err("it has buffers that are not constants".into()),
            }
        }
        if self.has_extents() { self.validate_extents(call, stage) } else { Ok(()) }
    }

    /// Checks that all bytes that a call touches are in its buffers, whose indices exist, and that what it writes is its own.
    fn validate_extents(&self, call: &Call, stage: Option<&Stage>) -> Verdict {
        let Call { buffers, bytes, writes, .. } = call;
        if bytes.len() != buffers.len() || !writes.is_sorted_by(|a, b| a < b) {
            return Err("it does not say of each buffer what it touches".into());
        }
        writes.iter().try_for_each(|&index| inside(index, buffers.len(), "buffers"))?;
        for (number, (buffer, &bytes)) in buffers.iter().zip(bytes).enumerate() {
            let there = self.buffer_bytes(buffer, stage);
            if bytes > there {
                return Err(format!("it touches {bytes} bytes of buffer {number}, which has {there}"));
            }
        }
        for &written in writes {
            let is_own = match &buffers[written] {
                Buffer::Output(_) | Buffer::Arena(_) => true,
                Buffer::Input(_) => false,
                Buffer::Constant(index) => stage.is_none() && matches!(self.constants[*index].source, Source::Computed),
            };
            if !is_own {
                return Err(format!("it writes buffer {written}, which is only read"));
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

    /// Size in bytes of a buffer whose index exists.
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

/// True if two buffers of a call have bytes in common.
fn overlap((a, a_bytes): (&Buffer, u64), (b, b_bytes): (&Buffer, u64)) -> bool {
    match (a, b) {
        _ if a_bytes == 0 || b_bytes == 0 => false,
        (Buffer::Arena(a), Buffer::Arena(b)) => *a < b.saturating_add(b_bytes) && *b < a.saturating_add(a_bytes),
        _ => a == b,
    }
}

pub(super) fn inside(index: usize, length: usize, what: &str) -> Verdict {
    if index < length { Ok(()) } else { Err(format!("index {index} is outside the {length} {what}")) }
}

fn add_countable(sum: u64, bytes: u64) -> Result<u64, String> {
    let sum = sum.saturating_add(bytes);
    countable(sum).map(|()| sum)
}

fn countable(bytes: u64) -> Verdict {
    if bytes < MOST_BYTES { Ok(()) } else { Err(format!("{bytes} bytes are more than any machine has")) }
}

fn validate_tensor(tensor: &Tensor) -> Verdict {
    let dtype = DType::from_name(&tensor.dtype).ok_or_else(|| format!("'{}' is no element type", tensor.dtype))?;
    match tensor.layout_bytes(dtype) {
        Some(bytes) if bytes == tensor.bytes => countable(bytes),
        _ => Err(format!("{tensor} does not take {} bytes", tensor.bytes)),
    }
}

impl Expression {
    /// How many bytes it makes; `None` if that cannot be counted, or parts of it do not fit each other.
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
            Self::Concat(parts) => parts.iter().try_fold(0_u64, |sum, part| sum.checked_add(part.length()?)),
            Self::Pack(pack) => pack.length(),
            Self::Scale { source, by, inner } => {
                let is_sound = by.length()? >= 4 && *inner > 0;
                source.length().filter(|_| is_sound)
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
