//! Every order of starts on every choice of devices.

use crate::model::units::Micros;
use crate::solvers::exact::graph::Graph;

/// The least makespan; infinite if there is no schedule.
pub(crate) fn optimum(graph: &Graph) -> Micros {
    let mut best = f64::INFINITY;
    complete(graph, &mut Vec::new(), &mut best);
    best
}

fn complete(graph: &Graph, sequence: &mut Vec<(usize, usize)>, best: &mut Micros) {
    // Schedules only get longer: starts of what is placed do not change.
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

/// Whether tasks are where they may be: support, links, memory, mates.
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
        here.map(|(task, _)| graph.need[*task]).sum::<f64>() <= graph.capacity[device]
    });
    let together = graph.groups.iter().all(|group| {
        let mut places = group.iter().filter_map(|task| on(*task));
        places.next().is_none_or(|first| places.all(|place| place == first))
    });
    supported && linked && fits && together
}
