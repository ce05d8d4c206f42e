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
    grammar::Stage,
    graph::{Decisions, Graph, NodeId, ValueId},
    idiom::{self, Idiom, Meaning, Search},
    kind::step_name,
    role::{Anchor, Role},
};

pub(super) type UnitId = usize;
type ClusterId = usize;

/// An operator or an idiom.
pub(super) struct Unit {
    /// In order.
    pub(super) nodes: Vec<NodeId>,
    pub(super) role: UnitRole,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnitRole {
    Single(Role),
    Idiom(Meaning),
}

impl Unit {
    pub(super) fn root(&self) -> NodeId {
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

pub(super) struct Cluster<'m> {
    pub(super) units: Vec<UnitId>,
    pub(super) family: Family,
    pub(super) stage: Stage,
    /// What its kind is made of.
    pub(super) steps: Vec<String>,
    /// What its last operator computes; `None` if that are several values.
    out: Option<ValueId>,
    /// The longest path to what it reads, in tasks.
    start_level: u32,
    /// It has views alone, also if it was there before.
    is_free: bool,
    decisions: Decisions<'m>,
    /// Operators that are no views.
    work: usize,
    /// A view has changed the shape since the first operator.
    pub(super) reshaped: bool,
}

impl Cluster<'_> {
    /// The longest path to what it computes; views take no time.
    fn level(&self) -> u32 {
        self.start_level + u32::from(!self.is_free)
    }
}

/// Operators, in order, that are to become a `divi.cluster`.
pub(super) struct Task<'m> {
    pub(super) kind: String,
    pub(super) family: Family,
    pub(super) nodes: Vec<NodeId>,
    pub(super) decisions: Decisions<'m>,
}

/// Returns the clusters of a graph that have more than one operator, by their last one.
pub(super) fn clusters<'m>(graph: &'m Graph<'m>, options: &'m Options) -> Vec<Task<'m>> {
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
fn units(graph: &Graph<'_>, idioms: Vec<Idiom>) -> Vec<Unit> {
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

pub(super) struct Fusion<'m> {
    pub(super) graph: &'m Graph<'m>,
    options: &'m Options,
    pub(super) units: Vec<Unit>,
    unit_of: Vec<UnitId>,
    /// By unit; as long as the units that have been visited are many.
    cluster_of: Vec<ClusterId>,
    clusters: Vec<Cluster<'m>>,
}

impl<'m> Fusion<'m> {
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
                _ => step_name(&self.graph.nodes[root]),
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
            is_free: family == Family::Views || self.graph.nodes[root].is_view_cluster(),
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
            // What was widened for it is narrowed again.
            Family::Softmax if self.is_cast(unit) => (String::new(), cluster.stage),
            _ => return None,
        };
        Some((id, step, stage))
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

    pub(super) fn work(&self, unit: UnitId) -> usize {
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

    /// Returns what is decided of a cluster and a unit together; `None` if that contradicts itself, or extends a decision to work
    /// that it was not made for. Views are no work.
    fn agree(&self, id: ClusterId, unit: UnitId) -> Option<Decisions<'m>> {
        let unit = &self.units[unit];
        let is_view = unit.role == UnitRole::Single(Role::View);
        let decisions = self.graph.nodes[unit.root()].decisions;
        agree(self.clusters[id].decisions, self.clusters[id].family == Family::Views, decisions, is_view)
    }

    fn agree_all(&self, id: ClusterId, views: ClusterId) -> Option<Decisions<'m>> {
        agree(self.clusters[id].decisions, false, self.clusters[views].decisions, true)
    }

    fn tasks(&self) -> Vec<Task<'m>> {
        let mut tasks: Vec<Task<'m>> = self.clusters.iter().filter_map(|cluster| self.task(cluster)).collect();
        tasks.sort_by_key(|task| task.nodes.last().copied());
        tasks
    }

    fn task(&self, cluster: &Cluster<'m>) -> Option<Task<'m>> {
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
}

fn agree<'m>(a: Decisions<'m>, a_is_view: bool, b: Decisions<'m>, b_is_view: bool) -> Option<Decisions<'m>> {
    if a == b || b_is_view && b == Decisions::NONE {
        return Some(a);
    }
    (a_is_view && a == Decisions::NONE).then_some(b)
}
