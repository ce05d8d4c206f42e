//! Brute force: every order of starts with every assignment of devices.

use crate::model::units::{Bytes, Micros};
use crate::solvers::exact::graph::Graph;

/// Returns the least makespan; infinite if there is no schedule.
pub(crate) fn optimum(graph: &Graph) -> Micros {
    let mut best = Micros::INFINITY;
    complete(graph, &mut Vec::new(), &mut best);
    best
}

fn complete(graph: &Graph, sequence: &mut Vec<(usize, usize)>, best: &mut Micros) {
    // The makespan of a partial schedule never decreases.
    let partial = graph.starts(sequence).1;
    if partial >= *best {
        return;
    }
    if sequence.len() == graph.tasks {
        *best = partial;
        return;
    }
    for task in 0..graph.tasks {
        let placed = |other: usize| sequence.iter().any(|(task, _)| *task == other);
        if placed(task) || graph.predecessors[task].iter().any(|arc| !placed(arc.task)) {
            continue;
        }
        for device in 0..graph.devices {
            sequence.push((task, device));
            if holds(graph, sequence) {
                complete(graph, sequence, best);
            }
            sequence.pop();
        }
    }
}

/// Returns true if the placement satisfies support, links, memory and co-location.
pub(crate) fn holds(graph: &Graph, sequence: &[(usize, usize)]) -> bool {
    let devices = graph.devices;
    let on = |task: usize| sequence.iter().find(|(other, _)| *other == task).map(|(_, device)| *device);
    let supported = sequence.iter().all(|(task, device)| graph.time_us[task * devices + device].is_finite());
    let linked = sequence.iter().all(|(task, device)| {
        graph.predecessors[*task]
            .iter()
            .all(|arc| on(arc.task).is_some_and(|from| graph.delays(arc)[from * devices + device].is_finite()))
    });
    let fits = (0..devices).all(|device| {
        let here = sequence.iter().filter(|(_, other)| *other == device);
        here.map(|(task, _)| graph.need[*task]).sum::<Bytes>() <= graph.capacity[device]
    });
    let colocated = graph.groups.iter().all(|group| {
        let mut places = group.iter().filter_map(|task| on(*task));
        places.next().is_none_or(|first| places.all(|place| place == first))
    });
    supported && linked && fits && colocated
}
