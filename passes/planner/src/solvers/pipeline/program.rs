//! Integer program of pipelines (MTPP, Figure 3), and its relaxations with other shapes.
//!
//! Blocks are numbered topologically. `y[v][b]` is one if task v is in block b or before; the paper's x is the
//! difference of two of them. A value comes from the same block or an earlier one, so (9) and (10) are tighter here: if
//! one end of an edge is in a block and the other is not, the tensor crosses.

use super::model::Model;
use super::reach::Reach;
use crate::mip::{Column, Program};
use crate::model::options::PipelineCost;
use crate::model::units::{Bytes, Micros};

/// Cap of coefficients, in units of the incumbent's value: larger ones exceed every useful cost and harm numerics.
const TOO_LONG: f64 = 2.0;

/// Shape of a program's blocks.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    /// Number of consecutive stages that each block represents; `None` if its cost is not limited.
    pub(super) stages: Vec<Option<f64>>,
    /// A block with a minimum amount of work.
    pub(super) heavy: Option<(usize, Micros)>,
}

impl Shape {
    /// Each block is a stage: the problem itself.
    pub(super) fn exact(k: usize) -> Self {
        Self { stages: vec![Some(1.0); k], heavy: None }
    }

    /// Section 3.2: a stage with its share of the work, everything before it, everything behind it.
    pub(super) fn bottleneck(work: Micros) -> Self {
        Self { stages: vec![None, Some(1.0), None], heavy: Some((1, work)) }
    }

    /// Section 3.3: the same with a given number of stages before it.
    pub(super) fn guess(work: Micros, before: usize, k: usize) -> Self {
        let behind = k - 1 - before;
        Self { stages: vec![Some(before as f64), Some(1.0), Some(behind as f64)], heavy: Some((1, work)) }
    }
}

/// The program and its variables.
pub(super) struct Formulation<'a> {
    model: &'a Model,
    pub(super) program: Program,
    /// By task and block from -1 (fixed to zero) to the last (fixed to one): one if the task is in the block or before.
    placed: Vec<Vec<Column>>,
    bottleneck: Column,
    scale: Micros,
    /// Block, tensor, and a variable that is one if the tensor enters or leaves the block.
    crosses: Vec<(usize, usize, Column)>,
    /// Block, variable of its live bytes, variable of its overflow.
    holds: Vec<(usize, Column, Column)>,
}

impl<'a> Formulation<'a> {
    /// Builds the program. The bottleneck is in units of `scale`, between `least` and `most`.
    pub(super) fn new(model: &'a Model, shape: &Shape, scale: Micros, least: Micros, most: Micros) -> Self {
        let mut program = Program::default();
        let bottleneck = program.column(least / scale, most / scale, 1.0);
        let placed = placed(model, shape, most, &mut program);
        let mut made = Self { model, program, placed, bottleneck, scale, crosses: Vec::new(), holds: Vec::new() };
        let blocks = shape.stages.len();
        for task in 0..model.tasks() {
            for block in 1..blocks - 1 {
                made.program.at_least(0.0, [(made.placed[task][block + 1], 1.0), (made.placed[task][block], -1.0)]);
            }
            for &before in &model.before[task] {
                for block in 1..blocks {
                    let (before, task) = (made.placed[before as usize][block], made.placed[task][block]);
                    made.program.at_least(0.0, [(before, 1.0), (task, -1.0)]);
                }
            }
        }
        for (block, stages) in shape.stages.iter().enumerate() {
            if let Some(stages) = stages {
                made.cost(block, *stages);
            }
        }
        if let Some((block, work)) = shape.heavy {
            let all: Vec<(Column, f64)> =
                (0..model.tasks()).flat_map(|task| made.inside(task, block, model.work[task] / scale)).collect();
            made.program.at_least(work / scale * (1.0 - 1e-9), all);
        }
        made
    }

    /// Returns the terms of a task being in a block, times a factor.
    fn inside(&self, task: usize, block: usize, factor: f64) -> [(Column, f64); 2] {
        [(self.placed[task][block + 1], factor), (self.placed[task][block], -factor)]
    }

    /// Limits the cost of a block to that of its stages.
    fn cost(&mut self, block: usize, stages: f64) {
        let (model, scale) = (self.model, self.scale);
        let mut work: Vec<(Column, f64)> =
            (0..model.tasks()).flat_map(|task| self.inside(task, block, model.work[task] / scale)).collect();
        // Several stages have several memories.
        work.extend((stages == 1.0).then(|| self.overflow(block)).flatten().map(|overflow| (overflow, 1.0)));
        let mut moved: Vec<(Column, f64)> = Vec::new();
        for (index, tensor) in model.tensors.iter().enumerate().filter(|(_, tensor)| tensor.time > Micros::ZERO) {
            let crosses = self.program.column(0.0, 1.0, 0.0);
            let [make, unmake] = self.inside(tensor.producer as usize, block, 1.0);
            for &reader in &tensor.readers {
                let [read, unread] = self.inside(reader as usize, block, 1.0);
                let negative = |(column, factor): (Column, f64)| (column, -factor);
                self.program.at_least(0.0, [(crosses, 1.0), make, unmake, negative(read), negative(unread)]);
                self.program.at_least(0.0, [(crosses, 1.0), negative(make), negative(unmake), read, unread]);
            }
            moved.push((crosses, (tensor.time / scale).min(TOO_LONG * stages.max(1.0))));
            self.crosses.push((block, index, crosses));
        }
        let most = [(self.bottleneck, -stages)];
        match model.cost {
            PipelineCost::Serial => self.program.at_most(0.0, work.into_iter().chain(moved).chain(most)),
            PipelineCost::Overlap => {
                self.program.at_most(0.0, work.into_iter().chain(most));
                self.program.at_most(0.0, moved.into_iter().chain(most));
            }
        }
    }

    /// Lower bound on a block's overflow (eq. 2) in units of the scale: its parameters, plus the maximum of live bytes
    /// over its tasks.
    fn overflow(&mut self, block: usize) -> Option<Column> {
        let model = self.model;
        let memory = model.memory.as_ref()?;
        let unit = memory.bandwidth * self.scale;
        let (alive, overflow) =
            (self.program.column(0.0, f64::INFINITY, 0.0), self.program.column(0.0, f64::INFINITY, 0.0));
        for task in 0..model.tasks() {
            let [inside, not] = self.inside(task, block, -memory.alive(model, task) / unit);
            self.program.at_least(0.0, [(alive, 1.0), inside, not]);
        }
        let weights = (0..model.tasks()).flat_map(|task| self.inside(task, block, -memory.weight[task] / unit));
        let terms: Vec<(Column, f64)> = weights.chain([(overflow, 1.0), (alive, -1.0)]).collect();
        self.program.at_least(-memory.capacity / unit, terms);
        self.holds.push((block, alive, overflow));
        Some(overflow)
    }

    /// Returns the solution for given blocks and their cost.
    pub(super) fn values(&self, blocks: &[u32], value: Micros) -> Vec<f64> {
        let mut values = vec![0.0; self.program.columns()];
        self.bottleneck.set(&mut values, value / self.scale);
        for (placed, block) in self.placed.iter().zip(blocks) {
            placed[*block as usize + 1..].iter().for_each(|column| column.set(&mut values, 1.0));
        }
        for (block, tensor, column) in &self.crosses {
            let tensor = &self.model.tensors[*tensor];
            let is_inside = |task: u32| blocks[task as usize] as usize == *block;
            let made = is_inside(tensor.producer);
            if tensor.readers.iter().any(|reader| is_inside(*reader) != made) {
                column.set(&mut values, 1.0);
            }
        }
        for (block, alive, overflow) in &self.holds {
            let Some(memory) = &self.model.memory else { continue };
            let inside: Vec<usize> = (0..self.model.tasks()).filter(|task| blocks[*task] as usize == *block).collect();
            let most = inside.iter().map(|task| memory.alive(self.model, *task)).fold(Bytes::ZERO, Bytes::max);
            let held = inside.iter().map(|task| memory.weight[*task]).sum::<Bytes>() + most;
            let unit = memory.bandwidth * self.scale;
            alive.set(&mut values, most / unit);
            overflow.set(&mut values, (held - memory.capacity).max(Bytes::ZERO) / unit);
        }
        values
    }

    /// Returns each task's block in a solution.
    pub(super) fn blocks(&self, values: &[f64]) -> Vec<u32> {
        let block = |placed: &Vec<Column>| placed.iter().filter(|column| column.of(values) < 0.5).count() as u32 - 1;
        self.placed.iter().map(block).collect()
    }
}

/// Returns the variables of places, fixed where the work of a task's ancestors or descendants exceeds the blocks on
/// that side.
fn placed(model: &Model, shape: &Shape, most: Micros, program: &mut Program) -> Vec<Vec<Column>> {
    let (never, always) = (program.column(0.0, 0.0, 0.0), program.column(1.0, 1.0, 0.0));
    let blocks = shape.stages.len();
    let room = |stages: &[Option<f64>]| -> Micros {
        stages.iter().map(|stages| stages.map_or(Micros::INFINITY, |stages| stages * most)).sum::<Micros>()
            * (1.0 + 1e-9)
    };
    let reach = Reach::new(model);
    let column = |program: &mut Program, task: usize, block: usize| {
        if reach.before[task] > room(&shape.stages[..=block]) {
            never
        } else if reach.behind[task] > room(&shape.stages[block + 1..]) {
            always
        } else {
            program.binary()
        }
    };
    let mut all = Vec::with_capacity(model.tasks());
    for task in 0..model.tasks() {
        let inner: Vec<Column> = (0..blocks - 1).map(|block| column(program, task, block)).collect();
        all.push([never].into_iter().chain(inner).chain([always]).collect());
    }
    all
}
