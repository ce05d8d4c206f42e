//! Conversion of measured copies between host and device to links of a system description.

use crate::json::{At, Error, parse};

/// Link fitted to measured copies: the time of a copy is `latency + bytes / bandwidth`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// True for copies from the host to the device.
    pub to_device: bool,
    /// True for copies from or to pinned memory.
    pub is_pinned: bool,
    /// Latency in seconds.
    pub seconds: f64,
    /// Bandwidth in bytes per second.
    pub bytes_per_s: f64,
}

/// Returns true if a text is such a table.
pub fn recognizes(text: &str) -> bool {
    let is_copy = |value: &serde_json::Value| value.get("bytes").is_some() && value.get("seconds").is_some();
    parse(text).is_ok_and(|value| value.get("rows").and_then(|rows| rows.get(0)).is_some_and(is_copy))
}

/// Reads a table and fits its links by least squares of relative errors.
pub fn read(text: &str) -> Result<Vec<Link>, Error> {
    let value = parse(text)?;
    let root = At::root(&value);
    root.only(&["note", "rows"])?;
    let rows_at = root.field("rows")?;
    let mut rows = vec![];
    for at in rows_at.items()? {
        at.only(&["bytes", "pinned", "kind", "seconds"])?;
        let to_device = match at.field("kind")?.string()? {
            "h2d" => true,
            "d2h" => false,
            kind => return Err(at.field("kind")?.error(format!("must be 'h2d' or 'd2h', is '{kind}'"))),
        };
        let (bytes, seconds) = (at.field("bytes")?.positive()?, at.field("seconds")?.positive()?);
        rows.push(((to_device, at.field("pinned")?.boolean()?), bytes, seconds));
    }
    let mut links = vec![];
    for (to_device, is_pinned) in [(true, true), (false, true), (true, false), (false, false)] {
        let points = rows.iter().filter(|row| row.0 == (to_device, is_pinned)).map(|row| (row.1, row.2));
        let points: Vec<(f64, f64)> = points.collect();
        if points.is_empty() {
            continue;
        }
        let (seconds, bytes_per_s) = line(&points)
            .ok_or_else(|| rows_at.error("must have copies of at least two sizes, of which larger ones take longer"))?;
        links.push(Link { to_device, is_pinned, seconds, bytes_per_s });
    }
    Ok(links)
}

/// Returns latency and bandwidth of copies (bytes and seconds), which minimize the squares of
/// `(latency / seconds) + (bytes / seconds) / bandwidth - 1`. `None` if there is no line of positive slope.
pub fn line(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let (mut aa, mut ab, mut bb, mut a1, mut b1) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (bytes, seconds) in points {
        let (a, b) = (1.0 / seconds, bytes / seconds);
        aa += a * a;
        ab += a * b;
        bb += b * b;
        a1 += a;
        b1 += b;
    }
    let determinant = aa * bb - ab * ab;
    let (latency, per_byte) = ((a1 * bb - b1 * ab) / determinant, (b1 * aa - a1 * ab) / determinant);
    let is_line = determinant > 0.0 && latency.is_finite() && per_byte > 0.0;
    is_line.then_some((latency.max(0.0), 1.0 / per_byte))
}

impl Link {
    /// Formats the link for a system description. A link through pageable memory becomes a comment, because there is one link
    /// per direction, and divi's runtime uses pinned memory.
    pub fn to_toml(&self, host: &str, device: &str) -> String {
        let (from, to) = if self.to_device { (host, device) } else { (device, host) };
        let (gigabytes, micros) = (self.bytes_per_s / 1e9, self.seconds * 1e6);
        if !self.is_pinned {
            return format!(
                "# From {from} to {to} through pageable memory: {gigabytes:.1} GB/s after {micros:.1} us.\n"
            );
        }
        format!(
            "[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\nbandwidth = \"{gigabytes:.1} GB/s\"\n\
             latency = \"{micros:.1} us\"\nbus = \"pcie0\"\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_is_recovered() {
        let rows = [4e3, 1e6, 64e6].map(|bytes| {
            format!(r#"{{"bytes": {bytes}, "pinned": true, "kind": "h2d", "seconds": {}}}"#, 1e-5 + bytes / 5e10)
        });
        let links = read(&format!(r#"{{"rows": [{}]}}"#, rows.join(", "))).unwrap();
        let [link] = links[..] else { panic!("one direction, one kind of memory: {links:?}") };
        assert!((link.seconds - 1e-5).abs() < 1e-9 && (link.bytes_per_s / 5e10 - 1.0).abs() < 1e-6, "{link:?}");
        assert_eq!(
            link.to_toml("cpu0", "gpu0"),
            "[[link]]\nfrom = \"cpu0\"\nto = \"gpu0\"\n\
             bandwidth = \"50.0 GB/s\"\nlatency = \"10.0 us\"\nbus = \"pcie0\"\n"
        );
    }

    #[test]
    fn pageable_memory_is_a_comment() {
        let link = Link { to_device: false, is_pinned: false, seconds: 1e-5, bytes_per_s: 1e10 };
        let expected = "# From gpu0 to cpu0 through pageable memory: 10.0 GB/s after 10.0 us.\n";
        assert_eq!(link.to_toml("cpu0", "gpu0"), expected);
    }

    #[test]
    fn insufficient_rows_are_errors() {
        let one = r#"{"rows": [{"bytes": 4000, "pinned": true, "kind": "h2d", "seconds": 1e-5}]}"#;
        let error = read(one).unwrap_err().to_string();
        assert_eq!(error, "rows: must have copies of at least two sizes, of which larger ones take longer");
        let error = read(&one.replace("h2d", "d2d")).unwrap_err().to_string();
        assert_eq!(error, "rows[0].kind: must be 'h2d' or 'd2h', is 'd2d'");
    }
}
