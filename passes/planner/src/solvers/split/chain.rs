//! The dynamic program along the cuts: the device of a cut is all that both sides have to agree on.

use super::module::Ends;
use crate::model::units::Micros;

/// How long a module takes, for each pair of devices at its ends.
pub(crate) type Table = Vec<(Ends, Micros)>;

/// Before the first cut and after the last there is one way to be.
fn slot(end: Option<usize>) -> usize {
    end.unwrap_or(0)
}

/// The least sum along modules that agree at the cuts between them, and which entry of each table it takes; none if all
/// are infinite.
pub(crate) fn shortest(tables: &[Table], devices: usize) -> Option<(Micros, Vec<usize>)> {
    let after = sums_after(tables, devices);
    let mut device = 0;
    let mut sum = 0.0;
    let mut path = Vec::with_capacity(tables.len());
    for (table, after) in tables.iter().zip(&after[1..]) {
        let here = table.iter().enumerate().filter(|(_, (ends, _))| slot(ends.entry) == device);
        let costs = here.map(|(index, (ends, time))| (index, *time, time + after[slot(ends.exit)]));
        let (index, time, _) = costs.filter(|cost| cost.2.is_finite()).min_by(|a, b| a.2.total_cmp(&b.2))?;
        sum += time;
        device = slot(table[index].0.exit);
        path.push(index);
    }
    Some((sum, path))
}

/// For each entry of each table, the least sum of the other modules that agree with it.
pub(crate) fn others(tables: &[Table], devices: usize) -> Vec<Vec<Micros>> {
    let after = sums_after(tables, devices);
    let mut before = vec![f64::INFINITY; devices];
    before[0] = 0.0;
    let mut others = Vec::with_capacity(tables.len());
    for (table, after) in tables.iter().zip(&after[1..]) {
        others.push(table.iter().map(|(ends, _)| before[slot(ends.entry)] + after[slot(ends.exit)]).collect());
        let mut next = vec![f64::INFINITY; devices];
        for (ends, time) in table {
            let sum = before[slot(ends.entry)] + time;
            next[slot(ends.exit)] = next[slot(ends.exit)].min(sum);
        }
        before = next;
    }
    others
}

/// Before each module and after the last, by device of the cut there: the least sum of what follows.
fn sums_after(tables: &[Table], devices: usize) -> Vec<Vec<Micros>> {
    let mut sums = vec![vec![f64::INFINITY; devices]; tables.len() + 1];
    sums[tables.len()][0] = 0.0;
    for (number, table) in tables.iter().enumerate().rev() {
        for (ends, time) in table {
            let sum = time + sums[number + 1][slot(ends.exit)];
            let least = &mut sums[number][slot(ends.entry)];
            *least = least.min(sum);
        }
    }
    sums
}
