//! Shares of a transfer between the devices of two stages that take turns.

/// Batch size of a stage, and number of its devices.
pub(super) type Rotation = (u32, usize);

/// Returns the share of the inputs that pass from each device of the first stage to each one of the second, row by row.
///
/// Launch n of a stage is on device n mod r. The inputs modulo both periods are uniform over pairs that are congruent
/// modulo the common divisor G of the periods, so a sum over the residues modulo G counts them.
pub(super) fn shares((p, m): Rotation, (q, n): Rotation) -> Vec<f64> {
    let (m, n) = (m as u64, n as u64);
    if m == 1 || n == 1 {
        return vec![1.0 / (m * n) as f64; (m * n) as usize];
    }
    let common = gcd(p.into(), q.into());
    let (p, q) = (u64::from(p) / common, u64::from(q) / common);
    let residues = gcd(p * m, q * n);
    let period = p as f64 * m as f64 * (q * n / residues) as f64;
    // Number of inputs of a launch, from its first one on, by residue.
    let count = |size: u64, launch: u64, residue: u64| {
        let offset = (residue + residues - launch * size % residues) % residues;
        size / residues + u64::from(offset < size % residues)
    };
    let of_pair = |one: u64, other: u64| -> f64 {
        (0..residues).map(|residue| count(p, one, residue) as f64 * count(q, other, residue) as f64).sum()
    };
    (0..m).flat_map(|one| (0..n).map(move |other| (one, other))).map(|(a, b)| of_pair(a, b) / period).collect()
}

/// Returns the largest share.
pub(super) fn largest_share(first: Rotation, second: Rotation) -> f64 {
    if first.1 == 1 || second.1 == 1 {
        return 1.0 / (first.1 * second.1) as f64;
    }
    shares(first, second).into_iter().fold(0.0, f64::max)
}

/// Returns the greatest common divisor of two positive numbers.
pub(super) fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts inputs one by one.
    fn counted((p, m): Rotation, (q, n): Rotation) -> Vec<f64> {
        let period = u64::from(p) * m as u64 * u64::from(q) * n as u64;
        let mut counts = vec![0_u64; m * n];
        for input in 0..period {
            let device = |size: u32, devices: usize| (input / u64::from(size)) as usize % devices;
            counts[device(p, m) * n + device(q, n)] += 1;
        }
        counts.into_iter().map(|count| count as f64 / period as f64).collect()
    }

    #[test]
    fn shares_are_those_of_counted_inputs() {
        for (p, q) in [(1, 1), (4, 4), (2, 4), (4, 6), (3, 5), (8, 1)] {
            for (m, n) in [(1, 1), (1, 3), (2, 2), (2, 4), (3, 2), (4, 4)] {
                let (found, expected) = (shares((p, m), (q, n)), counted((p, m), (q, n)));
                let is_same = found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12);
                assert!(is_same && found.len() == expected.len(), "{p} {m} {q} {n}: {found:?}, not {expected:?}");
            }
        }
    }
}
