//! Which operators become one task.
//!
//! Operators and idioms (*units*) are visited in order. Each joins the cluster that computes one of its operands, if it is
//! that cluster's only reader and the cluster's grammar goes on with it, or starts a cluster of its own.
//!
//! What others see of a cluster is therefore its last operator's results alone. So it is convex: a path that left it
//! would start at its last operator and, on its way back in, lead to that operator again.
//!
//! An operand that joins late may not delay the start: its level, the longest path to it in tasks, is at most that of what
//! the cluster reads already. So the level of a cluster is known when it starts, and never changes.

use super::{
    Level, Options,
    graph::{Decisions, Graph, NodeId, ValueId},
    idiom::{self, Idiom, Meaning, Search},
    role::{Anchor, Role},
};
use crate::ir::{attribute, float_attribute};
use divi_onnx::Dim;

type UnitId = usize;
type ClusterId = usize;

/// An operator or an idiom.
struct Unit {
    /// In order.
    nodes: Vec<NodeId>,
    role: UnitRole,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnitRole {
    Single(Role),
    Idiom(Meaning),
}

impl Unit {
    fn root(&self) -> NodeId {
        *self.nodes.last().expect("a unit has nodes")
    }
}

/// What a cluster is about, and so what may join it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Opaque,
    Plain,
    Views,
    Anchor(Anchor),
    BatchNorm,
    Elementwise,
    Softmax,
    Normalization,
}

/// How far the epilogue of an anchor has come: anchor, normalization or bias, activation, residual, activation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
enum Stage {
    Anchor,
    Shifted,
    Activated,
    Added,
    Done,
}

struct Cluster {
    units: Vec<UnitId>,
    family: Family,
    stage: Stage,
    /// What its kind is made of.
    steps: Vec<String>,
    /// What its last operator computes; `None` if that are several values.
    out: Option<ValueId>,
    /// The longest path to what it reads, in tasks.
    start_level: u32,
    decisions: Decisions,
    /// Operators that are no views.
    work: usize,
    /// A view has changed the shape since the first operator.
    reshaped: bool,
}

impl Cluster {
    /// The longest path to what it computes; views take no time.
    fn level(&self) -> u32 {
        self.start_level + u32::from(self.family != Family::Views)
    }
}

/// Operators, in order, that are to become a `divi.cluster`.
pub(super) struct Task {
    pub(super) kind: String,
    pub(super) family: Family,
    pub(super) nodes: Vec<NodeId>,
    pub(super) decisions: Decisions,
}

/// The clusters of a graph that have more than one operator, by their last one.
pub(super) fn clusters(graph: &Graph, options: &Options) -> Vec<Task> {
    let search = Search {
        normalizations: options.level == Level::Full,
        chains: options.level == Level::Full,
        max_nodes: options.max_cluster_ops.unwrap_or(usize::MAX),
    };
    let units = units(graph, idiom::find(graph, search));
    let mut unit_of = vec![0; graph.nodes.len()];
    for (id, unit) in units.iter().enumerate() {
        for &node in &unit.nodes {
            unit_of[node] = id;
        }
    }
    let count = units.len();
    let mut fusion = Fusion { graph, options, units, unit_of, cluster_of: Vec::with_capacity(count), clusters: vec![] };
    for unit in 0..count {
        fusion.visit(unit);
    }
    fusion.place_views();
    fusion.tasks()
}

/// Every node in one unit; units by their last node, which is an order in which data flow.
fn units(graph: &Graph, idioms: Vec<Idiom>) -> Vec<Unit> {
    let mut at_root: Vec<Option<Unit>> = (0..graph.nodes.len())
        .map(|node| Some(Unit { nodes: vec![node], role: UnitRole::Single(graph.nodes[node].role) }))
        .collect();
    for Idiom { nodes, meaning } in idioms {
        for &node in &nodes {
            at_root[node] = None;
        }
        let root = nodes[nodes.len() - 1];
        at_root[root] = Some(Unit { nodes, role: UnitRole::Idiom(meaning) });
    }
    at_root.into_iter().flatten().collect()
}

struct Fusion<'a> {
    graph: &'a Graph,
    options: &'a Options,
    units: Vec<Unit>,
    unit_of: Vec<UnitId>,
    /// By unit; as long as the units that have been visited are many.
    cluster_of: Vec<ClusterId>,
    clusters: Vec<Cluster>,
}

impl Fusion<'_> {
    fn visit(&mut self, unit: UnitId) {
        if self.units[unit].role == UnitRole::Single(Role::View) {
            return self.visit_view(unit);
        }
        let mut candidates = self.operands(unit);
        // Of two branches that come together, the heavier takes what follows.
        let is_anchor = |value: &ValueId| {
            self.cluster_before(*value).is_some_and(|id| matches!(self.clusters[id].family, Family::Anchor(_)))
        };
        candidates.sort_by_key(|value| !is_anchor(value));
        for value in candidates {
            if let Some((cluster, step, stage)) = self.next_step(unit, value) {
                return self.join(unit, cluster, step, stage);
            }
        }
        self.start(unit);
    }

    /// A view goes with what it is a view of. If that is no cluster yet, it waits for what reads it.
    fn visit_view(&mut self, unit: UnitId) {
        let node = self.units[unit].root();
        let (operand, result) = (self.graph.nodes[node].operands[0], self.graph.nodes[node].results[0]);
        if let Some(id) = self.cluster_ending_in(operand, unit)
            && !matches!(self.clusters[id].family, Family::Opaque | Family::Plain)
            && let Some(decisions) = self.agree(id, unit)
        {
            let reshaped = !self.graph.same_shape(operand, result);
            let cluster = &mut self.clusters[id];
            cluster.units.push(unit);
            cluster.decisions = decisions;
            cluster.out = Some(result);
            cluster.reshaped |= reshaped;
            self.cluster_of.push(id);
            return;
        }
        self.start(unit);
    }

    fn start(&mut self, unit: UnitId) {
        let Unit { nodes, role } = &self.units[unit];
        let root = nodes[nodes.len() - 1];
        let op = self.graph.nodes[root].op;
        let conv_only = self.options.level == Level::Conv;
        let family = match *role {
            UnitRole::Single(Role::View) => Family::Views,
            UnitRole::Single(Role::Anchor(anchor)) => Family::Anchor(anchor),
            UnitRole::Single(Role::Opaque) => Family::Opaque,
            _ if conv_only => Family::Opaque,
            UnitRole::Single(Role::Plain) => Family::Plain,
            UnitRole::Single(Role::BatchNorm) => Family::BatchNorm,
            UnitRole::Single(Role::Activation | Role::Elementwise) => Family::Elementwise,
            UnitRole::Single(Role::Softmax) => Family::Softmax,
            UnitRole::Idiom(Meaning::Activation(_) | Meaning::Chain) => Family::Elementwise,
            UnitRole::Idiom(Meaning::Normalization(_)) => Family::Normalization,
        };
        let step = match *role {
            UnitRole::Idiom(Meaning::Activation(name) | Meaning::Normalization(name)) => name.to_owned(),
            UnitRole::Idiom(Meaning::Chain) => String::new(),
            UnitRole::Single(_) => match family {
                Family::Elementwise => self.softmax_prologue(unit).unwrap_or_default().to_owned(),
                _ => step_name(op),
            },
        };
        let work = self.work(unit);
        let decisions = self.graph.nodes[root].decisions;
        let out = self.graph.output(root);
        let start_level = self.operands(unit).iter().map(|&value| self.level(value)).max().unwrap_or(0);
        let stage = if family == Family::BatchNorm { Stage::Shifted } else { Stage::Anchor };
        let id = self.clusters.len();
        let steps = vec![step];
        self.clusters.push(Cluster {
            units: vec![unit],
            family,
            stage,
            steps,
            out,
            start_level,
            decisions,
            work,
            reshaped: false,
        });
        self.cluster_of.push(id);
        if !matches!(family, Family::Opaque | Family::Plain | Family::Views) {
            self.take_views_before(unit, id);
        }
    }

    fn join(&mut self, unit: UnitId, id: ClusterId, step: String, stage: Stage) {
        let root = self.units[unit].root();
        let (work, out) = (self.work(unit), self.graph.output(root));
        let decisions = self.graph.nodes[root].decisions;
        let cluster = &mut self.clusters[id];
        cluster.units.push(unit);
        cluster.work += work;
        cluster.out = out;
        cluster.decisions = decisions;
        cluster.stage = stage;
        cluster.steps.push(step);
        if self.units[unit].role == UnitRole::Single(Role::Softmax) {
            cluster.family = Family::Softmax;
        }
        self.cluster_of.push(id);
        self.take_views_before(unit, id);
    }

    /// Views that nobody but this unit reads, and that are part of no other cluster.
    fn take_views_before(&mut self, unit: UnitId, id: ClusterId) {
        for value in self.operands(unit) {
            if let Some(views) = self.cluster_ending_in(value, unit)
                && self.clusters[views].family == Family::Views
                && let Some(decisions) = self.agree(views, unit)
            {
                self.move_units(views, id);
                self.clusters[id].decisions = decisions;
            }
        }
    }

    fn move_units(&mut self, from: ClusterId, to: ClusterId) {
        let units = std::mem::take(&mut self.clusters[from].units);
        for &unit in &units {
            self.cluster_of[unit] = to;
        }
        self.clusters[to].units.extend(units);
    }

    /// The views that no cluster has taken, to operators that only ever take views.
    fn place_views(&mut self) {
        if self.options.level == Level::Conv {
            return;
        }
        for id in 0..self.clusters.len() {
            if self.clusters[id].family != Family::Views || self.clusters[id].units.is_empty() {
                continue;
            }
            let first = self.clusters[id].units[0];
            let operand = self.graph.nodes[self.units[first].root()].operands[0];
            if let Some(before) = self.cluster_ending_in(operand, first)
                && self.clusters[before].family == Family::Plain
                && let Some(decisions) = self.agree_all(before, id)
            {
                let out = self.clusters[id].out;
                self.move_units(id, before);
                self.clusters[before].decisions = decisions;
                self.clusters[before].out = out;
                continue;
            }
            let reader = self.clusters[id].out.and_then(|out| self.only_reader(out));
            if let Some(reader) = reader
                && let after = self.cluster_of[reader]
                && self.clusters[after].family == Family::Plain
                && let Some(decisions) = self.agree_all(after, id)
            {
                self.move_units(id, after);
                self.clusters[after].decisions = decisions;
            }
        }
    }

    /// The cluster that `value` comes from, the step that a unit would be in it, and where its grammar is then.
    fn next_step(&self, unit: UnitId, value: ValueId) -> Option<(ClusterId, String, Stage)> {
        let id = self.cluster_ending_in(value, unit)?;
        let cluster = &self.clusters[id];
        let work = cluster.work + self.work(unit);
        let others = self.operands(unit).into_iter().filter(|&other| other != value);
        if cluster.family == Family::Views
            || cluster.decisions != self.graph.nodes[self.units[unit].root()].decisions
            || self.options.max_cluster_ops.is_some_and(|max| work > max)
            || others.into_iter().any(|other| self.level(other) > cluster.start_level)
        {
            return None;
        }
        let (step, stage) = match cluster.family {
            Family::Anchor(anchor) => self.epilogue(unit, value, cluster, Some(anchor))?,
            Family::BatchNorm => self.epilogue(unit, value, cluster, None)?,
            Family::Elementwise => (self.elementwise(unit, value, cluster)?, cluster.stage),
            _ => return None,
        };
        Some((id, step, stage))
    }

    /// The grammar of what is attached to an anchor, or to a scale and shift.
    fn epilogue(
        &self,
        unit: UnitId,
        value: ValueId,
        cluster: &Cluster,
        anchor: Option<Anchor>,
    ) -> Option<(String, Stage)> {
        let Unit { nodes, role } = &self.units[unit];
        let (node, out) = (nodes[0], self.graph.output(*nodes.last()?)?);
        if !self.graph.same_type(value, out) {
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
            UnitRole::Idiom(Meaning::Activation(name)) if activated != cluster.stage => {
                Some((name.to_owned(), activated))
            }
            UnitRole::Single(Role::Elementwise) if self.graph.nodes[node].op == "Add" => {
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

    fn weights_are_constant(&self, cluster: &Cluster) -> bool {
        let anchor = self.anchor_node(cluster);
        let operands = &self.graph.nodes[anchor].operands;
        operands.get(1).is_some_and(|&weights| self.graph.is_constant(weights))
            && operands.get(2).is_none_or(|&bias| self.graph.is_static(bias))
    }

    fn anchor_node(&self, cluster: &Cluster) -> NodeId {
        let is_anchor = |&&unit: &&UnitId| matches!(self.units[unit].role, UnitRole::Single(Role::Anchor(_)));
        let unit = cluster.units.iter().find(is_anchor).expect("the cluster's family says that it has an anchor");
        self.units[*unit].root()
    }

    /// Whether a constant is a number a channel, which an anchor that has no bias yet can start from.
    fn is_bias(&self, cluster: &Cluster, anchor: Anchor, value: ValueId, other: ValueId) -> bool {
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

    /// Element-wise operators one behind the other, on tensors of one shape, so that nothing is computed twice.
    fn elementwise(&self, unit: UnitId, value: ValueId, cluster: &Cluster) -> Option<String> {
        let Unit { nodes, role } = &self.units[unit];
        let out = self.graph.output(*nodes.last()?)?;
        let same_shape = self.graph.same_shape(value, out);
        match role {
            UnitRole::Single(Role::Activation | Role::Elementwise) if same_shape => {
                Some(self.softmax_prologue(unit).unwrap_or_default().to_owned())
            }
            UnitRole::Idiom(Meaning::Activation(_) | Meaning::Chain) if same_shape => Some(String::new()),
            UnitRole::Single(Role::Softmax)
                if cluster.steps.iter().all(|step| matches!(&step[..], "scale" | "mask")) =>
            {
                Some(step_name(self.graph.nodes[nodes[0]].op))
            }
            _ => None,
        }
    }

    /// What an element-wise operator is before a Softmax, if anything.
    fn softmax_prologue(&self, unit: UnitId) -> Option<&'static str> {
        let &[node] = &self.units[unit].nodes[..] else { return None };
        let node = &self.graph.nodes[node];
        let scalar = |index: usize| node.operands.get(index).is_some_and(|&v| self.graph.is_scalar_constant(v));
        match node.op {
            "Mul" if scalar(0) || scalar(1) => Some("scale"),
            "Div" if scalar(1) => Some("scale"),
            "Add" | "Where" => Some("mask"),
            _ => None,
        }
    }

    fn activation_name(&self, node: NodeId) -> String {
        let node = &self.graph.nodes[node];
        let alpha = || attribute(node.operation, "alpha").and_then(float_attribute).unwrap_or(1.0);
        if node.op == "Swish" && alpha() == 1.0 { "silu".to_owned() } else { step_name(node.op) }
    }

    /// The values that a unit reads and does not compute, constants excepted; each once, in order.
    fn operands(&self, unit: UnitId) -> Vec<ValueId> {
        let nodes = &self.units[unit].nodes;
        let mut operands = vec![];
        for value in nodes.iter().flat_map(|&node| self.graph.data(node)) {
            let inside = self.graph.producer(value).is_some_and(|producer| nodes.contains(&producer));
            if !inside && !operands.contains(&value) {
                operands.push(value);
            }
        }
        operands
    }

    fn work(&self, unit: UnitId) -> usize {
        self.units[unit].nodes.iter().filter(|&&node| self.graph.nodes[node].role != Role::View).count()
    }

    /// The longest path to a value, in tasks.
    fn level(&self, value: ValueId) -> u32 {
        self.cluster_before(value).map_or(0, |id| self.clusters[id].level())
    }

    /// The cluster that computes a value, if that has been visited.
    fn cluster_before(&self, value: ValueId) -> Option<ClusterId> {
        let unit = self.unit_of[self.graph.producer(value)?];
        self.cluster_of.get(unit).copied()
    }

    /// The cluster whose last value this is, if `reader` alone reads it.
    fn cluster_ending_in(&self, value: ValueId, reader: UnitId) -> Option<ClusterId> {
        let id = self.cluster_before(value)?;
        (self.clusters[id].out == Some(value) && self.only_reader(value) == Some(reader)).then_some(id)
    }

    fn only_reader(&self, value: ValueId) -> Option<UnitId> {
        let value = &self.graph.values[value];
        let unit = self.unit_of[*value.readers.first()?];
        let alone = !value.escapes && value.readers.iter().all(|&reader| self.unit_of[reader] == unit);
        alone.then_some(unit)
    }

    /// What is decided of a cluster and a unit together; `None` if that contradicts itself, or extends a decision to work
    /// that it was not made for. Views are no work.
    fn agree(&self, id: ClusterId, unit: UnitId) -> Option<Decisions> {
        let unit = &self.units[unit];
        let is_view = unit.role == UnitRole::Single(Role::View);
        let decisions = self.graph.nodes[unit.root()].decisions;
        agree(self.clusters[id].decisions, self.clusters[id].family == Family::Views, decisions, is_view)
    }

    fn agree_all(&self, id: ClusterId, views: ClusterId) -> Option<Decisions> {
        agree(self.clusters[id].decisions, false, self.clusters[views].decisions, true)
    }

    fn tasks(&self) -> Vec<Task> {
        let mut tasks: Vec<Task> = self.clusters.iter().filter_map(|cluster| self.task(cluster)).collect();
        tasks.sort_by_key(|task| task.nodes.last().copied());
        tasks
    }

    fn task(&self, cluster: &Cluster) -> Option<Task> {
        let mut nodes: Vec<_> = cluster.units.iter().flat_map(|&unit| self.units[unit].nodes.iter().copied()).collect();
        nodes.sort_unstable();
        let left_alone = match cluster.family {
            Family::Opaque => true,
            Family::Views => self.options.level == Level::Conv,
            _ => false,
        };
        if nodes.len() < 2 || left_alone {
            return None;
        }
        Some(Task { kind: self.kind(cluster, &nodes), family: cluster.family, nodes, decisions: cluster.decisions })
    }

    fn kind(&self, cluster: &Cluster, nodes: &[NodeId]) -> String {
        let working = |&&node: &&NodeId| self.graph.nodes[node].role != Role::View;
        match cluster.family {
            Family::Views => "view".to_owned(),
            Family::Elementwise if cluster.steps.len() > 1 => "elementwise".to_owned(),
            Family::Elementwise => {
                let unit = cluster.units.iter().find(|&&unit| self.work(unit) > 0);
                match unit.map(|&unit| self.units[unit].role) {
                    Some(UnitRole::Idiom(Meaning::Activation(name))) => name.to_owned(),
                    Some(UnitRole::Single(_)) => {
                        nodes.iter().find(working).map_or_else(String::new, |&node| self.activation_name(node))
                    }
                    _ => "elementwise".to_owned(),
                }
            }
            Family::Softmax => {
                let mut steps = cluster.steps.clone();
                steps.dedup();
                steps.join("_")
            }
            _ => cluster.steps.join("_"),
        }
    }
}

fn agree(a: Decisions, a_is_view: bool, b: Decisions, b_is_view: bool) -> Option<Decisions> {
    if a == b || b_is_view && b == Decisions::NONE {
        return Some(a);
    }
    (a_is_view && a == Decisions::NONE).then_some(b)
}

/// What an operator is called in kinds.
fn step_name(op: &str) -> String {
    match op {
        "BatchNormalization" | "BatchNormalizationInferenceMode" => "bn".to_owned(),
        "MaxPoolSingleOut" => "maxpool".to_owned(),
        _ => op.to_lowercase(),
    }
}
