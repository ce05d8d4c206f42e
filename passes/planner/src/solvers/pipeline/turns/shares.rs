//! Numbers of devices of the blocks.

use crate::model::units::Micros;

/// Returns the numbers of devices that minimize the largest cost per device: one more, as long as there are devices, for
/// the block with the largest one.
pub(super) fn shares(costs: &[Micros], devices: usize, most: usize) -> Vec<u32> {
    let mut counts = vec![1_u32; costs.len()];
    for _ in costs.len()..devices {
        let open = (0..costs.len()).filter(|block| (counts[*block] as usize) < most);
        let each = |block: &usize| costs[*block] / f64::from(counts[*block]);
        let Some(next) = open.max_by(|a, b| each(a).total_cmp(&each(b)).then(b.cmp(a))) else { break };
        counts[next] += 1;
    }
    counts
}

/// Returns all sequences of at most `blocks` numbers up to `most` whose sum is `devices`, or whose numbers are all `most`;
/// `None` if there are more than `limit`.
pub(super) fn compositions(devices: usize, most: usize, blocks: usize, limit: usize) -> Option<Vec<Vec<u32>>> {
    let (mut done, mut open): (Vec<Vec<u32>>, Vec<Vec<u32>>) = (Vec::new(), vec![Vec::new()]);
    while !open.is_empty() {
        let mut next = Vec::new();
        for row in open {
            let left = devices - row.iter().sum::<u32>() as usize;
            if left == 0 || row.len() == blocks {
                done.push(row);
                continue;
            }
            next.extend((1..=most.min(left) as u32).map(|count| [row.as_slice(), &[count]].concat()));
        }
        if done.len() + next.len() > limit {
            return None;
        }
        open = next;
    }
    Some(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_block_gets_the_next_device() {
        let costs = [9.0, 4.0, 1.0].map(Micros);
        assert_eq!(shares(&costs, 3, 4), [1, 1, 1]);
        assert_eq!(shares(&costs, 5, 4), [3, 1, 1]);
        assert_eq!(shares(&costs, 6, 2), [2, 2, 2]);
        assert_eq!(shares(&costs, 99, 2), [2, 2, 2]);
    }

    #[test]
    fn compositions_are_all_sequences() {
        assert_eq!(compositions(3, 2, 5, 10), Some(vec![vec![1, 2], vec![2, 1], vec![1, 1, 1]]));
        assert_eq!(compositions(30, 30, 30, 100), None);
    }
}
