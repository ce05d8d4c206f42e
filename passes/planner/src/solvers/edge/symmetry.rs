//! Identical machines, which are interchangeable.

use super::model::Model;

/// Returns for each machine the previous one that is identical to it.
pub(super) fn identical_before(model: &Model) -> Vec<Option<usize>> {
    // First and last machine of each class so far.
    let mut kinds: Vec<(usize, usize)> = Vec::new();
    let mut previous_identical = |machine: usize| {
        // Being identical is transitive: comparing with the first of a class is enough.
        let Some((_, last)) = kinds.iter_mut().find(|(first, _)| are_alike(model, *first, machine)) else {
            kinds.push((machine, machine));
            return None;
        };
        Some(std::mem::replace(last, machine))
    };
    (0..model.machines).map(&mut previous_identical).collect()
}

/// Returns true if swapping two machines changes nothing.
fn are_alike(model: &Model, one: usize, other: usize) -> bool {
    let others = || (0..model.machines).filter(|third| *third != one && *third != other);
    model.speed[one] == model.speed[other]
        && model.threads[one] == model.threads[other]
        && model.capacity.get(one) == model.capacity.get(other)
        && model.link(one, other) == model.link(other, one)
        && others().all(|third| model.link(one, third) == model.link(other, third))
        && others().all(|third| model.link(third, one) == model.link(third, other))
        && (0..model.layers()).all(|layer| model.time(layer, one) == model.time(layer, other))
}
