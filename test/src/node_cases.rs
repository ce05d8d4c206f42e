//! The node test cases that come with the onnx package, exported by `tests/onnx_nodes/export.py`.

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
    pub name: String,
    pub category: Category,
    /// The names of the inputs, and the types that the case's data has; `None` for sequences and optionals.
    pub inputs: Vec<(String, Option<TensorType>)>,
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

    /// The model with the case's data for its inputs; plain cases have it.
    pub fn constant_model(&self) -> PathBuf {
        self.folder.join("model_constant.onnx")
    }

    /// The model in which those inputs are constants that say what operators do (shapes, axes, …), if it has such inputs.
    pub fn parameter_model(&self) -> Option<PathBuf> {
        Some(self.folder.join("model_parameters.onnx")).filter(|path| path.exists())
    }

    /// The case's data for an input that is a tensor, and no text.
    pub fn input(&self, input: usize) -> Tensor {
        self.elements(&format!("input_{input}.bin"), self.inputs[input].1.as_ref())
    }

    /// What the model is to compute, by output; tensors have it that are no text.
    pub fn expected(&self, output: usize) -> Tensor {
        self.elements(&format!("output_{output}.bin"), self.outputs[output].as_ref())
    }

    fn elements(&self, file: &str, ty: Option<&TensorType>) -> Tensor {
        let path = self.folder.join(file);
        let bytes = fs::read(&path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
        let tensor = ty.and_then(|ty| Tensor::new(ty.dtype, ty.static_shape()?, bytes.into()));
        tensor.unwrap_or_else(|| panic!("{} does not have the bytes that its type asks for", path.display()))
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

/// Does something with every case, on as many threads as there are cores, a context each.
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
