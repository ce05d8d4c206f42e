//! Finds functions that exporters decompose into several operators: attention ([`attention`]), and functions of one tensor: GELU, SiLU,
//! LayerNormalization, …
//!
//! An idiom of one tensor is a *region*: operators that together read one non-constant value, and of which only the last result is
//! used outside. The search goes back from an operator until all open operands have merged into one.

use super::{
    attention, evaluate,
    graph::{Graph, NodeId, ValueId},
    role::Role,
};
use divi_onnx::{Dim, Op};

/// Maximum number of operators of an idiom; tanh-GELU has eight, LayerNormalization ten with two casts.
const MAX_NODES: usize = 16;

/// Maximum number of operators of an idiom without a branch; HardSigmoid has three.
const MAX_STRAIGHT: usize = 6;

/// Function that an idiom computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    Activation(&'static str),
    Normalization(&'static str),
    /// A chain of operators in which a later one reads the input of the first again.
    Chain,
    /// Products of queries, keys and values with a Softmax between them.
    Attention,
}

/// Operators that compute a function together.
pub(super) struct Idiom {
    /// In order; the result of the last one is the result of the idiom.
    pub(super) nodes: Vec<NodeId>,
    pub(super) pattern: Pattern,
}

/// Kinds and maximum size of idioms to find.
#[derive(Clone, Copy)]
pub(super) struct Search {
    pub(super) attention: bool,
    pub(super) normalizations: bool,
    pub(super) chains: bool,
    /// Maximum number of operators that are not views.
    pub(super) max_nodes: usize,
}

/// Returns the idioms of a graph. They do not overlap.
pub(super) fn find(graph: &Graph<'_>, search: Search) -> Vec<Idiom> {
    let mut finder = Finder { graph, search, taken: vec![false; graph.nodes.len()], idioms: vec![] };
    if search.attention {
        (0..graph.nodes.len()).for_each(|root| finder.attention(root));
    }
    // Later operators first: an idiom may contain the beginning of another, as HardSwish does HardSigmoid.
    for root in (0..graph.nodes.len()).rev() {
        finder.search(root, |finder, nodes, input, reduces| finder.named(nodes, input, reduces));
    }
    if search.chains {
        for root in (0..graph.nodes.len()).rev() {
            finder.search(root, |finder, nodes, input, reduces| finder.chain(nodes, input, reduces));
        }
    }
    finder.idioms
}

struct Finder<'a> {
    graph: &'a Graph<'a>,
    search: Search,
    taken: Vec<bool>,
    idioms: Vec<Idiom>,
}

/// Operators, latest first, and the values that they read from outside.
struct Region {
    nodes: Vec<NodeId>,
    open: Vec<ValueId>,
    reduces: bool,
    /// True if an operator reads two values, so that branches can merge.
    joins: bool,
}

/// Function that recognizes the meaning of operators, in order, in terms of the one value that they read. The last
/// argument is true if some of them reduce.
type Recognizer = fn(&Finder<'_>, &[NodeId], ValueId, bool) -> Option<Pattern>;

impl Finder<'_> {
    /// Adds the attention that ends with a product, if there is one.
    fn attention(&mut self, root: NodeId) {
        let placement = self.graph.nodes[root].placement;
        let is_free = |node: NodeId| {
            let candidate = &self.graph.nodes[node];
            !self.taken[node] && candidate.role != Role::Opaque && candidate.placement == placement
        };
        let works = |&&node: &&NodeId| self.graph.nodes[node].role != Role::View;
        let found = attention::ending_at(self.graph, root, &is_free);
        if let Some(nodes) = found.filter(|nodes| nodes.iter().filter(works).count() <= self.search.max_nodes) {
            nodes.iter().for_each(|&node| self.taken[node] = true);
            self.idioms.push(Idiom { nodes, pattern: Pattern::Attention });
        }
    }

    /// Extends a region back from `root` until `recognize` accepts it.
    fn search(&mut self, root: NodeId, recognize: Recognizer) {
        if !self.may_join(root, root) || self.graph.nodes[root].role == Role::View {
            return;
        }
        if let Some((nodes, input, pattern)) = self.region_of(root, recognize) {
            self.add(nodes, input, pattern);
        }
    }

    fn region_of(&self, root: NodeId, recognize: Recognizer) -> Option<(Vec<NodeId>, ValueId, Pattern)> {
        let mut region = Region { nodes: vec![], open: vec![], reduces: false, joins: false };
        self.include(&mut region, root);
        let mut found = None;
        while region.nodes.len() < if region.joins { MAX_NODES } else { MAX_STRAIGHT } {
            if let ([input], true) = (&region.open[..], region.nodes.len() > 1) {
                let nodes: Vec<_> = region.nodes.iter().rev().copied().collect();
                match recognize(self, &nodes, *input, region.reduces) {
                    // The second half of a LayerNormalization is an RMSNorm of what the first half computes.
                    Some(pattern @ Pattern::Normalization("rms_norm")) => {
                        found.get_or_insert((nodes, *input, pattern));
                    }
                    Some(pattern) => return Some((nodes, *input, pattern)),
                    None => {}
                }
            }
            // All values of a region depend on its input, which therefore is the earliest of the open operands.
            let latest = region.open.iter().copied().max_by_key(|&value| self.graph.producer(value));
            let Some(next) = latest.and_then(|value| self.graph.producer(value)) else { break };
            if !self.may_join(next, root) || !self.read_by(next, &region.nodes) || !self.fits(&region.nodes, next) {
                break;
            }
            self.include(&mut region, next);
        }
        found
    }

    fn include(&self, region: &mut Region, node: NodeId) {
        region.nodes.push(node);
        region.open.retain(|&value| self.graph.producer(value) != Some(node));
        for value in self.graph.data(node) {
            if !region.open.contains(&value) {
                region.open.push(value);
            }
        }
        region.joins |= self.graph.data(node).count() > 1;
        region.reduces |= self.graph.nodes[node].is(Op::ReduceMean);
    }

    /// Returns true if only `readers` read a node's results.
    fn read_by(&self, node: NodeId, readers: &[NodeId]) -> bool {
        self.graph.nodes[node].results.iter().all(|&result| {
            let value = &self.graph.values[result];
            !value.escapes && value.readers.iter().all(|reader| readers.contains(reader))
        })
    }

    /// Returns true if one more operator is within the limit.
    fn fits(&self, nodes: &[NodeId], more: NodeId) -> bool {
        let works = |&&node: &&NodeId| self.graph.nodes[node].role != Role::View;
        nodes.iter().chain([&more]).filter(works).count() <= self.search.max_nodes
    }

    fn may_join(&self, node: NodeId, root: NodeId) -> bool {
        let candidate = &self.graph.nodes[node];
        let computes = match candidate.role {
            Role::Activation | Role::Elementwise => true,
            Role::View => matches!(candidate.op, Some(Op::Cast | Op::Identity)),
            Role::Plain => candidate.is(Op::ReduceMean) && self.search.normalizations,
            _ => false,
        };
        computes && !self.taken[node] && candidate.placement == self.graph.nodes[root].placement
    }

    fn named(&self, nodes: &[NodeId], input: ValueId, reduces: bool) -> Option<Pattern> {
        let root = *nodes.last()?;
        if !self.graph.same_shape(input, self.graph.output(root)?) {
            return None;
        }
        if reduces {
            if !self.search.normalizations || !self.reduce_alike(nodes) {
                return None;
            }
            return evaluate::normalization(self.graph, nodes, input).map(Pattern::Normalization);
        }
        if !nodes.iter().any(|&node| self.graph.nodes[node].op.is_some_and(evaluate::is_nonlinear))
            || !self.keep_shape(nodes, input)
        {
            return None;
        }
        // A single operator is recognized by its name.
        evaluate::activation(self.graph, nodes, input).map(Pattern::Activation)
    }

    /// Recognizes a chain in which the input of the first operator is read again.
    fn chain(&self, nodes: &[NodeId], input: ValueId, reduces: bool) -> Option<Pattern> {
        let reads = |node: NodeId, value| self.graph.nodes[node].operands.contains(&value);
        let one_by_one =
            nodes.windows(2).all(|pair| self.graph.output(pair[0]).is_some_and(|result| reads(pair[1], result)));
        let skips = nodes[1..].iter().any(|&node| reads(node, input));
        (!reduces && one_by_one && skips && self.keep_shape(nodes, input)).then_some(Pattern::Chain)
    }

    fn keep_shape(&self, nodes: &[NodeId], input: ValueId) -> bool {
        nodes.iter().all(|&node| self.graph.output(node).is_some_and(|result| self.graph.same_shape(input, result)))
    }

    /// Returns true if all reductions are over the same axes: their axes, operand shapes and result shapes are equal.
    fn reduce_alike(&self, nodes: &[NodeId]) -> bool {
        let mut reductions = nodes.iter().filter(|&&node| self.graph.nodes[node].is(Op::ReduceMean)).map(|&node| {
            let reduction = &self.graph.nodes[node];
            let axes = reduction.operands.get(1).and_then(|&axes| self.graph.constant(axes)?.ints());
            let shape = |value| self.graph.ty(value).and_then(|ty| ty.shape.clone());
            (axes, shape(reduction.operands[0]), shape(*reduction.results.first()?)).into()
        });
        let first: Option<(_, Option<Vec<Dim>>, _)> = reductions.next().flatten();
        first.is_some_and(|first| first.0.is_some() && reductions.all(|other| other.as_ref() == Some(&first)))
    }

    fn add(&mut self, mut nodes: Vec<NodeId>, input: ValueId, pattern: Pattern) {
        if matches!(pattern, Pattern::Normalization(_)) {
            self.add_cast_before(&mut nodes, input);
            self.add_scale_and_shift(&mut nodes);
        }
        for &node in &nodes {
            self.taken[node] = true;
        }
        self.idioms.push(Idiom { nodes, pattern });
    }

    /// Adds the Cast to a wider type that exporters insert before a normalization.
    fn add_cast_before(&self, nodes: &mut Vec<NodeId>, input: ValueId) {
        if let Some(cast) = self.graph.producer(input)
            && self.graph.nodes[cast].is(Op::Cast)
            && self.may_join(cast, nodes[0])
            && self.read_by(cast, nodes)
            && self.fits(nodes, cast)
        {
            nodes.insert(0, cast);
        }
    }

    /// Adds `Mul` and `Add` by constants after a normalization, and casts between them.
    fn add_scale_and_shift(&self, nodes: &mut Vec<NodeId>) {
        let mut steps = [Op::Mul, Op::Add].iter();
        let mut last = nodes[nodes.len() - 1];
        while let Some(result) = self.graph.output(last) {
            let value = &self.graph.values[result];
            let (&[next], false) = (&value.readers[..], value.escapes) else { return };
            let op = self.graph.nodes[next].op;
            if !self.may_join(next, last)
                || !self.graph.output(next).is_some_and(|after| self.graph.same_shape(after, result))
                || self.graph.data(next).count() != 1
                || !self.fits(nodes, next)
                || op != Some(Op::Cast) && !steps.any(|&step| Some(step) == op)
            {
                return;
            }
            nodes.push(next);
            last = next;
        }
    }
}
