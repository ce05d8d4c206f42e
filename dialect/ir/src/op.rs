//! Names of the operations of the `divi` dialect, and of operations of other dialects that passes match.

/// Operators that run as one task.
pub const CLUSTER: &str = "divi.cluster";
/// Processor with its memory.
pub const DEVICE: &str = "divi.device";
/// Concatenation of the inputs of batched tensors.
pub const GATHER: &str = "divi.gather";
/// Call of a function on a device.
pub const LAUNCH: &str = "divi.launch";
/// Directed connection between two devices.
pub const LINK: &str = "divi.link";
/// Extraction of inputs of a batched tensor.
pub const SLICE: &str = "divi.slice";
/// Transfer of a tensor to another device.
pub const TRANSFER: &str = "divi.transfer";
/// Terminator of a cluster.
pub const YIELD: &str = "divi.yield";

/// Module.
pub const MODULE: &str = "builtin.module";
/// Function.
pub const FUNC: &str = "func.func";
/// Function call.
pub const CALL: &str = "func.call";
/// Terminator of a function.
pub const RETURN: &str = "func.return";
/// Reference to the function that runs the model.
pub const ENTRY_POINT: &str = "onnx.EntryPoint";

/// Returns true for the name of an operation of the `divi` dialect.
pub fn is_divi(name: &str) -> bool {
    name.starts_with("divi.")
}
