//! Node test cases of the onnx package, exported by `tests/onnx_nodes/export.py`.

use crate::{python, repository};
use divi_onnx::{DType, Dim, Tensor, TensorType};
use melior::Context;
use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
    sync::Mutex,
};

/// One of onnx's node test cases.
#[derive(Clone, Debug)]
pub struct NodeCase {
    /// Name of the case.
    pub name: String,
    /// Kind of values and operators.
    pub category: Category,
    /// Names of the inputs and types of the case's data; `None` for sequences and optionals.
    pub inputs: Vec<(String, Option<TensorType>)>,
    /// Types of the outputs in the case's data; `None` for sequences and optionals.
    pub outputs: Vec<Option<TensorType>>,
    folder: PathBuf,
}

/// Kind of a case with respect to import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// Tensors only.
    Plain,
    /// If, Loop, Scan, SequenceMap.
    ControlFlow,
    /// Sequences and optionals.
    Sequence,
    /// Strings.
    String,
    /// Operators outside `ai.onnx`.
    OtherDomain,
}

impl NodeCase {
    /// Returns the path of the original model.
    pub fn model(&self) -> PathBuf {
        self.folder.join("model.onnx")
    }

    /// Returns the path of the model without declared shapes, except those of its inputs.
    pub fn stripped_model(&self) -> PathBuf {
        self.folder.join("model_stripped.onnx")
    }

    /// Returns the path of the model with the case's data as constants instead of inputs; plain cases have it.
    pub fn constant_model(&self) -> PathBuf {
        self.folder.join("model_constant.onnx")
    }

    /// Returns the path of the model with parameter inputs (shapes, axes, …) as constants, if it has such inputs.
    pub fn parameter_model(&self) -> Option<PathBuf> {
        Some(self.folder.join("model_parameters.onnx")).filter(|path| path.exists())
    }

    /// Returns the case's data of an input, which must be a tensor and not of strings.
    pub fn input(&self, input: usize) -> Tensor {
        self.elements(&format!("input_{input}.bin"), self.inputs[input].1.as_ref())
    }

    /// Returns the expected value of an output, which must be a tensor and not of strings.
    pub fn expected(&self, output: usize) -> Tensor {
        self.elements(&format!("output_{output}.bin"), self.outputs[output].as_ref())
    }

    fn elements(&self, file: &str, ty: Option<&TensorType>) -> Tensor {
        let path = self.folder.join(file);
        let bytes = fs::read(&path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
        let tensor = ty.and_then(|ty| Tensor::new(ty.dtype, ty.static_shape()?, bytes.into()));
        tensor.unwrap_or_else(|| panic!("the size of {} does not match its type", path.display()))
    }
}

/// Returns all node test cases. The first call after a change of the script or of the onnx package exports them, which takes
/// some seconds.
///
/// `temporary` is the calling test's `CARGO_TARGET_TMPDIR`.
pub fn node_cases(temporary: &str) -> Vec<NodeCase> {
    let root = Path::new(temporary).parent().expect("Cargo's folder is in the target folder").join("onnx-nodes");
    fs::create_dir_all(&root).expect("the target folder is writable");
    // Under nextest, test binaries run concurrently: one exports, the others wait.
    let lock = File::create(root.join(".lock")).expect("the target folder is writable");
    lock.lock().expect("files can be locked");
    let script = repository().join("test/tests/onnx_nodes/export.py");
    let output = Command::new(python()).arg(&script).arg(&root).output().unwrap_or_else(|error| {
        panic!("cannot run {}: {error}; run tools/setup, or set DIVI_PYTHON", python().display())
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

/// Applies `work` to every case on all cores, with one context per thread; returns the results in order.
pub fn for_each_case<T: Send>(cases: &[NodeCase], work: impl Fn(&Context, &NodeCase) -> T + Sync) -> Vec<T> {
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get());
    let results = Mutex::new(vec![]);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (results, work) = (&results, &work);
            scope.spawn(move || {
                let context = crate::context();
                for (i, case) in cases.iter().enumerate().skip(thread).step_by(threads) {
                    let result = work(&context, case);
                    results.lock().expect("no thread panics").push((i, result));
                }
            });
        }
    });
    let mut results = results.into_inner().expect("no thread panicked");
    results.sort_by_key(|(i, _)| *i);
    results.into_iter().map(|(_, result)| result).collect()
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
    let count: usize = next().parse().unwrap_or_else(|_| panic!("a line of the index has no number of inputs: {line}"));
    let named = |text: &str| {
        let (name, ty) = text.rsplit_once('=').unwrap_or_else(|| panic!("the index has input {text}"));
        (name.to_owned(), expect_type(ty))
    };
    let inputs = (0..count).map(|_| named(next())).collect();
    let outputs = fields.map(expect_type).collect();
    NodeCase { folder: root.join(&name), name, category, inputs, outputs }
}

fn expect_type(text: &str) -> Option<TensorType> {
    parse_type(text).unwrap_or_else(|| panic!("the index has type {text}"))
}

/// Parses `float[2x3]`; the outer `None` means a syntax error.
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
