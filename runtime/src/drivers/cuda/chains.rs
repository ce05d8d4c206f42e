//! Which calls of a stage run side by side: chains of calls that wait for each other, each chain on a stream.

/// As many chains run side by side.
pub(crate) const CHAINS: usize = 4;

/// Where a call runs, and when.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) chain: usize,
    /// Calls of other chains that it waits for.
    pub(crate) waits: Vec<usize>,
    /// Whether calls of other chains wait for it.
    pub(crate) is_awaited: bool,
}

/// Places for calls by those that they come after, all of them earlier. If no call comes after another, nothing is known of
/// them, and each comes after the one before.
pub(crate) fn places(after: &[&[usize]]) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::with_capacity(after.len());
    let is_known = after.iter().any(|after| !after.is_empty());
    // The last call of each chain.
    let mut last: Vec<usize> = Vec::new();
    // The latest call of another chain that each chain has waited for.
    let mut waited = [[None; CHAINS]; CHAINS];
    for (call, after) in after.iter().enumerate() {
        let follows = (0..last.len()).filter(|&chain| after.contains(&last[chain])).max_by_key(|&chain| last[chain]);
        let chain = match follows {
            Some(chain) => chain,
            None if !is_known => 0,
            None if last.len() < CHAINS => last.len(),
            None => (0..CHAINS).min_by_key(|&chain| last[chain]).unwrap_or(0),
        };
        let mut place = Place { chain, waits: vec![], is_awaited: false };
        for &other in after.iter().rev() {
            let theirs = places[other].chain;
            if theirs != chain && waited[chain][theirs].is_none_or(|latest| latest < other) {
                waited[chain][theirs] = Some(other);
                place.waits.push(other);
                places[other].is_awaited = true;
            }
        }
        if chain == last.len() {
            last.push(call)
        } else {
            last[chain] = call
        }
        places.push(place);
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a call is certainly done before another one begins, by chains and waits.
    fn comes_before(places: &[Place], first: usize, second: usize) -> bool {
        let mut done = vec![false; places.len()];
        let mut ask = vec![second];
        while let Some(call) = ask.pop() {
            let earlier = (0..call).rev().find(|&other| places[other].chain == places[call].chain);
            for before in places[call].waits.iter().copied().chain(earlier) {
                if !std::mem::replace(&mut done[before], true) {
                    ask.push(before);
                }
            }
        }
        done[first]
    }

    #[test]
    fn calls_of_which_nothing_is_known_are_one_chain() {
        let places = places(&[&[], &[], &[]]);
        assert!(places.iter().all(|place| *place == Place { chain: 0, waits: vec![], is_awaited: false }));
        assert!(comes_before(&places, 0, 2));
    }

    #[test]
    fn branches_are_chains_that_meet() {
        // A diamond: 0, then 1-2 beside 3, then 4.
        let places = places(&[&[], &[0], &[1], &[0], &[2, 3]]);
        let chains: Vec<usize> = places.iter().map(|place| place.chain).collect();
        assert_eq!(chains, [0, 0, 0, 1, 1]);
        assert_eq!((&places[3].waits[..], &places[4].waits[..]), (&[0][..], &[2][..]));
        assert!(places[0].is_awaited && places[2].is_awaited && !places[1].is_awaited);
    }

    #[test]
    fn whatever_comes_after_waits() {
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
            let places = places(&borrowed);
            assert!(places.iter().all(|place| place.chain < CHAINS));
            for (call, after) in after.iter().enumerate() {
                assert!(after.iter().all(|&other| comes_before(&places, other, call)), "{after:?}");
            }
        }
    }
}
