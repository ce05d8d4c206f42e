//! Colors of devices, distinguishable with color vision deficiency.

/// Colors of the first devices; they differ in lightness as well as in hue.
const FIRST: [[u8; 3]; 8] = [
    [0x27, 0x72, 0xb5],
    [0xe6, 0x9f, 0x00],
    [0x1a, 0x9e, 0x77],
    [0xcc, 0x6f, 0xa8],
    [0x6b, 0xbf, 0xec],
    [0xd5, 0x5e, 0x00],
    [0xd9, 0xcc, 0x3a],
    [0x7a, 0x62, 0xc9],
];

/// Colors of text on a device's color.
const DARK: [u8; 3] = [0; 3];
const LIGHT: [u8; 3] = [0xff, 0xff, 0xff];

/// Returns a device's color as red, green and blue. From the ninth device on, hues are rotated.
pub(crate) fn rgb(device: usize) -> [u8; 3] {
    match FIRST.get(device) {
        Some(colour) => *colour,
        None => {
            let turn = (device - FIRST.len()) as f64;
            // Steps by the golden ratio keep each new hue far from all previous ones.
            from_hsl((turn * 0.618_034).fract(), 0.55, if device.is_multiple_of(2) { 0.45 } else { 0.65 })
        }
    }
}

/// Returns a device's color in hexadecimal: `#2772b5`.
pub(crate) fn colour(device: usize) -> String {
    hex(rgb(device))
}

/// Returns the text color with the higher contrast on a device's color.
pub(crate) fn text(device: usize) -> String {
    let back = rgb(device);
    hex(if contrast(back, DARK) >= contrast(back, LIGHT) { DARK } else { LIGHT })
}

fn hex([red, green, blue]: [u8; 3]) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn from_hsl(hue: f64, saturation: f64, lightness: f64) -> [u8; 3] {
    let reach = saturation * lightness.min(1.0 - lightness);
    [0.0, 8.0, 4.0].map(|shift: f64| {
        let at = (shift + hue * 12.0).rem_euclid(12.0);
        let value = lightness - reach * (at - 3.0).min(9.0 - at).clamp(-1.0, 1.0);
        (value * 255.0).round() as u8
    })
}

/// Returns the WCAG contrast ratio of two colors, from 1 to 21.
fn contrast(one: [u8; 3], other: [u8; 3]) -> f64 {
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

fn luminance(colour: [u8; 3]) -> f64 {
    let [red, green, blue] = colour.map(|part| {
        let part = f64::from(part) / 255.0;
        if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
    });
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_readable_on_every_color() {
        for device in 0..64 {
            let best = contrast(rgb(device), DARK).max(contrast(rgb(device), LIGHT));
            assert!(best >= 4.5, "device {device}: {best}");
        }
        assert!((contrast([0; 3], [255; 3]) - 21.0).abs() < 1e-9);
    }

    #[test]
    fn colors_differ() {
        let mut colours: Vec<String> = (0..64).map(colour).collect();
        colours.sort();
        colours.dedup();
        assert_eq!(colours.len(), 64);
        assert_eq!(from_hsl(0.0, 1.0, 0.5), [255, 0, 0]);
        assert_eq!(from_hsl(1.0 / 3.0, 1.0, 0.5), [0, 255, 0]);
    }
}
