//! Dynamic program along the cuts: the device of a cut is the only coupling of both sides.

use super::module::Ends;
use crate::model::units::Micros;

/// Time of a module, for each pair of devices at its ends.
pub(crate) type Table = Vec<(Ends, Micros)>;

/// Index of a cut's device; 0 before the first cut and after the last.
fn slot(end: Option<usize>) -> usize {
    end.unwrap_or(0)
}

/// Returns the least sum over modules that agree at the cuts between them, and the chosen entry of each table; `None`
/// if all sums are infinite.
pub(crate) fn shortest(tables: &[Table], devices: usize) -> Option<(Micros, Vec<usize>)> {
    let after = sums_after(tables, devices);
    let mut device = 0;
    let mut sum = Micros::ZERO;
    let mut path = Vec::with_capacity(tables.len());
    for (table, after) in tables.iter().zip(&after[1..]) {
        let here = table.iter().enumerate().filter(|(_, (ends, _))| slot(ends.entry) == device);
        let costs = here.map(|(index, (ends, time))| (index, *time, *time + after[slot(ends.exit)]));
        let (index, time, _) = costs.filter(|cost| cost.2.is_finite()).min_by(|a, b| a.2.total_cmp(&b.2))?;
        sum += time;
        device = slot(table[index].0.exit);
        path.push(index);
    }
    Some((sum, path))
}

/// Returns for each entry of each table the least sum of the other modules that agree with it.
pub(crate) fn others(tables: &[Table], devices: usize) -> Vec<Vec<Micros>> {
    let after = sums_after(tables, devices);
    let mut before = vec![Micros::INFINITY; devices];
    before[0] = Micros::ZERO;
    let mut others = Vec::with_capacity(tables.len());
    for (table, after) in tables.iter().zip(&after[1..]) {
        others.push(table.iter().map(|(ends, _)| before[slot(ends.entry)] + after[slot(ends.exit)]).collect());
        let mut next = vec![Micros::INFINITY; devices];
        for (ends, time) in table {
            let sum = before[slot(ends.entry)] + *time;
            next[slot(ends.exit)] = next[slot(ends.exit)].min(sum);
        }
        before = next;
    }
    others
}

/// Returns the least sum of the following modules, by module and device of the cut before it.
fn sums_after(tables: &[Table], devices: usize) -> Vec<Vec<Micros>> {
    let mut sums = vec![vec![Micros::INFINITY; devices]; tables.len() + 1];
    sums[tables.len()][0] = Micros::ZERO;
    for (number, table) in tables.iter().enumerate().rev() {
        for (ends, time) in table {
            let sum = *time + sums[number + 1][slot(ends.exit)];
            let least = &mut sums[number][slot(ends.entry)];
            *least = least.min(sum);
        }
    }
    sums
}
