//! `divi-convert-precision`: computes convolutions and matrix products in a half-precision type.

use crate::{
    declared::{ConvertPrecision, ConvertPrecisionStatistics},
    ir::{Failure, error, new_constant},
};
use divi_codegen::{Target, backends};
use divi_cost::{pattern::matches, system::System};
use divi_dialect::{
    NamedAttribute, NewOperation, Operation, Value, attr, element_type, node::inference_value, op, tensor_type,
};
use divi_onnx::{
    DType, Op, Tensor, TensorType, Value as Known,
    operators::{CostClass, HalfPrecision},
};
use rustc_hash::{FxHashMap, FxHashSet};

/// Largest finite number of `f16`.
const F16_MAX: f64 = 65504.0;

//===----------------------------------------------------------------------===//
// --divi-convert-precision
//===----------------------------------------------------------------------===//

impl ConvertPrecision {
    pub(crate) fn run(&self, module: Operation<'_>) -> Result<ConvertPrecisionStatistics, Failure> {
        let precision = match self.precision.as_str() {
            "auto" => self.fastest(module).map_err(|message| {
                error(module, &message);
                Failure
            })?,
            name => parse(name).ok_or_else(|| {
                error(module, &format!("precision is '{name}': expected f32, bf16, f16 or auto"));
                Failure
            })?,
        };
        let exclusions = self.exclusions.iter().map(|pattern| Exclusion { pattern, is_used: false }).collect();
        let mut conversion = Conversion {
            precision,
            exclusions,
            converted: FxHashMap::default(),
            constant: FxHashSet::default(),
            casts: FxHashMap::default(),
            statistics: ConvertPrecisionStatistics::default(),
        };
        for function in module.children().into_iter().filter(|operation| operation.name() == op::FUNC) {
            function.blocks().into_iter().flat_map(|block| block.operations()).for_each(|it| conversion.operation(it));
        }
        if let Some(unused) = conversion.exclusions.iter().find(|exclusion| !exclusion.is_used) {
            error(module, &format!("no convolution or matrix product has a name like '{}'", unused.pattern));
            return Err(Failure);
        }
        Ok(conversion.statistics)
    }

    /// Returns the type that is fastest on all devices of the system; `f32` if they differ.
    fn fastest(&self, module: Operation<'_>) -> Result<DType, String> {
        let cpu = Target::named(&self.cpu).map_err(|error| error.to_string())?;
        let is_declared = |operation: &Operation<'_>| self.system.is_empty() && operation.name() == op::DEVICE;
        let declared = module.children().into_iter().filter(is_declared);
        let mut kinds: Vec<String> = declared.filter_map(|device| Some(device.get(attr::KIND)?.to_owned())).collect();
        if kinds.is_empty() {
            let name = if self.system.is_empty() { "host" } else { &self.system };
            let system = System::load(name).map_err(|error| error.to_string())?;
            kinds.extend(system.devices.iter().map(|device| device.kind.name().to_owned()));
        }
        let fastest = |kind: &String| backends::find(kind).map_or(DType::F32, |it| it.fastest_precision(&cpu));
        let mut types = kinds.iter().map(fastest);
        let first = types.next().filter(|first| types.all(|other| other == *first));
        Ok(first.unwrap_or(DType::F32))
    }
}

/// Element types that operators are converted between, with their names in options.
const PRECISIONS: [(&str, DType); 3] = [("f32", DType::F32), ("bf16", DType::BF16), ("f16", DType::F16)];

fn parse(precision: &str) -> Option<DType> {
    PRECISIONS.iter().find(|(name, _)| *name == precision).map(|&(_, dtype)| dtype)
}

fn name_of(dtype: DType) -> &'static str {
    PRECISIONS.iter().find(|(_, other)| *other == dtype).map_or("", |(name, _)| name)
}

/// Relation between an operator and half precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Faster in half precision: its operands are rounded.
    Converted,
    /// Computed in the type of its operands, so that values stay in half precision between converted operators.
    Following,
    /// Computed in `f32`, since rounded operands or results would cost accuracy.
    Kept,
}

impl Role {
    fn of(operation: Operation<'_>) -> Self {
        match operation.op() {
            None | Some(Op::Exp | Op::Pow) => Self::Kept,
            Some(Op::AveragePool | Op::BatchNormalizationInferenceMode) => Self::Following,
            Some(op) => match op.half_precision() {
                Some(HalfPrecision::Elementwise | HalfPrecision::Move) => Self::Following,
                Some(HalfPrecision::Sum) if matches!(op.class(), CostClass::Conv | CostClass::MatMul) => {
                    Self::Converted
                }
                Some(HalfPrecision::Sum) | None => Self::Kept,
            },
        }
    }
}

/// Pattern of names of operators that keep `f32`.
struct Exclusion<'a> {
    pattern: &'a str,
    is_used: bool,
}

struct Conversion<'a, 'm> {
    precision: DType,
    exclusions: Vec<Exclusion<'a>>,
    /// Half-precision types of the results of converted operators.
    converted: FxHashMap<Value<'m>, DType>,
    /// Values that depend on constants only.
    constant: FxHashSet<Value<'m>>,
    /// By value and element type: the result of its Cast.
    casts: FxHashMap<(Value<'m>, DType), Value<'m>>,
    statistics: ConvertPrecisionStatistics,
}

impl<'m> Conversion<'_, 'm> {
    /// Converts an operator, whose operands have been converted.
    fn operation(&mut self, operation: Operation<'m>) {
        let operands = self.operands_to_convert(operation);
        let dtype = match Role::of(operation) {
            Role::Converted => self.wanted(operation),
            Role::Following => self.type_of_operands(operation, &operands),
            Role::Kept => None,
        };
        let dtype = dtype.filter(|dtype| operands.iter().all(|&index| fits(operation.operand(index), *dtype)));
        let Some(dtype) = dtype.filter(|_| !operands.is_empty()) else {
            // Operators with regions may use values of the function in these.
            operation.walk(|inner| self.widen_operands(inner));
            let is_constant = |value: Value<'m>| value.is_none() || self.constant.contains(&value);
            let is_computed = operation.blocks().is_empty() && operation.op().is_some_and(|op| !op.is_random());
            if is_computed && operation.operands().into_iter().all(is_constant) {
                self.constant.extend(operation.results());
            }
            return;
        };
        for index in operands {
            let value = self.cast(operation.operand(index), dtype);
            operation.set_operand(index, value);
        }
        for result in operation.results() {
            if let Some(ty) = result.tensor_type().filter(|ty| ty.dtype == DType::F32) {
                result.set_type(tensor_type(operation.context(), &TensorType { dtype, ..ty }));
                self.converted.insert(result, dtype);
            }
        }
        self.statistics.num_converted += 1;
    }

    /// Returns the indices of the operands that share the type of the result.
    fn operands_to_convert(&self, operation: Operation<'m>) -> Vec<usize> {
        // Its scale, offset, mean and variance may have other types than the operand that is normalized.
        let is_only_first = operation.op() == Some(Op::BatchNormalizationInferenceMode);
        let count = if is_only_first { 1 } else { usize::MAX };
        let is_f32 = |value: Value<'_>| value.tensor_type().is_some_and(|ty| ty.dtype == DType::F32);
        let operands = operation.operands().into_iter().take(count).enumerate();
        let found = operands.filter(|(_, value)| self.converted.contains_key(value) || is_f32(*value));
        found.map(|(index, _)| index).collect()
    }

    /// Returns the half-precision type that an operator with [`Role::Converted`] shall have, if any.
    fn wanted(&mut self, operation: Operation<'m>) -> Option<DType> {
        let name = operation.get(attr::NODE_NAME).unwrap_or_default();
        let mut is_excluded = false;
        for exclusion in self.exclusions.iter_mut().filter(|exclusion| matches(exclusion.pattern, name)) {
            (exclusion.is_used, is_excluded) = (true, true);
        }
        let precision = operation.get(attr::PRECISION).and_then(parse).unwrap_or(self.precision);
        (!is_excluded && precision != DType::F32).then_some(precision)
    }

    /// Returns the half-precision type that all operands have, besides constants.
    fn type_of_operands(&self, operation: Operation<'m>, indices: &[usize]) -> Option<DType> {
        let operands = indices.iter().map(|&index| operation.operand(index));
        let mut types =
            operands.filter(|value| !self.constant.contains(value)).map(|value| self.converted.get(&value).copied());
        let first = types.next()??;
        types.all(|dtype| dtype == Some(first)).then_some(first)
    }

    /// Makes an operator of `f32` read converted values as `f32`.
    fn widen_operands(&mut self, operation: Operation<'m>) {
        for (index, value) in operation.operands().into_iter().enumerate() {
            if self.converted.contains_key(&value) {
                let value = self.cast(value, DType::F32);
                operation.set_operand(index, value);
            }
        }
    }

    /// Returns a value in another type.
    fn cast(&mut self, value: Value<'m>, dtype: DType) -> Value<'m> {
        let Some(ty) = value.tensor_type().filter(|ty| ty.dtype != dtype) else { return value };
        if let Some(&cast) = self.casts.get(&(value, dtype)) {
            return cast;
        }
        let definer = value.defining_op();
        let location = value.location();
        if let Some(number) = definer.and_then(|definer| Some((definer, rounded_number(value, dtype)?))) {
            let result = self.constant(number.0, &number.1);
            self.casts.insert((value, dtype), result);
            return result;
        }
        let r#type = tensor_type(location.context(), &TensorType { dtype, ..ty });
        let to = attr::type_attribute(element_type(location.context(), dtype));
        let mut attributes = vec![NamedAttribute::with_name("to", to)];
        let name = definer.and_then(|definer| definer.get(attr::NODE_NAME));
        let name = name.map(|name| format!("{name}/to_{}", name_of(dtype)));
        attributes.extend(name.as_deref().map(|name| attr::NODE_NAME.named(location.context(), name)));
        let new = NewOperation {
            operands: &[value],
            results: &[r#type],
            attributes: &attributes,
            ..NewOperation::new(Op::Cast.operation_name(), location)
        };
        let cast = match (definer, value.argument_block()) {
            (Some(definer), _) => new.create().insert_after(definer),
            (None, Some(block)) => new.create().insert_at(block, 0),
            (None, None) => return value,
        };
        let result = cast.result(0);
        self.casts.insert((value, dtype), result);
        if self.constant.contains(&value) {
            self.constant.insert(result);
        }
        self.statistics.num_casts += 1;
        result
    }

    /// Inserts a constant after the one that it was rounded from.
    fn constant(&mut self, original: Operation<'m>, tensor: &Tensor) -> Value<'m> {
        let new = new_constant(original.location(), tensor, original.get(attr::NODE_NAME));
        let result = new.insert_after(original).result(0);
        self.constant.insert(result);
        result
    }
}

/// Returns the value of a constant with one element in another type.
fn rounded_number(value: Value<'_>, dtype: DType) -> Option<Tensor> {
    let known = inference_value(value)?;
    let tensor = known.tensor().filter(|tensor| tensor.count() == 1)?;
    Tensor::from_floats(dtype, tensor.dims().to_vec(), &tensor.floats()?)
}

/// Returns true if no finite element of a small constant becomes infinite in a type.
fn fits(value: Value<'_>, dtype: DType) -> bool {
    let known = if dtype == DType::F16 { inference_value(value) } else { None };
    let floats = known.as_ref().and_then(Known::tensor).and_then(Tensor::floats);
    floats.is_none_or(|floats| floats.iter().all(|float| !float.is_finite() || float.abs() <= F16_MAX))
}
