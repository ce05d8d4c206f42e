//! The paper's slicing as described: a table of the costs of all intervals of an order (Lemma 4.1) and the plain dynamic
//! program on it (Lemma 4.2). Baseline and reference for divi's slicing.

use std::collections::BinaryHeap;
use std::ops::Range;

use divi_planner::Problem;
use divi_planner::problem::{Pipeline, Tensor};
use divi_planner::random::Random;
use divi_planner::units::Micros;

/// A graph on homogeneous stages without a memory limit.
pub(super) struct Graph {
    work: Vec<Micros>,
    tensors: Vec<Tensor>,
    /// Time of each tensor to enter or leave a block.
    times: Vec<Micros>,
}

impl Graph {
    pub(super) fn new(problem: &Problem) -> Result<Self, String> {
        let Some(Pipeline { work, bandwidth, memory: None, .. }) = &problem.mtpp else {
            return Err(format!("{}: no pipeline view without a memory limit", problem.name));
        };
        let tensors = problem.all_tensors();
        let times = tensors.iter().map(|tensor| tensor.bytes / *bandwidth).collect();
        Ok(Self { work: work.clone(), tensors, times })
    }

    /// Kahn's algorithm with random priorities (Algorithm 3).
    pub(super) fn random_order(&self, random: &mut Random) -> Vec<usize> {
        let mut after = vec![Vec::new(); self.work.len()];
        let mut waits = vec![0; self.work.len()];
        for Tensor { from, to, .. } in &self.tensors {
            after[*from].extend(to);
            to.iter().for_each(|to| waits[*to] += 1);
        }
        let priority: Vec<u64> = (0..self.work.len()).map(|_| random.next_u64()).collect();
        let free = (0..self.work.len()).filter(|node| waits[*node] == 0);
        let mut ready: BinaryHeap<(u64, usize)> = free.map(|node| (priority[node], node)).collect();
        let mut order = Vec::with_capacity(self.work.len());
        while let Some((_, node)) = ready.pop() {
            order.push(node);
            for &next in &after[node] {
                waits[next] -= 1;
                if waits[next] == 0 {
                    ready.push((priority[next], next));
                }
            }
        }
        order
    }

    /// Returns the value of the best slicing of an order into at most k blocks.
    pub(super) fn slice(&self, order: &[usize], k: u32) -> Micros {
        let costs = self.costs(order);
        let mut best: Vec<Micros> = costs.iter().map(|by_start| by_start[0]).collect();
        for _ in 1..k {
            let with_one_more = |(end, by_start): (usize, &Vec<Micros>)| {
                let last = (1..=end).map(|start| best[start - 1].max(by_start[start]));
                last.fold(best[end], Micros::min)
            };
            best = costs.iter().enumerate().map(with_one_more).collect();
        }
        best.last().copied().unwrap_or_default()
    }

    /// Eq. (3) by end and start of a block, both inclusive; entries with start > end are meaningless.
    fn costs(&self, order: &[usize]) -> Vec<Vec<Micros>> {
        let count = order.len();
        let mut place = vec![0; count];
        order.iter().enumerate().for_each(|(position, node)| place[*node] = position);
        // Two-dimensional difference array: a rectangle takes four updates.
        let mut costs = vec![vec![Micros::ZERO; count + 1]; count + 1];
        let mut add = |starts: Range<usize>, ends: Range<usize>, time: Micros| {
            costs[ends.start][starts.start] += time;
            costs[ends.start][starts.end] -= time;
            costs[ends.end][starts.start] -= time;
            costs[ends.end][starts.end] += time;
        };
        for (tensor, &time) in self.tensors.iter().zip(&self.times) {
            let mut touched: Vec<usize> = tensor.to.iter().chain([&tensor.from]).map(|node| place[*node]).collect();
            touched.sort_unstable();
            let (first, last) = (touched[0], touched[touched.len() - 1]);
            // Every block pays, except those without a task at the tensor and those with all of them.
            add(0..count, 0..count, time);
            add(0..first, 0..first, -time);
            for pair in touched.windows(2).filter(|pair| pair[0] < pair[1]) {
                add(pair[0] + 1..pair[1], pair[0] + 1..pair[1], -time);
            }
            add(last + 1..count, last + 1..count, -time);
            add(0..first + 1, last..count, -time);
        }
        costs.pop();
        let mut before = vec![Micros::ZERO; count];
        for by_start in &mut costs {
            by_start.pop();
            let mut sum = Micros::ZERO;
            for (cost, before) in by_start.iter_mut().zip(&mut before) {
                sum += *cost;
                *before += sum;
                *cost = *before;
            }
        }
        for (end, by_start) in costs.iter_mut().enumerate() {
            let mut work = Micros::ZERO;
            for start in (0..=end).rev() {
                work += self.work[order[start]];
                by_start[start] += work;
            }
        }
        costs
    }
}

/// Renumbers the nodes of a problem by an order. The planner's first order follows node numbers, so slicing starts with this
/// order.
pub(super) fn renumbered(problem: &Problem, order: &[usize]) -> Problem {
    let mut number = vec![0; order.len()];
    order.iter().enumerate().for_each(|(position, node)| number[*node] = position);
    let mut renumbered = problem.clone();
    renumbered.nodes = order.iter().map(|node| problem.nodes[*node].clone()).collect();
    renumbered.nodes.iter_mut().enumerate().for_each(|(id, node)| node.id = id);
    for (from, to) in renumbered.edges.iter_mut().flatten() {
        (*from, *to) = (number[*from], number[*to]);
    }
    for tensor in renumbered.tensors.iter_mut().flatten() {
        tensor.from = number[tensor.from];
        tensor.to.iter_mut().for_each(|to| *to = number[*to]);
    }
    for node in renumbered.colocate.iter_mut().chain(&mut renumbered.modules).flatten().flatten() {
        *node = number[*node];
    }
    if let Some(view) = &mut renumbered.mtpp {
        view.work = order.iter().map(|node| view.work[*node]).collect();
    }
    renumbered
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::orders::first_order;
    use divi_papers::generate::{Kind, Regal, regal};
    use divi_planner::units::{Bytes, BytesPerMicro};

    #[test]
    fn costs_match_the_definition() {
        let (mut random, bandwidth) = (Random::new(1), BytesPerMicro(1.0));
        for kind in Kind::ALL {
            let graph = Graph::new(&regal(&Regal { kind, nodes: 20, seed: 3 }).unwrap()).unwrap();
            let order = graph.random_order(&mut random);
            let costs = graph.costs(&order);
            for end in 0..order.len() {
                for start in 0..=end {
                    let block = &order[start..=end];
                    let work: Micros = block.iter().map(|node| graph.work[*node]).sum();
                    let crosses = |tensor: &&Tensor| {
                        let inside = |node: &usize| block.contains(node);
                        let all = tensor.to.iter().chain([&tensor.from]);
                        all.clone().any(inside) && !all.clone().all(inside)
                    };
                    let io: Micros = graph.tensors.iter().filter(crosses).map(|tensor| tensor.bytes / bandwidth).sum();
                    assert_eq!(costs[end][start], work + io, "{start}..={end}");
                }
            }
        }
    }

    #[test]
    fn the_planner_slices_an_order_optimally() {
        let mut random = Random::new(2);
        for round in 0..200 {
            let kind = Kind::ALL[round % 4];
            let problem = regal(&Regal { kind, nodes: 1 + random.below(60), seed: round as u64 }).unwrap();
            let graph = Graph::new(&problem).unwrap();
            let order = graph.random_order(&mut random);
            let k = 1 + random.below(20) as u32;
            let plan = first_order(&renumbered(&problem, &order), k).unwrap();
            assert_eq!(graph.slice(&order, k), plan.value, "{}, k = {k}", problem.name);
        }
    }

    #[test]
    fn memory_limits_are_rejected() {
        let mut problem = regal(&Regal::default()).unwrap();
        problem.mtpp.as_mut().unwrap().memory = Some(Bytes(1.0));
        let message = "regal_ER_n100_s1: no pipeline view without a memory limit";
        assert_eq!(Graph::new(&problem).err().as_deref(), Some(message));
    }
}
