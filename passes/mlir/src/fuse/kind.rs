//! Names of cluster kinds; [`super`] lists them.

use super::{
    cluster::{Cluster, Family, Fusion, UnitRole},
    graph::{Node, NodeId},
    idiom::Pattern,
    role::Role,
};
use divi_dialect::attr;
use divi_onnx::Op;

impl Fusion<'_> {
    pub(super) fn kind(&self, cluster: &Cluster<'_>, nodes: &[NodeId]) -> String {
        let working = |&&node: &&NodeId| self.graph.nodes[node].role != Role::View;
        match cluster.family {
            Family::Views => "view".to_owned(),
            Family::Elementwise if cluster.steps.len() > 1 => "elementwise".to_owned(),
            Family::Elementwise => {
                let unit = cluster.units.iter().find(|&&unit| self.work(unit) > 0);
                match unit.map(|&unit| self.units[unit].role) {
                    Some(UnitRole::Idiom(Pattern::Activation(name))) => name.to_owned(),
                    Some(UnitRole::Single(_)) => {
                        nodes.iter().find(working).map_or_else(String::new, |&node| self.activation_name(node))
                    }
                    _ => "elementwise".to_owned(),
                }
            }
            Family::Softmax => {
                let named = cluster.steps.iter().map(String::as_str).filter(|step| !matches!(*step, "" | "cast"));
                let mut steps: Vec<_> = named.collect();
                steps.dedup();
                steps.join("_")
            }
            _ => cluster.steps.join("_"),
        }
    }

    pub(super) fn activation_name(&self, node: NodeId) -> String {
        let node = &self.graph.nodes[node];
        let alpha = || node.operation.attribute("alpha").and_then(attr::as_float).unwrap_or(1.0);
        if node.is(Op::Swish) && alpha() == 1.0 { "silu".to_owned() } else { step_name(node) }
    }
}

/// Returns the name of an operator in kinds.
pub(super) fn step_name(node: &Node<'_>) -> String {
    match node.op {
        Some(Op::BatchNormalization | Op::BatchNormalizationInferenceMode) => "bn".to_owned(),
        Some(Op::LayerNormalization) => "layer_norm".to_owned(),
        Some(Op::MaxPoolSingleOut) => "maxpool".to_owned(),
        Some(Op::RMSNormalization) => "rms_norm".to_owned(),
        _ => node.operation.name().strip_prefix("onnx.").unwrap_or_default().to_lowercase(),
    }
}
