//! The acceleration region: the range of link speeds in which partitioning a model can help, and in which faster links
//! help further.
//!
//! Only the ratio of link speed to machine speed matters: doubling both halves every period. Where machines or links
//! differ, the ratio is that of the fastest ones, and all links scale together.

use super::bounds;
use super::model::Model;
use super::solve;
use crate::model::error::Error;
use crate::model::options::Options;
use crate::model::plan::{Limit, closes};
use crate::model::problem::Problem;
use crate::model::units::{Bytes, BytesPerMicro, Micros};

/// Default limit of search nodes for each point.
const NODES: u64 = 200_000;
/// Relative precision of a boundary found by bisection.
const PRECISION: f64 = 1e-4;
/// Limit of the dynamic program in [`Region::most_moved`], in layers times split points.
const MOST_SUMS: usize = 10_000_000;

/// Acceleration region of a model on a network.
pub struct Region {
    model: Model,
    options: Options,
    /// The model's work, in operations.
    pub work: f64,
    /// Smallest value on an edge: a lower bound on every transfer.
    pub smallest: Option<Bytes>,
    /// Operations per microsecond of the fastest machine.
    pub rate: f64,
    /// Bytes per microsecond of the fastest link; infinite if a transfer takes no time.
    pub link: BytesPerMicro,
    /// True if the graph is connected; if not, components can be on different machines without any link.
    pub hangs_together: bool,
    /// Period of the best single machine; `None` if no machine may run everything.
    pub single: Option<Micros>,
    /// Lower bound on the duration of the first transfer.
    pub crossing: Micros,
}

/// Ratios of link speed to machine speed at which the regime changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Boundaries {
    /// Eq. (10): up to this ratio the smallest transfer takes longer than everything on one machine.
    pub improvement: f64,
    /// From this ratio on, faster links no longer reduce the period.
    pub optimal: f64,
    /// From this ratio on, links prune nothing in the tree of algorithm 1, which has fewer split points than are
    /// allowed: its size is at its maximum. It may be below the second boundary, if the best placement needs all split
    /// points.
    pub complexity: f64,
    /// True if every period that the boundaries depend on is proven optimal.
    pub proven: bool,
}

/// Regime of a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Zone {
    /// A single machine is optimal.
    Alone,
    /// Partitioning may help, and faster links would help more.
    Improving,
    /// Faster links no longer reduce the period, but enlarge the search tree.
    Best,
    /// Faster links change nothing.
    Free,
}

/// Best placement at one ratio of link speed to machine speed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Period of the best placement found.
    pub period: Micros,
    /// Lower bound on the period.
    pub bound: Micros,
    /// Explored search nodes.
    pub explored: u64,
}

impl Point {
    /// Returns true if the period is proven optimal.
    pub fn is_proven(&self) -> bool {
        closes(self.bound, self.period)
    }
}

impl Region {
    /// Analyzes a problem with an edge network. The options' limit applies to each point that is solved.
    pub fn new(problem: &Problem, options: &Options) -> Result<Self, Error> {
        problem.check_form()?;
        let Some(view) = &problem.edge else {
            let message = "the problem has no edge network (edge): there are no machines and links to look at";
            return Err(Error::Unsupported(message.to_owned()));
        };
        if problem.nodes.is_empty() {
            return Err(Error::Unsupported("the problem has no tasks: there is nothing to partition".to_owned()));
        }
        let model = Model::of_view(problem, view, options.splits)?;
        let limit = options.limit.or(Some(Limit::Iterations(NODES)));
        let fastest = |(from, to): (usize, usize)| view.bandwidth[from][to].unwrap_or(BytesPerMicro::INFINITY);
        Ok(Self {
            options: Options { limit, ..options.clone() },
            work: view.flops.iter().sum(),
            smallest: view.edge_bytes.iter().copied().min_by(Bytes::total_cmp),
            rate: view.rate.iter().copied().fold(0.0, f64::max),
            link: model.links().map(fastest).fold(BytesPerMicro::ZERO, BytesPerMicro::max),
            hangs_together: bounds::is_connected(&model),
            single: bounds::single(&model).map(|(period, _)| period),
            crossing: bounds::crossing(&model),
            model,
        })
    }

    /// Returns the number of machines.
    pub fn machines(&self) -> usize {
        self.model.machines
    }

    /// Returns the maximum number of split points; `None` if unlimited.
    pub fn splits(&self) -> Option<usize> {
        (self.model.splits < self.model.layers()).then_some(self.model.splits)
    }

    /// Returns true if there is another machine and a split point is allowed.
    pub fn can_split(&self) -> bool {
        self.model.machines > 1 && self.model.splits > 0
    }

    /// Returns the ratio of link speed to machine speed in bytes per operation.
    pub fn ratio(&self) -> f64 {
        self.link.0 / self.rate
    }

    /// Eqs. (10) and (11): returns true if several machines may be faster than one. Necessary, not sufficient.
    pub fn may_help(&self) -> bool {
        self.can_split() && self.single.is_none_or(|single| self.crossing < single)
    }

    /// Returns the speed that the fastest link must exceed before partitioning may help; `None` if no machine runs
    /// everything, or no link is needed.
    pub fn needed_link(&self) -> Option<BytesPerMicro> {
        let (single, smallest) = (self.single?, self.smallest.filter(|_| self.hangs_together)?);
        (single > Micros::ZERO).then_some(BytesPerMicro(smallest.0 / single.0))
    }

    /// Eq. (9) as printed: for equal machines and links, fewer split points than this are claimed to suffice, which is
    /// not always true.
    pub fn paper_splits(&self) -> Option<f64> {
        let smallest = self.smallest.filter(|smallest| *smallest > Bytes::ZERO)?;
        Some(self.link.0 * self.work / (smallest.0 * self.rate))
    }

    /// Returns the maximum number of split points of a placement that beats a single machine: eq. (9), corrected.
    pub fn enough_splits(&self) -> usize {
        bounds::splits(&self.model, self.single.unwrap_or(Micros::INFINITY))
    }

    /// Returns the best placement at the network's own ratio.
    pub fn now(&self) -> Result<Point, Error> {
        self.solve(&self.model)
    }

    /// Returns the best placement at a given ratio of link speed to machine speed, with the machines unchanged. The
    /// network's own ratio must be finite and positive.
    pub fn at(&self, ratio: f64) -> Result<Point, Error> {
        self.solve(&self.model.with_links(ratio / self.ratio()))
    }

    /// Computes the boundaries; `None` if links do not matter: one machine, no split point, no link, infinitely fast
    /// links, or nothing to move.
    pub fn boundaries(&self) -> Result<Option<Boundaries>, Error> {
        let matters = self.can_split() && self.ratio().is_finite() && self.ratio() > 0.0;
        if !matters || self.smallest.is_none() || self.work <= 0.0 {
            return Ok(None);
        }
        let free = self.solve(&self.model.with_links(f64::INFINITY))?;
        let improvement = self.needed_link().map_or(0.0, |needed| needed.0 / self.rate);
        // The slowest link is the first bottleneck.
        let links =
            self.model.links().map(|(from, to)| self.model.link(from, to).0).filter(|link| *link > BytesPerMicro::ZERO);
        let slowest = links.fold(BytesPerMicro::INFINITY, BytesPerMicro::min);
        let is_free = |moved: Bytes| moved / slowest / free.period * self.ratio();
        let complexity = is_free(self.most_moved(self.model.splits.saturating_sub(1).max(1)));
        let highest = is_free(self.most_moved(self.model.splits));
        let (mut low, mut high) = (improvement.min(highest), highest);
        let mut proven = free.is_proven();
        // At `highest` the links are never the bottleneck; bisection finds the smallest ratio with the same period.
        while high > low * (1.0 + PRECISION) && high > highest * f64::EPSILON {
            let middle = if low > 0.0 { (low * high).sqrt() } else { high / 2.0 };
            let point = self.at(middle)?;
            proven &= point.is_proven();
            if closes(free.period, point.period) {
                high = middle;
            } else {
                low = middle;
            }
        }
        Ok(Some(Boundaries { improvement, optimal: high, complexity, proven }))
    }

    /// Returns an upper bound on the bytes that any one link moves with `splits` split points.
    ///
    /// A transfer from one machine to another crosses a position in the order where a run of the first machine ends.
    /// There are at most half as many such positions as split points, rounded up, with another split point between any
    /// two of them.
    fn most_moved(&self, splits: usize) -> Bytes {
        let layers = self.model.layers();
        let mut crossing = vec![Bytes::ZERO; layers + 1];
        for (layer, read) in
            self.model.reads.iter().enumerate().flat_map(|(layer, all)| all.iter().map(move |r| (layer, r)))
        {
            crossing[read.with as usize + 1] += read.bytes;
            crossing[layer + 1] -= read.bytes;
        }
        for place in 1..=layers {
            let before = crossing[place - 1];
            crossing[place] += before;
        }
        let all: Bytes = self.model.reads.iter().flatten().map(|read| read.bytes).sum();
        let times = splits.min(layers).div_ceil(2);
        if times.saturating_mul(layers) > MOST_SUMS {
            return all;
        }
        // By number of positions: the maximum without the previous position, and the maximum over both.
        let (mut apart, mut most) = (vec![Bytes::ZERO; times + 1], vec![Bytes::ZERO; times + 1]);
        for crossing in &crossing[1..layers] {
            let before = most.clone();
            for count in 1..=times {
                most[count] = most[count].max(apart[count - 1] + *crossing);
            }
            apart = before;
        }
        most.last().copied().unwrap_or_default().min(all)
    }

    fn solve(&self, model: &Model) -> Result<Point, Error> {
        let (best, explored) = solve(model, &self.options)?;
        Ok(Point { period: best.value(), bound: best.bound().value, explored })
    }
}

impl Boundaries {
    /// Returns the regime of a ratio.
    pub fn zone(&self, ratio: f64) -> Zone {
        match ratio {
            ratio if ratio <= self.improvement => Zone::Alone,
            ratio if ratio < self.optimal => Zone::Improving,
            ratio if ratio < self.complexity => Zone::Best,
            _ => Zone::Free,
        }
    }
}
