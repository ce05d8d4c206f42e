//! Change that makes a problem feasible.

use crate::model::options::Options;
use crate::model::problem::Problem;
use crate::model::problem::{abbreviated, list};
use crate::model::units::{Bytes, human_bytes};

/// Change of a problem or of its options.
#[derive(Clone, Debug, PartialEq)]
pub enum Remedy {
    /// Removes the pins of these nodes.
    Unpinned(Vec<usize>),
    /// Removes these lists of `colocate`.
    Apart(Vec<usize>),
    /// Adds links between these pairs of devices.
    Linked(Vec<(usize, usize)>),
    /// Sets the memory of one device.
    Memory(usize, Bytes),
    /// Sets a minimum memory for every device.
    MemoryOfEach(Bytes),
    /// Adds a batch size to one device.
    BatchSize(usize, u32),
    /// Sets the number of queued inputs.
    Inputs(u32),
    /// Sets the maximum number of stages of a pipeline.
    Stages(u32),
    /// Allows several stages of a pipeline on one device.
    SharedDevices,
    /// Several changes, all of which are needed.
    All(Vec<Remedy>),
}

impl Remedy {
    /// Applies the change to a problem and its options.
    pub fn apply(&self, problem: &mut Problem, options: &mut Options) {
        match self {
            Self::Unpinned(nodes) => nodes.iter().for_each(|node| problem.nodes[*node].pin = None),
            Self::Apart(lists) => {
                let mut index = 0;
                problem.colocate.iter_mut().for_each(|all| {
                    all.retain(|_| {
                        index += 1;
                        !lists.contains(&(index - 1))
                    });
                });
            }
            Self::Linked(links) => links.iter().for_each(|(from, to)| problem.bandwidth[*from][*to] = None),
            Self::Memory(device, bytes) => problem.devices[*device].memory = Some(*bytes),
            Self::MemoryOfEach(bytes) => {
                let limits = problem.devices.iter_mut().filter_map(|device| device.memory.as_mut());
                limits.for_each(|memory| *memory = memory.max(*bytes));
            }
            Self::BatchSize(device, size) => problem.devices[*device].batch_sizes.push(*size),
            Self::Inputs(inputs) => {
                problem.inputs = *inputs;
                options.inputs = None;
            }
            Self::Stages(stages) => options.stages = Some(*stages),
            Self::SharedDevices => options.shared_devices = true,
            Self::All(all) => all.iter().for_each(|remedy| remedy.apply(problem, options)),
        }
    }

    /// Returns the text that follows `there is a plan`.
    pub(super) fn words(&self, problem: &Problem) -> String {
        let device = |device: usize| problem.devices[device].name.as_str();
        match self {
            Self::Unpinned(nodes) => {
                let is_pinned = |node: &usize| problem.nodes[*node].pin.is_some();
                let pinned: Vec<usize> = (0..problem.nodes.len()).filter(is_pinned).collect();
                let what = if nodes.len() == 1 { "pin" } else { "pins" };
                format!("without the {what} of {}", abbreviated(problem, nodes, &pinned))
            }
            Self::Apart(lists) => {
                let all = problem.colocate.iter().flatten().enumerate();
                let lost = all.filter(|(index, _)| lists.contains(index));
                let names: Vec<String> = lost.map(|(_, nodes)| abbreviated(problem, nodes, nodes)).collect();
                format!("if {} need not share a device", list(&names, "; nor "))
            }
            Self::Linked(links) => {
                let links: Vec<String> =
                    links.iter().map(|(from, to)| format!("from {} to {}", device(*from), device(*to))).collect();
                format!("with {} {}", if links.len() == 1 { "a link" } else { "links" }, list(&links, " and "))
            }
            Self::Memory(of, bytes) => {
                let more = *bytes - problem.devices[*of].memory.unwrap_or(*bytes);
                format!("with {} on {}, {} more", human_bytes(*bytes), device(*of), human_bytes(more))
            }
            Self::MemoryOfEach(bytes) => format!("with at least {} on each device", human_bytes(*bytes)),
            Self::BatchSize(of, size) => format!("if {} takes batches of {size}", device(*of)),
            Self::Inputs(1) => "with 1 input".to_owned(),
            Self::Inputs(inputs) => format!("with {inputs} inputs"),
            Self::Stages(stages) => format!("with {stages} stages"),
            Self::SharedDevices => "with shared devices (--allow-shared-devices)".to_owned(),
            Self::All(all) => {
                let all: Vec<String> = all.iter().map(|remedy| remedy.words(problem)).collect();
                list(&all, " and ")
            }
        }
    }
}
