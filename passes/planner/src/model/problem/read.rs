//! From text to a problem.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserializer;
use serde::de::{Error as _, MapAccess, Visitor};

use super::{Device, FORMAT, Problem};
use crate::model::error::Error;
use crate::model::units::Micros;

impl Problem {
    /// Reads a problem. What it says is not looked at beyond its form: see [`Problem::check`].
    pub fn read(text: &str) -> Result<Self, Error> {
        crate::model::json::read(text, FORMAT)
    }
}

/// The host of a file that does not give it: files were written without it, with a device whose name says so or the first as the
/// host.
pub(super) fn default_host(devices: &[Device]) -> usize {
    devices.iter().position(|device| device.name.starts_with("cpu")).unwrap_or(0)
}

/// Batch sizes are keys of an object, so they are text; a size that is given twice would be dropped without a word.
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
                    size.ok_or_else(|| M::Error::custom(format!("batch size \"{key}\" is no positive whole number")))?;
                if times.insert(size, map.next_value()?).is_some() {
                    return Err(M::Error::custom(format!("batch size {size} is there twice")));
                }
            }
            Ok(times)
        }
    }

    deserializer.deserialize_map(Times)
}
