//! Machines that differ in nothing: which of them does what makes no difference.

use super::model::Model;

/// For each machine, the one before it that differs in nothing.
pub(super) fn twins(model: &Model) -> Vec<Option<usize>> {
    // The first and the last of each kind so far.
    let mut kinds: Vec<(usize, usize)> = Vec::new();
    let mut twin_of = |machine: usize| {
        // Whoever may change places with the first of a kind may do so with all of it.
        let Some((_, last)) = kinds.iter_mut().find(|(first, _)| are_alike(model, *first, machine)) else {
            kinds.push((machine, machine));
            return None;
        };
        Some(std::mem::replace(last, machine))
    };
    (0..model.machines).map(&mut twin_of).collect()
}

/// Whether nothing changes when two machines change places.
fn are_alike(model: &Model, one: usize, other: usize) -> bool {
    let others = || (0..model.machines).filter(|third| *third != one && *third != other);
    model.speed[one] == model.speed[other]
        && model.threads[one] == model.threads[other]
        && model.capacity.get(one) == model.capacity.get(other)
        && model.way(one, other) == model.way(other, one)
        && others().all(|third| model.way(one, third) == model.way(other, third))
        && others().all(|third| model.way(third, one) == model.way(third, other))
        && (0..model.layers()).all(|layer| model.time(layer, one) == model.time(layer, other))
}
