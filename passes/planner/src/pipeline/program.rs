//! The integer program of pipelines (MTPP, Figure 3), and with other shapes its relaxations.
//!
//! Blocks are numbered so that values only go up. `y[v][b]` says that task v is in block b or before it; which block it is
//! in (the paper's x) is a difference of two of them. A value comes from the same block or an earlier one, so what the paper
//! writes as (9) and (10) is tighter here: where one end of an edge is in a block and the other is not, the tensor crosses.

use super::model::Model;
use super::reach::Reach;
use crate::mip::{Column, Program};
use crate::pipeline::PipelineCost;
use crate::units::Micros;

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
}

impl<'a> Formulation<'a> {
    /// The bottleneck is counted in parts of `scale`, and is between two values.
    pub(super) fn new(model: &'a Model, shape: &Shape, scale: Micros, least: Micros, most: Micros) -> Self {
        let mut program = Program::default();
        let bottleneck = program.column(least / scale, most / scale, 1.0);
        let placed = placed(model, shape, most, &mut program);
        let mut made = Self { model, program, placed };
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
                made.cost(block, bottleneck, *stages, scale);
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
    fn cost(&mut self, block: usize, bottleneck: Column, stages: f64, scale: Micros) {
        let model = self.model;
        let work: Vec<(Column, f64)> =
            (0..model.tasks()).flat_map(|task| self.inside(task, block, model.work[task] / scale)).collect();
        let mut moved: Vec<(Column, f64)> = Vec::new();
        for tensor in model.tensors.iter().filter(|tensor| tensor.time > 0.0) {
            let crosses = self.program.column(0.0, 1.0, 0.0);
            let [make, unmake] = self.inside(tensor.producer as usize, block, 1.0);
            for &reader in &tensor.readers {
                let [read, unread] = self.inside(reader as usize, block, 1.0);
                let negative = |(column, factor): (Column, f64)| (column, -factor);
                self.program.at_least(0.0, [(crosses, 1.0), make, unmake, negative(read), negative(unread)]);
                self.program.at_least(0.0, [(crosses, 1.0), negative(make), negative(unmake), read, unread]);
            }
            moved.push((crosses, tensor.time / scale));
        }
        let most = [(bottleneck, -stages)];
        match model.cost {
            PipelineCost::Serial => self.program.at_most(0.0, work.into_iter().chain(moved).chain(most)),
            PipelineCost::Overlap => {
                self.program.at_most(0.0, work.into_iter().chain(most));
                self.program.at_most(0.0, moved.into_iter().chain(most));
            }
        }
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
