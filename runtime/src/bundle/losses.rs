//! Plans of a bundle for the loss of a node: each is the description of a program for the other nodes, in a file of its own. It
//! shares code and weights with the plan for all nodes.

use super::{Bundle, Call, Port, Stage, Task, validate::Validation};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Loss of a node that was planned for. It has either a plan or the reason why there is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loss {
    /// Index of the node.
    pub node: usize,
    /// File of the bundle with the description of the program for the other nodes. They are numbered without gaps, in the same
    /// order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Reason why there is no plan for the other nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Bundle {
    /// Returns the file with the program that runs without a node; otherwise the reason why there is none.
    pub fn file_without(&self, node: usize) -> Result<&str, String> {
        match self.losses.iter().find(|loss| loss.node == node) {
            Some(Loss { file: Some(file), .. }) => Ok(file),
            Some(Loss { reason, .. }) => Err(format!(
                "the bundle has no plan without node {node}: {}",
                reason.as_deref().unwrap_or("it names no reason")
            )),
            None if node == 0 => Err("node 0 has the inputs and outputs, and cannot be replaced".to_owned()),
            None => Err(format!(
                "the bundle has no plan without node {node}: compile the model with --survive=1 to continue after a loss"
            )),
        }
    }

    /// Checks the list of losses.
    pub(super) fn validate_losses(&self) -> Validation {
        for (index, Loss { node, file, reason }) in self.losses.iter().enumerate() {
            if *node == 0 || *node >= self.host_count() {
                let last = self.host_count() - 1;
                return Err(format!("loss of node {node}: nodes that can be lost are 1 to {last}"));
            }
            if self.losses[..index].iter().any(|other| other.node == *node) {
                return Err(format!("loss of node {node}: it is listed twice"));
            }
            match (file, reason) {
                (Some(file), None) if self.files.iter().any(|known| known.path == *file) => {}
                (Some(file), None) => return Err(format!("loss of node {node}: '{file}' is not one of the files")),
                (None, Some(_)) => {}
                _ => return Err(format!("loss of node {node}: expected either 'file' or 'reason'")),
            }
        }
        Ok(())
    }

    /// Checks that `other` is a program for the nodes of this one without one of them.
    pub(crate) fn check_replacement(&self, other: &Self) -> Validation {
        if !other.losses.is_empty() {
            return Err("a plan for a loss has plans for further losses".to_owned());
        }
        let (found, expected) = (other.host_count(), self.host_count() - 1);
        if found != expected {
            return Err(format!("it is for {found} nodes, and {expected} are left"));
        }
        let types = |bundle: &Self, ports: &[Port]| -> Vec<_> {
            ports.iter().map(|port| (port.name.clone(), bundle.values[port.value].tensor.clone())).collect()
        };
        let is_same = types(self, &self.inputs) == types(other, &other.inputs)
            && types(self, &self.outputs) == types(other, &other.outputs)
            && self.objective.inputs == other.objective.inputs;
        if is_same { Ok(()) } else { Err("it has other inputs or outputs than the plan for all nodes".to_owned()) }
    }

    /// Returns the names of the tasks that `other` computes with other kernels, or on devices of another kind. The results of
    /// all other tasks have the same bits.
    pub(crate) fn tasks_computed_otherwise<'a>(&self, other: &'a Self) -> Vec<&'a str> {
        let own = self.computations();
        let differs = |(name, computation): (&'a str, Vec<Computation<'a>>)| {
            (own.get(name) != Some(&computation)).then_some(name)
        };
        let mut names: Vec<&str> = other.computations().into_iter().filter_map(differs).collect();
        names.sort_unstable();
        names
    }

    /// Returns the launches of each task: the kind of device and the kernels.
    fn computations(&self) -> HashMap<&str, Vec<Computation<'_>>> {
        let mut computations: HashMap<&str, Vec<Computation<'_>>> = HashMap::new();
        for stage in &self.stages {
            let Stage { device, tasks, calls, .. } = stage;
            for (index, Task { name, .. }) in tasks.iter().enumerate() {
                let own = calls.iter().filter(|call| call.task == index);
                let kernels = own.map(|Call { kernel, extent, payload, .. }| (&kernel[..], *extent, payload)).collect();
                computations.entry(name).or_default().push((&self.devices[*device].kind, kernels));
            }
        }
        computations
    }
}

/// Kind of a device, and the kernels that it runs, with their extents and payloads.
type Computation<'a> = (&'a str, Vec<(&'a str, i64, &'a serde_json::Value)>);
