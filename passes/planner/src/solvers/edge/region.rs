//! The acceleration region: from which speed of links on it can help to partition a model, and from which on it helps no more.
//!
//! All that counts is the ratio of link speed to machine speed: twice as fast links and machines halve every period. Where
//! machines or links differ, the ratio is that of the fastest ones, and all links get faster together.

use super::bounds;
use super::model::Model;
use super::solve;
use crate::model::error::Error;
use crate::model::options::Options;
use crate::model::plan::{Limit, closes};
use crate::model::problem::Problem;
use crate::model::units::{Bytes, BytesPerMicro, Micros};

/// Nodes of the tree for each point, when nothing is said.
const NODES: u64 = 200_000;
/// The share by which a boundary that is looked for may be off.
const PRECISION: f64 = 1e-4;
/// More products of layers and split points are not added up one by one.
const MOST_SUMS: usize = 10_000_000;

/// What is known about a model on a network.
pub struct Region {
    model: Model,
    options: Options,
    /// The model's work, in operations.
    pub work: f64,
    /// The smallest value that an edge moves: nothing smaller can cross.
    pub smallest: Option<Bytes>,
    /// What the fastest machine does in a microsecond, and the fastest link moves; infinite if it takes no time.
    pub rate: f64,
    pub link: BytesPerMicro,
    /// Whether every layer has to do with every other: if not, parts of the model can be apart without any link.
    pub hangs_together: bool,
    /// Everything on the best single machine; none where no machine may run everything.
    pub single: Option<Micros>,
    /// The least that the first transfer takes.
    pub crossing: Micros,
}

/// Ratios of link speed to machine speed at which something changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Boundaries {
    /// Eq. (10): up to here the smallest transfer takes longer than one machine takes for everything.
    pub improvement: f64,
    /// From here on, faster links do not help any more.
    pub optimal: f64,
    /// From here on, links rule out nothing that algorithm 1 goes on from, which has fewer split points than there may
    /// be: its tree is as large as it gets. It may be below the second boundary, where the best placement needs all split
    /// points.
    pub complexity: f64,
    /// Whether every period that this comes from is proven optimal.
    pub proven: bool,
}

/// What a ratio means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Zone {
    /// One machine is the best.
    Alone,
    /// Partitioning may help, and faster links would help more.
    Improving,
    /// Faster links help no more, but leave more to search.
    Best,
    /// Faster links change nothing any more.
    Free,
}

/// The best placement with links and machines at a certain ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub period: Micros,
    pub bound: Micros,
    /// Nodes of the tree that were looked at.
    pub explored: u64,
}

impl Point {
    /// Whether nothing better is possible.
    pub fn is_proven(&self) -> bool {
        closes(self.bound, self.period)
    }
}

impl Region {
    /// Of a problem with an edge view. The options' limit is for each point that is solved.
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
        let fastest = |(from, to): (usize, usize)| view.bandwidth[from][to].unwrap_or(f64::INFINITY);
        Ok(Self {
            options: Options { limit, ..options.clone() },
            work: view.flops.iter().sum(),
            smallest: view.edge_bytes.iter().copied().min_by(f64::total_cmp),
            rate: view.rate.iter().copied().fold(0.0, f64::max),
            link: model.ways().map(fastest).fold(0.0, f64::max),
            hangs_together: bounds::hangs_together(&model),
            single: bounds::single(&model).map(|(period, _)| period),
            crossing: bounds::crossing(&model),
            model,
        })
    }

    pub fn machines(&self) -> usize {
        self.model.machines
    }

    /// How often the machine may change; none where that is not limited.
    pub fn splits(&self) -> Option<usize> {
        (self.model.splits < self.model.layers()).then_some(self.model.splits)
    }

    /// Whether there is another machine, and the model may go there.
    pub fn can_split(&self) -> bool {
        self.model.machines > 1 && self.model.splits > 0
    }

    /// Of link speed to machine speed, in bytes an operation.
    pub fn ratio(&self) -> f64 {
        self.link / self.rate
    }

    /// Eq. (10) and (11): whether a placement on several machines may be faster than one machine. Necessary, not sufficient.
    pub fn may_help(&self) -> bool {
        self.can_split() && self.single.is_none_or(|single| self.crossing < single)
    }

    /// The speed that the fastest link has to exceed before partitioning may help; none where there is no machine that runs
    /// everything, or no link is needed.
    pub fn needed_link(&self) -> Option<BytesPerMicro> {
        let (single, smallest) = (self.single?, self.smallest.filter(|_| self.hangs_together)?);
        (single > 0.0).then_some(smallest / single)
    }

    /// Eq. (9) as the paper has it: for equal machines and links, fewer split points than this are said to be enough. They are
    /// not always.
    pub fn paper_splits(&self) -> Option<f64> {
        let smallest = self.smallest.filter(|smallest| *smallest > 0.0)?;
        Some(self.link * self.work / (smallest * self.rate))
    }

    /// How many split points a placement that beats a single machine can have: eq. (9), put right.
    pub fn enough_splits(&self) -> usize {
        bounds::splits(&self.model, self.single.unwrap_or(f64::INFINITY))
    }

    /// The best placement as things are.
    pub fn now(&self) -> Result<Point, Error> {
        self.solve(&self.model)
    }

    /// The best placement at a ratio of link speed to machine speed, with machines as they are. The network's own ratio is
    /// finite and not zero.
    pub fn at(&self, ratio: f64) -> Result<Point, Error> {
        self.solve(&self.model.with_links(ratio / self.ratio()))
    }

    /// None where links do not matter: there is one machine, no split point, no link, or one that takes no time, or nothing to
    /// move.
    pub fn boundaries(&self) -> Result<Option<Boundaries>, Error> {
        let matters = self.can_split() && self.ratio().is_finite() && self.ratio() > 0.0;
        if !matters || self.smallest.is_none() || self.work <= 0.0 {
            return Ok(None);
        }
        let free = self.solve(&self.model.with_links(f64::INFINITY))?;
        let improvement = self.needed_link().map_or(0.0, |needed| needed / self.rate);
        // The slowest link is the first to hold anything up.
        let links = self.model.ways().map(|(from, to)| self.model.way(from, to).0).filter(|way| *way > 0.0);
        let slowest = links.fold(f64::INFINITY, f64::min);
        let is_free = |moved: Bytes| moved / slowest / free.period * self.ratio();
        let complexity = is_free(self.most_moved(self.model.splits.saturating_sub(1).max(1)));
        let highest = is_free(self.most_moved(self.model.splits));
        let (mut low, mut high) = (improvement.min(highest), highest);
        let mut proven = free.is_proven();
        // With links that never matter, nothing is better without them; a little slower, and it may still be so.
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

    /// What any one link can have to move, at the most, with so many split points.
    ///
    /// Whatever goes from one machine to another crosses a place in the layers' order where the first one's run ends; there are
    /// no more such places than every other split point, and another split point is between two of them.
    fn most_moved(&self, splits: usize) -> Bytes {
        let layers = self.model.layers();
        let mut crossing = vec![0.0; layers + 1];
        for (layer, read) in
            self.model.reads.iter().enumerate().flat_map(|(layer, all)| all.iter().map(move |r| (layer, r)))
        {
            crossing[read.with as usize + 1] += read.bytes;
            crossing[layer + 1] -= read.bytes;
        }
        for place in 1..=layers {
            crossing[place] += crossing[place - 1];
        }
        let all: Bytes = self.model.reads.iter().flatten().map(|read| read.bytes).sum();
        let times = splits.min(layers).div_ceil(2);
        if times.saturating_mul(layers) > MOST_SUMS {
            return all;
        }
        // By number of places so far: the most with the place before this one left out, and with it taken or not.
        let (mut apart, mut most) = (vec![0.0_f64; times + 1], vec![0.0_f64; times + 1]);
        for crossing in &crossing[1..layers] {
            let before = most.clone();
            for count in 1..=times {
                most[count] = most[count].max(apart[count - 1] + crossing);
            }
            apart = before;
        }
        most.last().copied().unwrap_or(0.0).min(all)
    }

    fn solve(&self, model: &Model) -> Result<Point, Error> {
        let (best, explored) = solve(model, &self.options)?;
        Ok(Point { period: best.value(), bound: best.bound().value, explored })
    }
}

impl Boundaries {
    pub fn zone(&self, ratio: f64) -> Zone {
        match ratio {
            ratio if ratio <= self.improvement => Zone::Alone,
            ratio if ratio < self.optimal => Zone::Improving,
            ratio if ratio < self.complexity => Zone::Best,
            _ => Zone::Free,
        }
    }
}
