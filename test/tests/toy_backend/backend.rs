//! Compiler back end of toys: compiles a stage to a list of instructions in JSON.

use divi_codegen::{
    Error, Reason, TargetBackend,
    backend::{CompiledStage, Executable, StageCompiler, StageInput},
    graph::{Node, Value},
    host::HostModule,
};
use divi_cost::device::{self, Kind};
use divi_onnx::{DType, Op};
use divi_runtime::bundle::Device;
use serde::{Deserialize, Serialize};

/// Executable format of toys.
pub(crate) const FORMAT: &str = "toy-instructions";

/// Instructions of a stage. Values are numbered: inputs, constants, results.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Program {
    /// Number of elements of each value.
    pub(crate) counts: Vec<usize>,
    /// Values that are constants, with their indices in the bundle.
    pub(crate) constants: Vec<(usize, usize)>,
    pub(crate) inputs: Vec<usize>,
    pub(crate) outputs: Vec<usize>,
    pub(crate) instructions: Vec<Instruction>,
}

/// Computes each element of `to` from those of `from`, which are repeated cyclically.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Instruction {
    pub(crate) op: String,
    pub(crate) from: Vec<usize>,
    pub(crate) to: usize,
}

pub(crate) struct ToyBackend;

impl TargetBackend for ToyBackend {
    fn kind(&self) -> Kind {
        device::find("toy").expect("the kind is registered first")
    }

    fn supports_device(&self, device: &Device) -> Result<(), Reason> {
        match device.arch.as_deref() {
            Some("toy1") => Ok(()),
            other => Err(Reason(format!("instructions exist for toy1 only, not for {}", other.unwrap_or("any toy")))),
        }
    }

    fn has_operator(&self, op: Op) -> bool {
        [Op::Add, Op::Mul, Op::Relu].contains(&op)
    }

    fn supports(&self, node: &Node, values: &[Value]) -> Result<(), Reason> {
        if !self.has_operator(node.op) {
            return Err(Reason(format!("no instruction for {}", node.op)));
        }
        let ids = node.inputs.iter().chain(&node.outputs).flatten();
        if ids.clone().any(|id| values[id.0].dtype != DType::F32) {
            return Err(Reason("instructions exist for float only".into()));
        }
        // Operands are repeated cyclically, so their shapes must be suffixes of the result's.
        let result = node.outputs.iter().flatten().next().map_or(&[][..], |id| &values[id.0].shape);
        match ids.clone().all(|id| result.ends_with(&values[id.0].shape)) {
            true => Ok(()),
            false => Err(Reason("operands can only be broadcast along leading axes".into())),
        }
    }

    fn compiler(&self, _: &[&Device]) -> Box<dyn StageCompiler> {
        Box::<ToyCompiler>::default()
    }
}

#[derive(Default)]
struct ToyCompiler {
    programs: Vec<Program>,
}

impl StageCompiler for ToyCompiler {
    fn compile(&mut self, stage: StageInput<'_>, host: &mut HostModule) -> Result<CompiledStage, Error> {
        let ids = |ids: &[divi_codegen::graph::Id]| ids.iter().map(|id| id.0).collect();
        let graph = &stage.graph;
        let mut program = Program {
            counts: graph.values.iter().map(|value| value.count() as usize).collect(),
            inputs: ids(&graph.inputs),
            outputs: ids(&graph.outputs),
            ..Program::default()
        };
        for (number, value) in graph.values.iter().enumerate() {
            if let Some(constant) = &value.constant {
                program.constants.push((number, host.constant(constant, value.bytes())));
            }
        }
        for node in &graph.nodes {
            self.check(node, &graph.values)?;
            let from = node.inputs.iter().flatten().map(|id| id.0).collect();
            let to = node.outputs[0].expect("these operators have a result").0;
            program.instructions.push(Instruction { op: node.op.name().to_owned(), from, to });
        }
        let constants = program.constants.iter().map(|&(_, constant)| constant).collect();
        self.programs.push(program);
        Ok(CompiledStage::opaque(&stage, 0, (self.programs.len() - 1).into(), constants))
    }

    fn finish(self: Box<Self>, _: &[&CompiledStage]) -> Result<Vec<Executable>, Error> {
        let bytes = serde_json::to_vec(&self.programs).expect("keys are strings");
        let (format, file) = (FORMAT.to_owned(), "toy.json".to_owned());
        Ok(vec![Executable { format, file, target: serde_json::Value::Null, bytes }])
    }
}

impl ToyCompiler {
    fn check(&self, node: &Node, values: &[Value]) -> Result<(), Error> {
        let message =
            |reason: Reason| Error::Node { op: node.op, name: node.name.clone(), message: reason.to_string() };
        ToyBackend.supports(node, values).map_err(message)
    }
}
