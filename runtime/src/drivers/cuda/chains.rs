//! Assignment of the calls of a stage to streams: dependent calls form chains, and each chain runs on its own stream.

/// Maximum number of chains.
pub(crate) const CHAINS: usize = 4;

/// Chain and synchronization of a call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StreamAssignment {
    pub(crate) chain: usize,
    /// Calls of other chains that it waits for.
    pub(crate) waits: Vec<usize>,
    /// True if calls of other chains wait for it.
    pub(crate) is_awaited: bool,
}

/// Assigns calls to chains. `after` has for each call the earlier calls that it depends on. If no call has a dependence, the
/// dependences are unknown, and all calls are put on one chain.
pub(crate) fn assign_streams(after: &[&[usize]]) -> Vec<StreamAssignment> {
    let mut assignments: Vec<StreamAssignment> = Vec::with_capacity(after.len());
    let is_known = after.iter().any(|after| !after.is_empty());
    // By chain: its last call.
    let mut last: Vec<usize> = Vec::new();
    // By pair of chains: the latest call of the second that the first has waited for. Waits for earlier calls are redundant.
    let mut waited = [[None; CHAINS]; CHAINS];
    for (call, after) in after.iter().enumerate() {
        let follows = (0..last.len()).filter(|&chain| after.contains(&last[chain])).max_by_key(|&chain| last[chain]);
        let chain = match follows {
            Some(chain) => chain,
            None if !is_known => 0,
            None if last.len() < CHAINS => last.len(),
            None => (0..CHAINS).min_by_key(|&chain| last[chain]).unwrap_or(0),
        };
        let mut assignment = StreamAssignment { chain, waits: vec![], is_awaited: false };
        for &other in after.iter().rev() {
            let source = assignments[other].chain;
            if source != chain && waited[chain][source].is_none_or(|latest| latest < other) {
                waited[chain][source] = Some(other);
                assignment.waits.push(other);
                assignments[other].is_awaited = true;
            }
        }
        if chain == last.len() {
            last.push(call)
        } else {
            last[chain] = call
        }
        assignments.push(assignment);
    }
    assignments
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns true if chains and waits order `first` before `second`.
    fn comes_before(assignments: &[StreamAssignment], first: usize, second: usize) -> bool {
        let mut is_before = vec![false; assignments.len()];
        let mut worklist = vec![second];
        while let Some(call) = worklist.pop() {
            let earlier = (0..call).rev().find(|&other| assignments[other].chain == assignments[call].chain);
            for before in assignments[call].waits.iter().copied().chain(earlier) {
                if !std::mem::replace(&mut is_before[before], true) {
                    worklist.push(before);
                }
            }
        }
        is_before[first]
    }

    #[test]
    fn calls_without_dependences_are_one_chain() {
        let assignments = assign_streams(&[&[], &[], &[]]);
        assert!(
            assignments
                .iter()
                .all(|assignment| *assignment == StreamAssignment { chain: 0, waits: vec![], is_awaited: false })
        );
        assert!(comes_before(&assignments, 0, 2));
    }

    #[test]
    fn branches_become_chains_and_join() {
        // Diamond: 0, then 1-2 in parallel to 3, then 4.
        let assignments = assign_streams(&[&[], &[0], &[1], &[0], &[2, 3]]);
        let chains: Vec<usize> = assignments.iter().map(|assignment| assignment.chain).collect();
        assert_eq!(chains, [0, 0, 0, 1, 1]);
        assert_eq!((&assignments[3].waits[..], &assignments[4].waits[..]), (&[0][..], &[2][..]));
        assert!(assignments[0].is_awaited && assignments[2].is_awaited && !assignments[1].is_awaited);
    }

    #[test]
    fn dependences_are_respected() {
        let mut seed = 5_u64;
        let mut below = |end: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % end
        };
        for _ in 0..200 {
            let count = 1 + below(30);
            let after: Vec<Vec<usize>> = (0..count)
                .map(|call| {
                    let mut after: Vec<usize> = (0..below(3).min(call)).map(|_| below(call)).collect();
                    after.sort_unstable();
                    after.dedup();
                    after
                })
                .collect();
            let borrowed: Vec<&[usize]> = after.iter().map(|after| &after[..]).collect();
            let assignments = assign_streams(&borrowed);
            assert!(assignments.iter().all(|assignment| assignment.chain < CHAINS));
            for (call, after) in after.iter().enumerate() {
                assert!(after.iter().all(|&other| comes_before(&assignments, other, call)), "{after:?}");
            }
        }
    }
}
