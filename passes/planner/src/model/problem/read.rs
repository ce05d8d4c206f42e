//! Reader of problems.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserializer;
use serde::de::{Error as _, MapAccess, Visitor};

use super::{Device, FORMAT, Format, Problem};
use crate::model::error::Error;
use crate::model::json::read_format;
use crate::model::units::Micros;

impl Problem {
    /// Reads a problem; [`Problem::check`] checks it.
    pub fn read(text: &str) -> Result<Self, Error> {
        read_format::<Format, Self>(text, FORMAT)
    }
}

/// Returns the host of a file without `host`: older files do not have it, and mean the first device whose name starts
/// with `cpu`, or the first.
pub(super) fn default_host(devices: &[Device]) -> usize {
    devices.iter().position(|device| device.name.starts_with("cpu")).unwrap_or(0)
}

/// Reads times by batch size. Sizes are keys of an object, so they are text; a map would silently drop duplicates.
pub(super) fn times<'de, D>(deserializer: D) -> Result<BTreeMap<u32, Vec<Option<Micros>>>, D::Error>
where
    D: Deserializer<'de>,
{
    struct Times;

    impl<'de> Visitor<'de> for Times {
        type Value = BTreeMap<u32, Vec<Option<Micros>>>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("an object from batch size to a list of times, one a device")
        }

        fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
            let mut times = BTreeMap::new();
            while let Some(key) = map.next_key::<String>()? {
                let size = key.parse::<u32>().ok().filter(|size| *size > 0 && size.to_string() == key);
                let size =
                    size.ok_or_else(|| M::Error::custom(format!("batch size \"{key}\" is not a positive integer")))?;
                if times.insert(size, map.next_value()?).is_some() {
                    return Err(M::Error::custom(format!("duplicate batch size {size}")));
                }
            }
            Ok(times)
        }
    }

    deserializer.deserialize_map(Times)
}
