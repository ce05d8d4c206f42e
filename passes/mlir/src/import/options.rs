//! Options of import.

use std::path::PathBuf;

/// Changes of the model's inputs, and the location of weights.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Size of every input's first dimension where it is dynamic.
    pub batch: Option<i64>,
    /// Shapes of inputs by name. An empty name means the only input.
    pub input_shapes: Vec<(String, Vec<i64>)>,
    /// Sizes of symbolic dimensions by name.
    pub dims: Vec<(String, i64)>,
    /// Values of inputs by name, as text: those inputs become constants.
    pub input_values: Vec<(String, String)>,
    /// Folder that the IR will be in: paths of weights are relative to it.
    pub ir_folder: PathBuf,
    /// Folder of external data, if not the model's.
    pub weights_dir: Option<PathBuf>,
}

impl Options {
    /// Parses `input:8x3x224x224`, several separated by commas. The name may contain colons. A shape without a name is
    /// for the only input.
    pub fn parse_input_shapes(text: &str) -> Result<Vec<(String, Vec<i64>)>, String> {
        let mut shapes: Vec<(String, Vec<i64>)> = vec![];
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let malformed =
                || format!("'{part}' is not an input shape: write NAME:8x3x224x224, or 8x3x224x224 for the only input");
            let named = part.rsplit_once(':');
            if named.is_some_and(|(name, _)| name.is_empty()) {
                return Err(malformed());
            }
            let (name, dims) = named.unwrap_or(("", part));
            let dims = if dims.is_empty() {
                vec![]
            } else {
                dims.split('x')
                    .map(|dim| dim.parse::<i64>().ok().filter(|&dim| dim >= 0))
                    .collect::<Option<_>>()
                    .ok_or_else(malformed)?
            };
            if shapes.iter().any(|(other, _)| other == name) {
                return Err(match name {
                    "" => "the only input is given two shapes".into(),
                    name => format!("input '{name}' is given two shapes"),
                });
            }
            shapes.push((name.to_owned(), dims));
        }
        Ok(shapes)
    }

    /// Parses `seq=128`, several separated by commas.
    pub fn parse_dims(text: &str) -> Result<Vec<(String, i64)>, String> {
        let mut dims: Vec<(String, i64)> = vec![];
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let parsed = part.rsplit_once('=').and_then(|(name, size)| {
                let size = size.parse::<i64>().ok().filter(|&size| size >= 0)?;
                (!name.is_empty()).then(|| (name.to_owned(), size))
            });
            let (name, size) =
                parsed.ok_or_else(|| format!("'{part}' is not the size of a dimension: write NAME=128"))?;
            if dims.iter().any(|(other, _)| *other == name) {
                return Err(format!("dimension '{name}' is given two sizes"));
            }
            dims.push((name, size));
        }
        Ok(dims)
    }

    /// Parses `sr=16000` or `sizes=[1,2]`, one per line.
    pub fn parse_input_values(lines: &str) -> Result<Vec<(String, String)>, String> {
        let mut values: Vec<(String, String)> = vec![];
        for line in lines.lines().filter(|line| !line.is_empty()) {
            let Some((name, value)) = line.split_once('=').filter(|(name, _)| !name.is_empty()) else {
                return Err(format!("'{line}' is not the value of an input: write NAME=16000 or NAME=[1,2]"));
            };
            if values.iter().any(|(other, _)| other == name) {
                return Err(format!("input '{name}' is given two values"));
            }
            values.push((name.to_owned(), value.to_owned()));
        }
        Ok(values)
    }

    /// Returns true if declared shapes may not hold any more.
    pub(super) fn overrides_shapes(&self) -> bool {
        self.batch.is_some() || !self.input_shapes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_shapes_are_read() {
        let shapes = Options::parse_input_shapes("x:8x3,serving_default:0:2,scalar:").unwrap();
        let expected = [("x", vec![8, 3]), ("serving_default:0", vec![2]), ("scalar", vec![])];
        assert_eq!(shapes, expected.map(|(name, dims)| (name.to_owned(), dims)));
        assert_eq!(Options::parse_input_shapes("1x20x32").unwrap(), [(String::new(), vec![1, 20, 32])]);
        for bad in ["x", "x:8xy", ":8", "x:-1", "x:1,x:2", "1x2,3x4"] {
            assert!(Options::parse_input_shapes(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn dimensions_and_values_are_read() {
        assert_eq!(Options::parse_dims("seq=128,n=0").unwrap(), [("seq".to_owned(), 128), ("n".to_owned(), 0)]);
        for bad in ["seq", "seq=", "=3", "seq=-1", "seq=1,seq=2", "seq=99999999999999999999"] {
            assert!(Options::parse_dims(bad).is_err(), "{bad}");
        }
        let values = Options::parse_input_values("sr=16000\nsizes=[1,2]\n").unwrap();
        assert_eq!(values, [("sr", "16000"), ("sizes", "[1,2]")].map(|(name, value)| (name.into(), value.into())));
        for bad in ["sr", "=1", "a=1\na=2"] {
            assert!(Options::parse_input_values(bad).is_err(), "{bad}");
        }
    }
}
