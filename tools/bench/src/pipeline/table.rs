//! Tables with a column for each number of stages.

/// The paper's columns.
pub(super) const STAGES: [u32; 6] = [2, 4, 8, 16, 32, 64];

/// Number of decimals.
pub(super) const DIGITS: usize = 4;
/// Width of columns with one entry.
pub(super) const ONE: usize = 8;
/// Width of columns with two entries.
pub(super) const TWO: usize = 16;
const LABEL: usize = 18;

pub(super) fn header(label: &str, stages: &[u32], width: usize) {
    row(label, stages.iter().map(|k| format!("k = {k}")), width);
}

pub(super) fn row(label: &str, entries: impl IntoIterator<Item = String>, width: usize) {
    let entries: String = entries.into_iter().map(|entry| format!(" {entry:>width$}")).collect();
    println!("{label:<LABEL$}{entries}");
}

/// Prints the paper's numbers for the same row.
pub(super) fn paper_row(stages: &[u32], paper: &[f64; STAGES.len()], digits: usize) {
    let entry = |k: &u32| {
        let column = STAGES.iter().position(|other| other == k);
        column.map_or_else(|| "-".to_owned(), |column| format!("{:.digits$}", paper[column]))
    };
    row("  paper", stages.iter().map(entry), ONE);
}
