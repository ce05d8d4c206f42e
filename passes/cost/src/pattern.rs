//! Glob patterns for names.

/// Returns true if a name matches a pattern, in which each `*` matches any sequence of characters.
pub fn matches(pattern: &str, name: &str) -> bool {
    let Some((prefix, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(prefix) else { return false };
    let (middle, suffix) = rest.rsplit_once('*').unwrap_or(("", rest));
    // Leftmost matches leave the longest rest for the following parts.
    for part in middle.split('*') {
        match name.find(part) {
            Some(at) => name = &name[at + part.len()..],
            None => return false,
        }
    }
    name.ends_with(suffix)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn stars_match_any_sequence() {
        for (pattern, id) in [
            ("n0_*", "n0_gpu1"),
            ("*", "x"),
            ("*_gpu1", "n0_gpu1"),
            ("n*_*1", "n0_gpu1"),
            ("a*a", "aa"),
            ("a*b*", "ab"),
        ] {
            assert!(matches(pattern, id), "{pattern} {id}");
        }
        for (pattern, id) in [("n0_*", "n1_gpu1"), ("a*a", "a"), ("n*_*2", "n0_gpu1"), ("*x*y*", "yx"), ("n0", "n0x")] {
            assert!(!matches(pattern, id), "{pattern} {id}");
        }
    }
}
