//! The integer program of pipelines (MTPP, Figure 3), and with other shapes its relaxations.
//!
//! Blocks are numbered so that values only go up. `y[v][b]` says that task v is in block b or before it; which block it is
//! in (the paper's x) is a difference of two of them. A value comes from the same block or an earlier one, so what the paper
//! writes as (9) and (10) is tighter here: where one end of an edge is in a block and the other is not, the tensor crosses.

use super::model::Model;
use super::reach::Reach;
use crate::mip::{Column, Program};
use crate::model::options::PipelineCost;
use crate::model::units::Micros;

/// In parts of the best value, what cannot cross in anything better; solvers want no larger numbers.
const TOO_LONG: f64 = 2.0;

/// What the blocks are.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    /// How many stages each block stands for, one after the other; none where it may cost what it likes.
    pub(super) stages: Vec<Option<f64>>,
    /// A block that has at least so much work.
    pub(super) heavy: Option<(usize, Micros)>,
}

impl Shape {
    /// Each block is a stage: the problem itself.
    pub(super) fn exact(k: usize) -> Self {
        Self { stages: vec![Some(1.0); k], heavy: None }
    }

    /// Section 3.2: a stage that has its share of the work, all before it, all behind it.
    pub(super) fn bottleneck(work: Micros) -> Self {
        Self { stages: vec![None, Some(1.0), None], heavy: Some((1, work)) }
    }

    /// Section 3.3: the same, where it is known how many are before it.
    pub(super) fn guess(work: Micros, before: usize, k: usize) -> Self {
        let behind = k - 1 - before;
        Self { stages: vec![Some(before as f64), Some(1.0), Some(behind as f64)], heavy: Some((1, work)) }
    }
}

/// The program, and what its columns mean.
pub(super) struct Formulation<'a> {
    model: &'a Model,
    pub(super) program: Program,
    /// For each task whether it is in block b or before, from b = -1, when it is not, to the last, when it is.
    placed: Vec<Vec<Column>>,
    bottleneck: Column,
    scale: Micros,
    /// Whether a tensor goes into a block or out of it: the block, the tensor, the column.
    crosses: Vec<(usize, usize, Column)>,
    /// What is alive in a block, and what of it overflows.
    holds: Vec<(usize, Column, Column)>,
}

impl<'a> Formulation<'a> {
    /// The bottleneck is counted in parts of `scale`, and is between two values.
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

    /// That a task is in a block, times a factor.
    fn inside(&self, task: usize, block: usize, factor: f64) -> [(Column, f64); 2] {
        [(self.placed[task][block + 1], factor), (self.placed[task][block], -factor)]
    }

    /// What a block costs is no more than its stages may.
    fn cost(&mut self, block: usize, stages: f64) {
        let (model, scale) = (self.model, self.scale);
        let mut work: Vec<(Column, f64)> =
            (0..model.tasks()).flat_map(|task| self.inside(task, block, model.work[task] / scale)).collect();
        // Several stages have several memories.
        work.extend((stages == 1.0).then(|| self.overflow(block)).flatten().map(|overflow| (overflow, 1.0)));
        let mut moved: Vec<(Column, f64)> = Vec::new();
        for (index, tensor) in model.tensors.iter().enumerate().filter(|(_, tensor)| tensor.time > 0.0) {
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

    /// At least what overflows a block's memory (eq. 2), as a part of the scale: its parameters, and what is alive while any
    /// one of its tasks runs.
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

    /// The solution that puts each task into its block, and costs so much.
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
            let most = inside.iter().map(|task| memory.alive(self.model, *task)).fold(0.0, f64::max);
            let held = inside.iter().map(|task| memory.weight[*task]).sum::<f64>() + most;
            let unit = memory.bandwidth * self.scale;
            alive.set(&mut values, most / unit);
            overflow.set(&mut values, (held - memory.capacity).max(0.0) / unit);
        }
        values
    }

    /// Each task's block in a solution.
    pub(super) fn blocks(&self, values: &[f64]) -> Vec<u32> {
        let block = |placed: &Vec<Column>| placed.iter().filter(|column| column.of(values) < 0.5).count() as u32 - 1;
        self.placed.iter().map(block).collect()
    }
}

/// The columns of places, fixed where a task's ancestors or descendants are too much work for the blocks on that side.
fn placed(model: &Model, shape: &Shape, most: Micros, program: &mut Program) -> Vec<Vec<Column>> {
    let (never, always) = (program.column(0.0, 0.0, 0.0), program.column(1.0, 1.0, 0.0));
    let blocks = shape.stages.len();
    let room = |stages: &[Option<f64>]| -> Micros {
        stages.iter().map(|stages| stages.map_or(f64::INFINITY, |stages| stages * most)).sum::<Micros>() * (1.0 + 1e-9)
    };
    let reach = Reach::new(model);
    let column = |program: &mut Program, task: usize, block: usize| {
        if reach.before[task] > room(&shape.stages[..=block]) {
            never
        } else if reach.behind[task] > room(&shape.stages[block + 1..]) {
            always
        } else {
            program.choice()
        }
    };
    let mut all = Vec::with_capacity(model.tasks());
    for task in 0..model.tasks() {
        let inner: Vec<Column> = (0..blocks - 1).map(|block| column(program, task, block)).collect();
        all.push([never].into_iter().chain(inner).chain([always]).collect());
    }
    all
}
