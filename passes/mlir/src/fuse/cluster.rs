//! Selects the operators that become one task.
//!
//! Operators and idioms (*units*) are visited in order. A unit joins the cluster that computes one of its operands, if
//! it is the only reader of that cluster and the cluster's grammar accepts it; otherwise it starts a cluster of its
//! own.
//!
//! Only the results of a cluster's last operator are therefore used outside. So the cluster is convex: a path that
//! leaves it starts at its last operator, and could only re-enter it through a cycle.
//!
//! Further operands of a unit that joins must not delay the start: their depth, the longest path to them in tasks, is
//! at most that of the operands that the cluster has. So the depth of a cluster is known when it starts, and never
//! changes.

use super::{
    Level, Options,
    grammar::Stage,
    graph::{Graph, NodeId, Placement, ValueId},
    idiom::{self, Idiom, Pattern, Search},
    kind::step_name,
    role::{Anchor, Role},
};

pub(super) type UnitId = usize;
type ClusterId = usize;

/// Operator or idiom.
pub(super) struct Unit {
    /// In topological order.
    pub(super) nodes: Vec<NodeId>,
    pub(super) role: UnitRole,
}

/// Role of a unit in the grammar of clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnitRole {
    Single(Role),
    Idiom(Pattern),
}

impl Unit {
    pub(super) fn root(&self) -> NodeId {
        *self.nodes.last().expect("a unit has nodes")
    }
}

/// Family of a cluster, which determines the units that may join it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    /// Not fused.
    Opaque,
    /// Fused only with views.
    Plain,
    Views,
    Anchor(Anchor),
    BatchNorm,
    Elementwise,
    Softmax,
    Normalization,
    Attention,
}

/// Cluster under construction.
pub(super) struct Cluster<'m> {
    pub(super) units: Vec<UnitId>,
    pub(super) family: Family,
    pub(super) stage: Stage,
    /// Parts of the name of its kind.
    pub(super) steps: Vec<String>,
    /// Value that its last operator computes; `None` if there are several.
    out: Option<ValueId>,
    /// Depth of its operands: longest path to them, in tasks.
    start_depth: u32,
    /// True for views alone, which take no time; also for an existing `divi.cluster` of kind `view`.
    is_free: bool,
    placement: Placement<'m>,
    /// Number of operators that are not views.
    work: usize,
    /// True if a view has changed the shape since the first operator.
    pub(super) reshaped: bool,
}

impl Cluster<'_> {
    /// Returns the depth of its results; views take no time.
    fn depth(&self) -> u32 {
        self.start_depth + u32::from(!self.is_free)
    }
}

/// Operators, in order, that will become a `divi.cluster`.
pub(super) struct Task<'m> {
    pub(super) kind: String,
    pub(super) family: Family,
    pub(super) nodes: Vec<NodeId>,
    pub(super) placement: Placement<'m>,
}

/// Returns the clusters of a graph that have more than one operator, ordered by their last one.
pub(super) fn clusters<'m>(graph: &'m Graph<'m>, options: &'m Options) -> Vec<Task<'m>> {
    let search = Search {
        attention: options.level == Level::Full,
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
    fusion.attach_remaining_views();
    fusion.tasks()
}

/// Returns units that partition the nodes, ordered by their last node, which is a topological order.
fn units(graph: &Graph<'_>, idioms: Vec<Idiom>) -> Vec<Unit> {
    let mut at_root: Vec<Option<Unit>> = (0..graph.nodes.len())
        .map(|node| Some(Unit { nodes: vec![node], role: UnitRole::Single(graph.nodes[node].role) }))
        .collect();
    for Idiom { nodes, pattern } in idioms {
        for &node in &nodes {
            at_root[node] = None;
        }
        let root = nodes[nodes.len() - 1];
        at_root[root] = Some(Unit { nodes, role: UnitRole::Idiom(pattern) });
    }
    at_root.into_iter().flatten().collect()
}

/// State of the fusion of one block.
pub(super) struct Fusion<'m> {
    pub(super) graph: &'m Graph<'m>,
    options: &'m Options,
    pub(super) units: Vec<Unit>,
    unit_of: Vec<UnitId>,
    /// Cluster of each unit that has been visited.
    cluster_of: Vec<ClusterId>,
    clusters: Vec<Cluster<'m>>,
}

impl<'m> Fusion<'m> {
    fn visit(&mut self, unit: UnitId) {
        if self.units[unit].role == UnitRole::Single(Role::View) {
            return self.visit_view(unit);
        }
        let mut candidates = self.operands(unit);
        // If two branches join, the one with an anchor takes the epilogue.
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

    /// Adds a view to the cluster of its operand. If that cluster takes none, the view starts a cluster that its reader
    /// may absorb.
    fn visit_view(&mut self, unit: UnitId) {
        let node = self.units[unit].root();
        let (operand, result) = (self.graph.nodes[node].operands[0], self.graph.nodes[node].results[0]);
        if let Some(id) = self.cluster_ending_in(operand, unit)
            && !matches!(self.clusters[id].family, Family::Opaque | Family::Plain)
            && let Some(placement) = self.common_placement(id, unit)
        {
            let reshaped = !self.graph.same_shape(operand, result);
            let cluster = &mut self.clusters[id];
            cluster.units.push(unit);
            cluster.placement = placement;
            cluster.out = Some(result);
            cluster.reshaped |= reshaped;
            self.cluster_of.push(id);
            return;
        }
        self.start(unit);
    }

    fn start(&mut self, unit: UnitId) {
        let root = self.units[unit].root();
        let conv_only = self.options.level == Level::Conv;
        let role = self.units[unit].role;
        let family = match role {
            UnitRole::Single(Role::View) => Family::Views,
            UnitRole::Single(Role::Anchor(anchor)) => Family::Anchor(anchor),
            UnitRole::Single(Role::Opaque) => Family::Opaque,
            _ if conv_only => Family::Opaque,
            UnitRole::Single(Role::Plain) => Family::Plain,
            UnitRole::Single(Role::BatchNorm) => Family::BatchNorm,
            UnitRole::Single(Role::Activation | Role::Elementwise) => Family::Elementwise,
            UnitRole::Single(Role::Softmax) => Family::Softmax,
            UnitRole::Idiom(Pattern::Activation(_) | Pattern::Chain) => Family::Elementwise,
            UnitRole::Idiom(Pattern::Normalization(_)) => Family::Normalization,
            UnitRole::Idiom(Pattern::Attention) => Family::Attention,
        };
        let step = match role {
            UnitRole::Idiom(Pattern::Activation(name) | Pattern::Normalization(name)) => name.to_owned(),
            UnitRole::Idiom(Pattern::Attention) => "attention".to_owned(),
            UnitRole::Idiom(Pattern::Chain) => String::new(),
            UnitRole::Single(_) => match family {
                Family::Elementwise => self.softmax_prologue(unit).unwrap_or_default().to_owned(),
                _ => step_name(&self.graph.nodes[root]),
            },
        };
        let work = self.work(unit);
        let placement = self.graph.nodes[root].placement;
        let out = self.graph.output(root);
        let start_depth = self.operands(unit).iter().map(|&value| self.depth(value)).max().unwrap_or(0);
        let stage = if family == Family::BatchNorm { Stage::Shifted } else { Stage::Anchor };
        let id = self.clusters.len();
        let steps = vec![step];
        self.clusters.push(Cluster {
            units: vec![unit],
            family,
            stage,
            steps,
            out,
            start_depth,
            is_free: family == Family::Views || self.graph.nodes[root].is_view_cluster(),
            placement,
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
        let placement = self.graph.nodes[root].placement;
        let cluster = &mut self.clusters[id];
        cluster.units.push(unit);
        cluster.work += work;
        cluster.out = out;
        cluster.placement = placement;
        cluster.stage = stage;
        cluster.steps.push(step);
        if self.units[unit].role == UnitRole::Single(Role::Softmax) {
            cluster.family = Family::Softmax;
        }
        self.cluster_of.push(id);
        self.take_views_before(unit, id);
    }

    /// Adds the views that only this unit reads, and that are not part of another cluster.
    fn take_views_before(&mut self, unit: UnitId, id: ClusterId) {
        for value in self.operands(unit) {
            if let Some(views) = self.cluster_ending_in(value, unit)
                && self.clusters[views].family == Family::Views
                && self.common_placement(views, unit).is_some()
            {
                self.move_units(views, id);
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

    /// Adds the remaining views to operators that can be fused only with views.
    fn attach_remaining_views(&mut self) {
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
                && let Some(placement) = self.common_placement_of_views(before, id)
            {
                let out = self.clusters[id].out;
                self.move_units(id, before);
                self.clusters[before].placement = placement;
                self.clusters[before].out = out;
                continue;
            }
            let reader = self.clusters[id].out.and_then(|out| self.only_reader(out));
            if let Some(reader) = reader
                && let after = self.cluster_of[reader]
                && self.clusters[after].family == Family::Plain
                && let Some(placement) = self.common_placement_of_views(after, id)
            {
                self.move_units(id, after);
                self.clusters[after].placement = placement;
            }
        }
    }

    /// Returns the cluster that `value` comes from, the step that a unit would be in it, and the stage of its grammar
    /// after the step.
    fn next_step(&self, unit: UnitId, value: ValueId) -> Option<(ClusterId, String, Stage)> {
        let id = self.cluster_ending_in(value, unit)?;
        let cluster = &self.clusters[id];
        let work = cluster.work + self.work(unit);
        let others = self.operands(unit).into_iter().filter(|&other| other != value);
        if cluster.family == Family::Views
            || cluster.placement != self.graph.nodes[self.units[unit].root()].placement
            || self.options.max_cluster_ops.is_some_and(|max| work > max)
            || others.into_iter().any(|other| self.depth(other) > cluster.start_depth)
        {
            return None;
        }
        let (step, stage) = match cluster.family {
            Family::Anchor(anchor) => self.epilogue(unit, value, cluster, Some(anchor))?,
            Family::BatchNorm => self.epilogue(unit, value, cluster, None)?,
            Family::Elementwise => (self.elementwise(unit, value, cluster)?, cluster.stage),
            // A Cast back to the narrower type, after a Cast before the Softmax.
            Family::Softmax if self.is_cast(unit) => (String::new(), cluster.stage),
            _ => return None,
        };
        Some((id, step, stage))
    }

    /// Returns the values that a unit reads and does not compute, without constants; each once, in order.
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

    /// Returns the longest path to a value, in tasks.
    fn depth(&self, value: ValueId) -> u32 {
        self.cluster_before(value).map_or(0, |id| self.clusters[id].depth())
    }

    /// Returns the cluster that computes a value, if it has been visited.
    fn cluster_before(&self, value: ValueId) -> Option<ClusterId> {
        let unit = self.unit_of[self.graph.producer(value)?];
        self.cluster_of.get(unit).copied()
    }

    /// Returns the cluster whose last result is `value`, if only `reader` reads it.
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

    /// Returns the placement (pin and device) of a cluster and a unit together; `None` if theirs differ. A view without
    /// a placement takes that of the other.
    fn common_placement(&self, id: ClusterId, unit: UnitId) -> Option<Placement<'m>> {
        let unit = &self.units[unit];
        let is_view = unit.role == UnitRole::Single(Role::View);
        let placement = self.graph.nodes[unit.root()].placement;
        common_placement(self.clusters[id].placement, self.clusters[id].family == Family::Views, placement, is_view)
    }

    fn common_placement_of_views(&self, id: ClusterId, views: ClusterId) -> Option<Placement<'m>> {
        common_placement(self.clusters[id].placement, false, self.clusters[views].placement, true)
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
        Some(Task { kind: self.kind(cluster, &nodes), family: cluster.family, nodes, placement: cluster.placement })
    }
}

fn common_placement<'m>(a: Placement<'m>, a_is_view: bool, b: Placement<'m>, b_is_view: bool) -> Option<Placement<'m>> {
    if a == b || b_is_view && b == Placement::NONE {
        return Some(a);
    }
    (a_is_view && a == Placement::NONE).then_some(b)
}
