//! Writes a bundle: folds the constant subgraphs of a program, then compiles it.

use crate::{
    compile::compile,
    error::Error,
    folding,
    program::{Loss, Options, Program},
};
use std::{iter, path::Path};

/// Folds the constant subgraphs of a program and compiles it into an empty folder, with the programs for the loss of a node. Returns
/// warnings about constants that could not be folded and operators without a fast kernel.
pub fn write(
    mut program: Program,
    mut losses: Vec<Loss>,
    folder: &Path,
    options: &Options<'_>,
) -> Result<Vec<String>, Error> {
    let others = losses.iter_mut().filter_map(|loss| loss.program.as_mut().ok());
    let programs = iter::once(&mut program).chain(others);
    let folded: Vec<_> = programs.map(|program| folding::fold(program, folder, options)).collect();
    let is_folded = |path: &str| folded.iter().flatten().flatten().any(|folded| folded.has(path));
    let refer = |path: &str| if is_folded(path) { None } else { (options.refer)(path) };
    let slow = compile(program, losses, folder, &Options { refer: &refer, ..options.clone() })?;
    let unfolded = folded
        .into_iter()
        .find_map(Result::err)
        .map(|error| format!("constant subgraphs are computed at every load, not at build time: {error}"));
    Ok(unfolded.into_iter().chain(slow.is_notable().then(|| slow.to_string())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{graph, program::tensor, target::Target};
    use divi_onnx::DType;
    use divi_runtime::{
        bundle::{Bundle, Device, Mode, Objective, Port, Value},
        prepare::Expression,
    };
    use std::fs;

    #[test]
    fn equal_constants_are_stored_once() {
        let bytes = [0_f32, 0.0, 5.0].map(|number| Expression::bytes(&number.to_le_bytes()));
        let value = |i: usize, dtype| Value {
            name: format!("v{i}"),
            device: 0,
            tensor: tensor(&graph::Value { dtype, shape: vec![1], constant: None }),
            constant: Some(i),
        };
        let program = Program {
            model: "constants".into(),
            objective: Objective { mode: Mode::Latency, inputs: 1, predicted_us: None, bound_us: None },
            devices: vec![Device {
                id: "cpu0".into(),
                kind: "cpu".into(),
                threads: 1,
                memory: 1 << 30,
                ..Device::default()
            }],
            values: vec![value(0, DType::I32), value(1, DType::F32), value(2, DType::F32)],
            inputs: vec![],
            task_results: vec![],
            outputs: (0..3).map(|i| Port { name: format!("y{i}"), value: i }).collect(),
            stages: vec![],
            steps: vec![],
            constants: bytes.map(|expression| (expression, 4)).to_vec(),
        };
        let folder = std::env::temp_dir().join(format!("divi-constants-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let options = Options {
            target: Target::named("x86-64-v3").unwrap(),
            weights_folder: Path::new(""),
            refer: &|_| None,
            model_folder: String::new(),
        };
        write(program, vec![], &folder, &options).unwrap();
        let places: Vec<_> = Bundle::read(&folder).unwrap().values.iter().map(|value| value.constant).collect();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(places, [Some(0), Some(0), Some(1)]);
    }
}
