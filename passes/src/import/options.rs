//! How a model is to be imported.

use std::path::PathBuf;

/// What the command line says about an import.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The size of every input's first dimension, where the model leaves it open.
    pub batch: Option<i64>,
    /// Shapes of inputs by name.
    pub input_shapes: Vec<(String, Vec<i64>)>,
    /// The folder that the IR will be in: paths of weights are relative to it.
    pub ir_folder: PathBuf,
    /// The folder of external data, if not the model's.
    pub weights_dir: Option<PathBuf>,
}

impl Options {
    /// Reads `input:8x3x224x224`, several separated by commas. The name may itself contain colons.
    pub fn parse_input_shapes(text: &str) -> Result<Vec<(String, Vec<i64>)>, String> {
        let mut shapes: Vec<(String, Vec<i64>)> = vec![];
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let malformed = || format!("'{part}' is no input shape: write NAME:8x3x224x224");
            let (name, dims) = part.rsplit_once(':').ok_or_else(malformed)?;
            let dims = if dims.is_empty() {
                vec![]
            } else {
                dims.split('x')
                    .map(|dim| dim.parse::<i64>().ok().filter(|&dim| dim >= 0))
                    .collect::<Option<_>>()
                    .ok_or_else(malformed)?
            };
            if name.is_empty() {
                return Err(malformed());
            }
            if shapes.iter().any(|(other, _)| other == name) {
                return Err(format!("input '{name}' is given two shapes"));
            }
            shapes.push((name.to_owned(), dims));
        }
        Ok(shapes)
    }

    /// Whether shapes that the model declares may be out of date.
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
        for bad in ["x", "x:8xy", ":8", "x:-1", "x:1,x:2"] {
            assert!(Options::parse_input_shapes(bad).is_err(), "{bad}");
        }
    }
}
