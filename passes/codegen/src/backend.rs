//! Interface of compiler back ends, one for each kind of device.
//!
//! A back end decides which nodes a device can run ([`TargetBackend::supports`], used by both planning and code generation) and
//! compiles stages into executables that the driver of the same kind loads.

use crate::{
    error::Error,
    graph::{Graph, Node, Value},
    host::HostModule,
    layout::StageLayouts,
    slow_operators::SlowNode,
    target::Target,
};
use divi_cost::device::Kind;
use divi_onnx::{DType, Op};
use divi_runtime::bundle::{Call, Device};
use std::fmt;

/// Compiler back end of one kind of device.
pub trait TargetBackend: Send + Sync {
    /// Returns the kind of the devices: name, memory space, default rates and form of the cost estimate.
    fn kind(&self) -> Kind;

    /// Checks that code can be generated for a device.
    fn supports_device(&self, device: &Device) -> Result<(), Reason> {
        let _ = device;
        Ok(())
    }

    /// Returns true if code can be generated for an operator with at least one combination of element types.
    fn has_operator(&self, op: Op) -> bool;

    /// Checks that code can be generated for a node. Its operands and results are indices of `values`.
    fn supports(&self, node: &Node, values: &[Value]) -> Result<(), Reason>;

    /// Returns the element type in which convolutions and matrix products are fastest, if code of the host is for `cpu`.
    fn fastest_precision(&self, cpu: &Target) -> DType {
        let _ = cpu;
        DType::F32
    }

    /// Returns the layouts that stages of this back end accept at their boundaries.
    fn boundary_layouts(&self) -> BoundaryLayouts {
        BoundaryLayouts::RowMajor
    }

    /// Creates a compiler for all stages of one bundle on devices of this kind. `devices` are the bundle's devices of this kind.
    fn compiler(&self, devices: &[&Device]) -> Box<dyn StageCompiler>;
}

/// Layouts that a back end accepts at stage boundaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BoundaryLayouts {
    /// Any layout, and assigns blocked layouts (NCHWc) where its kernels prefer them. Only for back ends of this crate.
    Assigned,
    /// Any layout that another back end has assigned. Only for back ends of this crate.
    Any,
    /// Row-major tensors only.
    RowMajor,
}

/// Compiles the stages of one bundle for devices of one kind.
pub trait StageCompiler {
    /// Compiles a stage.
    fn compile(&mut self, stage: StageInput<'_>, host: &mut HostModule) -> Result<CompiledStage, Error>;

    /// Returns the executables of all stages. `stages` are the results of [`Self::compile`], in any order.
    fn finish(self: Box<Self>, stages: &[&CompiledStage]) -> Result<Vec<Executable>, Error>;
}

/// A stage to compile.
pub struct StageInput<'a> {
    /// Name of the stage.
    pub name: &'a str,
    /// Device that runs the stage.
    pub device: &'a Device,
    /// Operators of the stage.
    pub graph: Graph,
    /// Layouts assigned so far at the stage boundary.
    pub(crate) layouts: &'a StageLayouts,
    /// For each output, true if it is read only by transfers to the memory of other devices.
    pub(crate) is_streamed: &'a [bool],
}

/// A compiled stage.
pub struct CompiledStage {
    /// Size in bytes of the arena that the calls share.
    pub arena: u64,
    /// Calls of kernels, in topological order.
    pub calls: Vec<Call>,
    /// Payload for the driver of the device.
    pub payload: serde_json::Value,
    /// Constants of the bundle that the driver reads in addition to those of calls ([`HostModule::constant`]).
    pub constants: Vec<usize>,
    /// Executable that contains the code of the stage.
    pub code: Code,
    pub(crate) layouts: StageLayouts,
    pub(crate) slow: Vec<SlowNode>,
}

/// Executable that contains the code of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The shared object of the host.
    Host,
    /// Index into the executables that [`StageCompiler::finish`] returns.
    Own(usize),
}

impl CompiledStage {
    /// Creates a stage without calls, which the driver runs from the executable and the payload alone. Inputs and outputs are row-major.
    /// `constants` are indices returned by [`HostModule::constant`].
    pub fn opaque(
        stage: &StageInput<'_>,
        executable: usize,
        payload: serde_json::Value,
        constants: Vec<usize>,
    ) -> Self {
        let layouts = StageLayouts::row_major(stage.graph.inputs.len(), stage.graph.outputs.len());
        Self { arena: 0, calls: vec![], payload, constants, code: Code::Own(executable), layouts, slow: vec![] }
    }
}

/// Code in a format that a driver loads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executable {
    /// Name of the format, as the driver defines it.
    pub format: String,
    /// Name of the file in the bundle.
    pub file: String,
    /// Properties of the devices that the code is for, as the driver defines them.
    pub target: serde_json::Value,
    /// Contents of the file.
    pub bytes: Vec<u8>,
}

/// Reason why a device cannot run a node, with a remedy if there is one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reason(pub String);

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Error> for Reason {
    fn from(error: Error) -> Self {
        match error {
            Error::Node { message, .. } => Self(message),
            error => Self(error.to_string()),
        }
    }
}
