//! Parts of a benchmark.

use clap::ValueEnum;

/// Returns the given parts, or all of them if none is given.
pub(crate) fn or_all<P: ValueEnum>(parts: Vec<P>) -> Vec<P> {
    if parts.is_empty() { P::value_variants().to_vec() } else { parts }
}

/// Returns the parts without duplicates, in declaration order.
pub(crate) fn sorted<P: ValueEnum + PartialEq>(parts: &[P]) -> Vec<P> {
    P::value_variants().iter().filter(|part| parts.contains(part)).cloned().collect()
}

/// Runs parts of a benchmark, with an empty line between their tables.
pub(crate) fn in_turn<P>(parts: Vec<P>, mut run: impl FnMut(P) -> Result<(), String>) -> Result<(), String> {
    for (index, part) in parts.into_iter().enumerate() {
        if index > 0 {
            println!();
        }
        run(part)?;
    }
    Ok(())
}
