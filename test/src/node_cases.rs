//! The node test cases that come with the onnx package, exported by `tests/onnx_nodes/export.py`.

use crate::{python, repository};
use divi_onnx::{DType, Dim, TensorType};
use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
};

/// One of onnx's node test cases.
#[derive(Clone, Debug)]
pub struct NodeCase {
    pub name: String,
    pub category: Category,
    /// The types of the outputs that the case's data has; `None` for sequences and optionals.
    pub outputs: Vec<Option<TensorType>>,
    folder: PathBuf,
}

/// What a case is about, as far as import cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// Tensors in, tensors out.
    Plain,
    /// If, Loop, Scan, SequenceMap.
    ControlFlow,
    /// Sequences and optionals.
    Sequence,
    String,
    /// Operators outside `ai.onnx`.
    OtherDomain,
}

impl NodeCase {
    /// The model as onnx has it.
    pub fn model(&self) -> PathBuf {
        self.folder.join("model.onnx")
    }

    /// The model without any declared shape but its inputs'.
    pub fn stripped_model(&self) -> PathBuf {
        self.folder.join("model_stripped.onnx")
    }
}

/// Every node test case. The first call after a change of the script or of the onnx package exports them, which takes some
/// seconds.
///
/// `temporary` is the calling test's `CARGO_TARGET_TMPDIR`.
pub fn node_cases(temporary: &str) -> Vec<NodeCase> {
    let root = Path::new(temporary).parent().expect("Cargo's folder is in the target folder").join("onnx-nodes");
    fs::create_dir_all(&root).expect("the target folder can be written");
    // Test binaries run side by side under nextest; one exports, the others wait for it.
    let lock = File::create(root.join(".lock")).expect("the target folder can be written");
    lock.lock().expect("files can be locked");
    let script = repository().join("test/tests/onnx_nodes/export.py");
    let output = Command::new(python()).arg(&script).arg(&root).output().unwrap_or_else(|error| {
        panic!("cannot run {}: {error}; tools/setup makes it, or set DIVI_PYTHON", python().display())
    });
    assert!(
        output.status.success(),
        "{} failed: is onnx installed? Run tools/setup.\n{}",
        script.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    let index = fs::read_to_string(root.join("index.tsv")).expect("the script writes an index");
    index.lines().map(|line| parse(&root, line)).collect()
}

fn parse(root: &Path, line: &str) -> NodeCase {
    let mut fields = line.split('\t');
    let mut next = || fields.next().unwrap_or_else(|| panic!("a line of the index is short: {line}"));
    let name = next().to_owned();
    let category = match next() {
        "plain" => Category::Plain,
        "control-flow" => Category::ControlFlow,
        "sequence" => Category::Sequence,
        "string" => Category::String,
        "other-domain" => Category::OtherDomain,
        other => panic!("the index has category {other}"),
    };
    let outputs = fields.map(|text| parse_type(text).unwrap_or_else(|| panic!("the index has type {text}"))).collect();
    NodeCase { folder: root.join(&name), name, category, outputs }
}

/// Reads `float[2x3]`; the outer `None` is for what the script does not write.
fn parse_type(text: &str) -> Option<Option<TensorType>> {
    if matches!(text, "sequence" | "optional") {
        return Some(None);
    }
    let (name, dims) = text.strip_suffix(']')?.split_once('[')?;
    let dtype = *DType::ALL.iter().find(|dtype| dtype.name() == name)?;
    let dims = dims.split('x').filter(|dim| !dim.is_empty());
    let shape: Vec<_> = dims.map(|dim| dim.parse().ok().map(Dim::Known)).collect::<Option<_>>()?;
    Some(Some(TensorType::new(dtype, shape)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_as_they_are_printed() {
        for text in ["float[2x3]", "int4[]", "bool[0]"] {
            assert_eq!(parse_type(text).unwrap().unwrap().to_string(), text);
        }
        assert_eq!(parse_type("sequence"), Some(None));
        assert_eq!(parse_type("float"), None);
        assert_eq!(parse_type("quad[1]"), None);
    }
}
