//! Patterns that stand for several names.

/// Whether a name fits a pattern, each `*` of which stands for any characters.
pub fn fits(pattern: &str, name: &str) -> bool {
    let Some((prefix, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(prefix) else { return false };
    let (middle, suffix) = rest.rsplit_once('*').unwrap_or(("", rest));
    // The first place where a part fits leaves most to those behind it.
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
    use super::fits;

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, id) in [
            ("n0_*", "n0_gpu1"),
            ("*", "x"),
            ("*_gpu1", "n0_gpu1"),
            ("n*_*1", "n0_gpu1"),
            ("a*a", "aa"),
            ("a*b*", "ab"),
        ] {
            assert!(fits(pattern, id), "{pattern} {id}");
        }
        for (pattern, id) in [("n0_*", "n1_gpu1"), ("a*a", "a"), ("n*_*2", "n0_gpu1"), ("*x*y*", "yx"), ("n0", "n0x")] {
            assert!(!fits(pattern, id), "{pattern} {id}");
        }
    }
}
