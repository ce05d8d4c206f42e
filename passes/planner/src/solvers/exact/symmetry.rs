//! Interchangeable devices: swapping two of them turns a schedule into another with the same makespan.

use super::graph::Graph;

/// Classes of two or more equal devices, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Classes(Vec<Vec<usize>>);

impl Classes {
    pub(crate) fn new(graph: &Graph) -> Self {
        let mut classes: Vec<Vec<usize>> = Vec::new();
        for device in 0..graph.devices {
            // Interchangeability is transitive, so one member represents its class.
            match classes.iter_mut().find(|class| interchangeable(graph, class[0], device)) {
                Some(class) => class.push(device),
                None => classes.push(vec![device]),
            }
        }
        classes.retain(|class| class.len() > 1);
        Self(classes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the first device of the same class that is not `taken`.
    pub(crate) fn first_but(&self, device: usize, taken: Option<usize>) -> usize {
        let class = self.0.iter().find(|class| class.contains(&device));
        class.and_then(|class| class.iter().copied().find(|member| Some(*member) != taken)).unwrap_or(device)
    }

    /// Computes a permutation `order[new] = old` in which devices of a class are sorted by their columns, so that
    /// states that differ only by a permutation of equal devices become identical.
    pub(crate) fn arrange(&self, order: &mut [u8], column: impl Fn(usize, usize) -> std::cmp::Ordering) {
        order.iter_mut().enumerate().for_each(|(place, device)| *device = place as u8);
        for class in &self.0 {
            let mut members = class.clone();
            members.sort_by(|a, b| column(*a, *b));
            for (place, member) in class.iter().zip(members) {
                order[*place] = member as u8;
            }
        }
    }
}

fn interchangeable(graph: &Graph, a: usize, b: usize) -> bool {
    let devices = graph.devices;
    let tables = [&graph.time_us, &graph.release_us, &graph.delivery_us];
    let same_columns = tables.into_iter().all(|table| table.chunks(devices).all(|row| row[a] == row[b]));
    let swap = |device: usize| {
        if device == a {
            b
        } else if device == b {
            a
        } else {
            device
        }
    };
    let same_delays = graph.delay_us.chunks(devices * devices).all(|matrix| {
        (0..devices * devices).all(|pair| {
            let (from, to) = (pair / devices, pair % devices);
            matrix[pair] == matrix[swap(from) * devices + swap(to)]
        })
    });
    same_columns && same_delays && graph.capacity[a] == graph.capacity[b]
}
