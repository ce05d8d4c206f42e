//! Grammar of clusters: the units that may follow each other.

use super::{
    cluster::{Cluster, Fusion, Unit, UnitId, UnitRole},
    graph::{NodeId, ValueId},
    idiom::Pattern,
    kind::step_name,
    role::{Anchor, Role, only_rounds},
};
use divi_onnx::{Dim, Op};

/// Progress of an epilogue: anchor, normalization or bias, activation, residual, activation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub(super) enum Stage {
    Anchor,
    Shifted,
    Activated,
    Added,
    Done,
}

impl Fusion<'_> {
    /// Returns the step and stage of a unit in the epilogue of an anchor, or of a scale and shift.
    pub(super) fn epilogue(
        &self,
        unit: UnitId,
        value: ValueId,
        cluster: &Cluster<'_>,
        anchor: Option<Anchor>,
    ) -> Option<(String, Stage)> {
        let Unit { nodes, role } = &self.units[unit];
        let (node, out) = (nodes[0], self.graph.output(*nodes.last()?)?);
        if !self.graph.same_shape(value, out)
            || !only_rounds(self.graph, value, out) && !self.graph.same_type(value, out)
        {
            return None;
        }
        let activated = match cluster.stage {
            Stage::Anchor | Stage::Shifted => Stage::Activated,
            Stage::Added => Stage::Done,
            Stage::Activated | Stage::Done => cluster.stage,
        };
        match *role {
            UnitRole::Single(Role::BatchNorm) => {
                let folds = cluster.stage == Stage::Anchor
                    && !cluster.reshaped
                    && anchor.is_some_and(Anchor::convolves)
                    && self.weights_are_constant(cluster)
                    && self.graph.nodes[node].operands[0] == value;
                folds.then(|| ("bn".to_owned(), Stage::Shifted))
            }
            UnitRole::Single(Role::Activation) if activated != cluster.stage => {
                (self.graph.nodes[node].operands[0] == value).then(|| (self.activation_name(node), activated))
            }
            UnitRole::Idiom(Pattern::Activation(name)) if activated != cluster.stage => {
                Some((name.to_owned(), activated))
            }
            UnitRole::Single(Role::Elementwise) if matches!(self.graph.nodes[node].op, Some(Op::Add | Op::Sum)) => {
                let &[a, b] = &self.graph.nodes[node].operands[..] else { return None };
                let other = if a == value { b } else { a };
                if anchor.is_some_and(|anchor| self.is_bias(cluster, anchor, value, other)) {
                    return Some(("bias".to_owned(), Stage::Shifted));
                }
                let residual = cluster.stage < Stage::Added && other != value && self.graph.same_type(value, other);
                residual.then(|| ("add".to_owned(), Stage::Added))
            }
            _ => None,
        }
    }

    fn weights_are_constant(&self, cluster: &Cluster<'_>) -> bool {
        let anchor = self.anchor_node(cluster);
        let operands = &self.graph.nodes[anchor].operands;
        operands.get(1).is_some_and(|&weights| self.graph.is_constant(weights))
            && operands.get(2).is_none_or(|&bias| self.graph.is_static(bias))
    }

    fn anchor_node(&self, cluster: &Cluster<'_>) -> NodeId {
        let is_anchor = |&&unit: &&UnitId| matches!(self.units[unit].role, UnitRole::Single(Role::Anchor(_)));
        let unit = cluster.units.iter().find(is_anchor).expect("the cluster's family says that it has an anchor");
        self.units[*unit].root()
    }

    /// Returns true if a constant has one number per channel, and the anchor has no bias yet.
    fn is_bias(&self, cluster: &Cluster<'_>, anchor: Anchor, value: ValueId, other: ValueId) -> bool {
        let operands = &self.graph.nodes[self.anchor_node(cluster)].operands;
        let has_bias = anchor != Anchor::MatMul && operands.get(2).is_some_and(|&bias| !self.graph.is_absent(bias));
        if cluster.stage != Stage::Anchor || cluster.reshaped || has_bias || !self.graph.is_constant(other) {
            return false;
        }
        let shape = |value| self.graph.ty(value).and_then(|ty| ty.shape.as_ref());
        let (Some(shape), Some(bias)) = (shape(value), shape(other)) else { return false };
        let Some(channel) = (if anchor.convolves() { Some(1) } else { shape.len().checked_sub(1) }) else {
            return false;
        };
        let Some(absent) = shape.len().checked_sub(bias.len()) else { return false };
        absent <= channel
            && bias.iter().enumerate().all(|(i, dim)| match i + absent {
                axis if axis == channel => dim == &shape[axis] && matches!(dim, Dim::Known(_)),
                _ => *dim == Dim::Known(1),
            })
    }

    /// Returns the step of a unit in a chain of element-wise operators on tensors of one shape, so that nothing is
    /// computed twice.
    pub(super) fn elementwise(&self, unit: UnitId, value: ValueId, cluster: &Cluster<'_>) -> Option<String> {
        let Unit { nodes, role } = &self.units[unit];
        let out = self.graph.output(*nodes.last()?)?;
        let same_shape = self.graph.same_shape(value, out);
        match role {
            UnitRole::Single(Role::Activation | Role::Elementwise) if same_shape => {
                Some(self.softmax_prologue(unit).unwrap_or_default().to_owned())
            }
            UnitRole::Idiom(Pattern::Activation(_) | Pattern::Chain) if same_shape => Some(String::new()),
            UnitRole::Single(Role::Softmax)
                if cluster.steps.iter().all(|step| matches!(&step[..], "scale" | "mask" | "cast")) =>
            {
                Some(step_name(&self.graph.nodes[nodes[0]]))
            }
            _ => None,
        }
    }

    /// Returns the step of an element-wise operator before a Softmax, if it can be one.
    pub(super) fn softmax_prologue(&self, unit: UnitId) -> Option<&'static str> {
        let &[node] = &self.units[unit].nodes[..] else { return None };
        let node = &self.graph.nodes[node];
        let scalar = |index: usize| node.operands.get(index).is_some_and(|&v| self.graph.is_scalar_constant(v));
        match node.op? {
            Op::Mul if scalar(0) || scalar(1) => Some("scale"),
            Op::Div if scalar(1) => Some("scale"),
            Op::Add | Op::Where => Some("mask"),
            Op::Cast => Some("cast"),
            _ => None,
        }
    }

    pub(super) fn is_cast(&self, unit: UnitId) -> bool {
        matches!(self.units[unit].nodes[..], [node] if self.graph.nodes[node].is(Op::Cast))
    }
}
