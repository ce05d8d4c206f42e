//! Interface of compiler back ends, one for each kind of device.
//!
//! A back end decides which nodes a device can run ([`TargetBackend::supports`]), which both planning and code generation ask, and
//! compiles stages into executables that the driver of the same kind loads.

use crate::{
    error::Error,
    graph::{Graph, Node, Value},
    host::HostModule,
    layout::StageLayouts,
    slow::SlowNode,
};
use divi_cost::device::Kind;
use divi_onnx::Op;
use divi_runtime::bundle::{Call, Device};
use std::fmt;

/// Compiler back end of one kind of device.
pub trait TargetBackend: Send + Sync {
    /// Kind of the devices: name, memory space, default rates and form of the estimate.
    fn kind(&self) -> Kind;

    /// Checks that code can be generated for a device.
    fn supports_device(&self, device: &Device) -> Result<(), Reason> {
        let _ = device;
        Ok(())
    }

    /// Returns true if there is code for an operator in some types.
    fn has_operator(&self, op: Op) -> bool;

    /// Checks that code can be generated for a node. Its operands and results are indices of `values`.
    fn supports(&self, node: &Node, values: &[Value]) -> Result<(), Reason>;

    /// Layouts of values at the boundaries of stages.
    fn boundary_layouts(&self) -> BoundaryLayouts {
        BoundaryLayouts::RowMajor
    }

    /// Begins the code of the stages that a program runs on devices of this kind, which are given.
    fn compiler(&self, devices: &[&Device]) -> Box<dyn StageCompiler>;
}

/// Layouts that a back end can have at the boundaries of stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BoundaryLayouts {
    /// Prefers blocked images where its kernels compute with them, and assigns their layouts: back ends of this crate.
    Assigned,
    /// Reads and writes any layout that another back end has assigned: back ends of this crate.
    Any,
    /// Reads and writes row-major tensors alone.
    RowMajor,
}

/// Compiles the stages of one program for devices of one kind.
pub trait StageCompiler {
    /// Compiles a stage.
    fn compile(&mut self, stage: StageInput<'_>, host: &mut HostModule) -> Result<CompiledStage, Error>;

    /// Returns the code of all stages. `stages` are those that were compiled, in any order.
    fn finish(self: Box<Self>, stages: &[&CompiledStage]) -> Result<Vec<Executable>, Error>;
}

/// A stage to compile.
pub struct StageInput<'a> {
    pub name: &'a str,
    pub device: &'a Device,
    pub graph: Graph,
    pub(crate) layouts: &'a StageLayouts,
    /// Outputs that only copies to memory of other devices read.
    pub(crate) is_streamed: &'a [bool],
}

/// A compiled stage.
pub struct CompiledStage {
    /// Bytes of memory that its calls share.
    pub arena: u64,
    pub calls: Vec<Call>,
    /// Payload for the driver of the device.
    pub payload: serde_json::Value,
    /// Constants of the bundle that the driver reads, besides those of calls ([`HostModule::constant`]).
    pub constants: Vec<usize>,
    pub code: Code,
    pub(crate) layouts: StageLayouts,
    pub(crate) slow: Vec<SlowNode>,
}

/// Executable that has the code of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The host's.
    Host,
    /// One of those that [`StageCompiler::finish`] returns, by index.
    Own(usize),
}

impl CompiledStage {
    /// A stage without calls, whose driver finds everything in the executable and the payload. Inputs and outputs are row-major.
    /// `constants` are indices that [`HostModule::constant`] returned.
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
    pub format: String,
    /// Name of the file in the bundle.
    pub file: String,
    /// Properties of the devices that the code is for, as the driver defines them.
    pub target: serde_json::Value,
    pub bytes: Vec<u8>,
}

/// Reason why a device cannot run a node, and a remedy where there is one.
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
