//! The walk over a model's graph: names, order, inputs and outputs. How one node becomes operations is in `apply`.

use super::{
    Options, Source, Warning,
    attributes::Arguments,
    constants::Constant,
    diagnostics::{Error, NodeName},
    emit::Emitter,
    proto::{FunctionProto, GraphProto, ModelProto, NodeProto, ValueInfoProto},
    types::ValueType,
};
use divi_onnx::{Dim, TensorType, Value};
use melior::{Context, ir::Module};
use mlir_sys::*;
use prost::Message;
use rustc_hash::{FxHashMap, FxHashSet};

/// A value of the model, by its place in [`Translator::values`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ValueId(usize);

/// What is known of a value, and what stands for it in the IR.
pub(super) struct Slot {
    pub(super) kind: Kind,
    /// The IR's value; constants get one when they are first used.
    pub(super) mlir: Option<MlirValue>,
    pub(super) constant: Option<Constant>,
}

pub(super) enum Kind {
    Tensor(Value),
    Other(MlirType),
}

/// Names that are visible. A function's body does not see its caller's.
pub(super) struct Scope<'m> {
    names: FxHashMap<&'m str, ValueId>,
    declared: Declared<'m>,
    sees_outer: bool,
}

/// Types that the model declares for values, decoded when the first is asked for.
struct Declared<'m> {
    graph: Option<&'m GraphProto>,
    types: Option<FxHashMap<String, ValueInfoProto>>,
}

/// The state of one import.
pub(super) struct Translator<'c, 'm> {
    pub(super) emitter: Emitter<'c>,
    pub(super) source: &'m Source,
    pub(super) options: &'m Options,
    pub(super) opset: i64,
    pub(super) functions: FxHashMap<(&'m str, &'m str, &'m str), &'m FunctionProto>,
    pub(super) values: Vec<Slot>,
    scopes: Vec<Scope<'m>>,
    pub(super) symbols: FxHashMap<String, Dim>,
    pub(super) symbol_names: Vec<String>,
    /// The node being translated, for messages and locations.
    pub(super) current: NodeName,
    /// Functions being inlined, outermost first.
    pub(super) call_stack: Vec<&'m FunctionProto>,
    /// The attributes that each of those calls gives.
    pub(super) arguments: Vec<Arguments<'m>>,
    /// Parameters that each of those calls leaves out.
    pub(super) absent: Vec<Vec<&'m str>>,
    pub(super) inlined_nodes: usize,
    /// Operators carried along without being understood, with how often and where first.
    pub(super) opaque: std::collections::BTreeMap<String, (usize, String)>,
    /// Results whose shape inference left open although its operands' were known, and the first of them.
    pub(super) data_dependent: Option<(usize, String)>,
    pub(super) warnings: Vec<Warning>,
    pub(super) no_value: Option<MlirValue>,
    /// Dimensions of inputs that stay open.
    open_dimensions: Vec<String>,
    /// Bytes of folded constants so far.
    pub(super) folded_bytes: usize,
}

/// What went wrong, to be completed with file and node.
pub(super) type Result<T> = std::result::Result<T, String>;

pub(super) fn translate<'c>(
    context: &'c Context,
    source: &Source,
    options: &Options,
    model: &ModelProto,
    graph: &GraphProto,
    opset: i64,
) -> std::result::Result<(Module<'c>, Vec<Warning>), Error> {
    let mut translator = Translator {
        emitter: Emitter::new(context, &source.name),
        source,
        options,
        opset,
        functions: FxHashMap::default(),
        values: Vec::with_capacity(graph.node.len() + graph.initializer.len()),
        scopes: vec![],
        symbols: FxHashMap::default(),
        symbol_names: vec![],
        current: NodeName { name: String::new(), op: String::new() },
        call_stack: vec![],
        arguments: vec![],
        absent: vec![],
        inlined_nodes: 0,
        opaque: Default::default(),
        data_dependent: None,
        warnings: vec![],
        no_value: None,
        open_dimensions: vec![],
        folded_bytes: 0,
    };
    // SAFETY: the location belongs to the context; the module owns what is put into it.
    let module = unsafe { Module::from_raw(mlirModuleCreateEmpty(translator.emitter.file_location())) };
    match translator.model(model, graph, &module) {
        Ok(()) => Ok((module, translator.warnings)),
        Err(message) => {
            let node = (!translator.current.op.is_empty()).then_some(translator.current);
            Err(Error::new(&source.name, node, message))
        }
    }
}

impl<'m> Translator<'_, 'm> {
    pub(super) fn warn(&mut self, message: String) {
        self.warnings.push(Warning::new(&self.source.name, message));
    }

    fn model(&mut self, model: &'m ModelProto, graph: &'m GraphProto, module: &Module<'_>) -> Result<()> {
        if !model.training_info.is_empty() {
            self.warn("training information is left out: divi compiles inference".into());
        }
        for function in &model.functions {
            let key = (function.domain(), function.name(), function.overload());
            if self.functions.insert(key, function).is_some() {
                return Err(format!(
                    "function '{}' of domain '{}' is defined twice",
                    function.name(),
                    function.domain()
                ));
            }
        }
        self.function(graph, module)?;
        self.report_open_ends();
        Ok(())
    }

    /// The model's graph as `func.func @main`.
    fn function(&mut self, graph: &'m GraphProto, module: &Module<'_>) -> Result<()> {
        // SAFETY: a block without arguments; it goes into the function's region below, also when translation fails.
        let block = unsafe { mlirBlockCreate(0, std::ptr::null(), std::ptr::null()) };
        // SAFETY: the region takes ownership of the block, and `body` of the region until the function has it.
        let region = unsafe {
            let region = mlirRegionCreate();
            mlirRegionAppendOwnedBlock(region, block);
            region
        };
        self.emitter.enter(block);
        let outcome = self.function_body(graph, block);
        self.emitter.leave();
        let (argument_attributes, results, result_attributes) = match outcome {
            Ok(signature) => signature,
            Err(message) => {
                // SAFETY: nobody else has the region.
                unsafe { mlirRegionDestroy(region) };
                return Err(message);
            }
        };
        let raw = self.emitter.context.to_raw();
        // SAFETY: all slices outlive the calls, and the function takes ownership of the region.
        unsafe {
            let arguments: Vec<_> = (0..mlirBlockGetNumArguments(block))
                .map(|i| mlirValueGetType(mlirBlockGetArgument(block, i)))
                .collect();
            let function_type = mlirFunctionTypeGet(
                raw,
                arguments.len() as isize,
                arguments.as_ptr(),
                results.len() as isize,
                results.as_ptr(),
            );
            let array =
                |attributes: &[MlirAttribute]| mlirArrayAttrGet(raw, attributes.len() as isize, attributes.as_ptr());
            let attributes = [
                self.emitter.named("arg_attrs", array(&argument_attributes)),
                self.emitter.named("function_type", mlirTypeAttrGet(function_type)),
                self.emitter.named("res_attrs", array(&result_attributes)),
                self.emitter.named("sym_name", self.emitter.string("main")),
            ];
            self.emitter.enter(mlirModuleGetBody(module.to_raw()));
            let location = self.emitter.location(graph.name());
            self.emitter.operation("func.func", location, &[], &[], &attributes, &[region], false);
            self.emitter.leave();
        }
        Ok(())
    }

    /// Arguments' attributes, results' types, results' attributes.
    #[allow(clippy::type_complexity)]
    fn function_body(
        &mut self,
        graph: &'m GraphProto,
        block: MlirBlock,
    ) -> Result<(Vec<MlirAttribute>, Vec<MlirType>, Vec<MlirAttribute>)> {
        self.push_scope(Some(graph), false);
        let arguments = self.inputs(graph, block)?;
        self.graph_nodes(graph)?;
        let mut operands = vec![];
        let mut results = vec![];
        let mut result_attributes = vec![];
        self.current.op.clear();
        for output in &graph.output {
            let name = output.name();
            let id = self.lookup(name).ok_or_else(|| {
                format!("output '{name}' is neither an input, an initializer, nor the result of a node")
            })?;
            self.check_output(output, id)?;
            operands.push(self.materialize(id)?);
            results.push(self.type_of(id));
            let dims = self.dim_params(id);
            result_attributes.push(self.value_attributes(name, dims));
        }
        let location = self.emitter.file_location();
        self.emitter.operation("func.return", location, &operands, &[], &[], &[], false);
        self.pop_scope();
        Ok((arguments, results, result_attributes))
    }

    /// Graph inputs become arguments, but for those that an initializer gives a value.
    fn inputs(&mut self, graph: &'m GraphProto, block: MlirBlock) -> Result<Vec<MlirAttribute>> {
        let initialized: FxHashSet<&str> = graph.initializer.iter().map(|tensor| tensor.name.as_str()).collect();
        for (name, _) in &self.options.input_shapes {
            if !graph.input.iter().any(|input| input.name() == name) {
                let names: Vec<_> = graph.input.iter().map(|input| format!("'{}'", input.name())).collect();
                return Err(format!("has no input '{name}' to give a shape: its inputs are {}", names.join(", ")));
            }
        }
        let mut types = vec![];
        for input in graph.input.iter().filter(|input| !initialized.contains(input.name())) {
            let declared = self
                .declared_type(input.r#type.as_ref())
                .and_then(|ty| ty.ok_or_else(|| "declares no type".to_owned()))
                .map_err(|message| format!("input '{}' {message}", input.name()))?;
            types.push((input.name(), declared));
        }
        self.fix_batch(&mut types)?;
        let mut attributes = vec![];
        for (name, mut declared) in types {
            if let ValueType::Tensor(ty) = &mut declared {
                self.fix_shape(name, ty)?;
                self.note_open_dimensions(name, ty);
            }
            let mlir_type = self.mlir_type(&declared);
            let location = self.emitter.location(name);
            // SAFETY: block, type and location belong to this import.
            let value = unsafe { mlirBlockAddArgument(block, mlir_type, location) };
            let kind = match declared {
                ValueType::Tensor(ty) => Kind::Tensor(Value::new(ty)),
                ValueType::Other(ty) => Kind::Other(ty),
            };
            let id = self.add(Slot { kind, mlir: Some(value), constant: None });
            self.bind(name, id)?;
            let dims = self.dim_params(id);
            attributes.push(self.value_attributes(name, dims));
        }
        Ok(attributes)
    }

    /// `--batch`: the first dimension of every input that leaves it open, and every dimension of the same name.
    fn fix_batch(&mut self, types: &mut [(&'m str, ValueType)]) -> Result<()> {
        let Some(batch) = self.options.batch else { return Ok(()) };
        let mut fixed = vec![];
        let mut found = false;
        for (name, ty) in types.iter_mut() {
            if self.options.input_shapes.iter().any(|(other, _)| other == name) {
                found = true;
                continue;
            }
            let ValueType::Tensor(TensorType { shape: Some(shape), .. }) = ty else { continue };
            match shape.first_mut() {
                Some(first @ (Dim::Symbol(_) | Dim::Unknown)) => {
                    fixed.push(*first);
                    *first = Dim::Known(batch);
                    found = true;
                }
                Some(Dim::Known(size)) if *size == batch => found = true,
                _ => {}
            }
        }
        if !found {
            return Err(format!(
                "has no input whose first dimension is open, so there is no batch to set to {batch}: give shapes with \
                 --input-shape=NAME:{batch}x…"
            ));
        }
        fixed.retain(|dim| matches!(dim, Dim::Symbol(_)));
        for dim in self.symbols.values_mut().filter(|dim| fixed.contains(dim)) {
            *dim = Dim::Known(batch);
        }
        for (_, ty) in types {
            if let ValueType::Tensor(TensorType { shape: Some(shape), .. }) = ty {
                shape.iter_mut().filter(|dim| fixed.contains(dim)).for_each(|dim| *dim = Dim::Known(batch));
            }
        }
        Ok(())
    }

    /// `--input-shape`, which also says what the named dimensions are.
    fn fix_shape(&mut self, name: &str, ty: &mut TensorType) -> Result<()> {
        if let Some((_, dims)) = self.options.input_shapes.iter().find(|(other, _)| other == name) {
            if let Some(shape) = &ty.shape {
                if shape.len() != dims.len() {
                    return Err(format!(
                        "input '{name}' has rank {}, but --input-shape gives it {}",
                        shape.len(),
                        dims.len()
                    ));
                }
                for (&declared, &dim) in shape.iter().zip(dims) {
                    if let Some(name) = self.symbol_name(declared).map(str::to_owned) {
                        self.symbols.insert(name, Dim::Known(dim));
                    }
                }
            }
            ty.shape = Some(dims.iter().copied().map(Dim::Known).collect());
        } else if let Some(shape) = &mut ty.shape {
            // A dimension may have been fixed by an input that came before.
            for dim in shape {
                if let Some(fixed) = self.symbol_name(*dim).and_then(|name| self.symbols.get(name)) {
                    *dim = *fixed;
                }
            }
        }
        Ok(())
    }

    /// Translates the nodes of a graph, or of a subgraph whose scope is open.
    pub(super) fn graph_nodes(&mut self, graph: &'m GraphProto) -> Result<()> {
        for tensor in &graph.initializer {
            let id = self.initializer(tensor).map_err(|message| format!("initializer '{}' {message}", tensor.name))?;
            self.bind(&tensor.name, id)?;
        }
        for sparse in &graph.sparse_initializer {
            let name = sparse.values.as_ref().map_or("", |values| &values.name);
            let id = self.sparse_initializer(sparse).map_err(|message| format!("initializer '{name}' {message}"))?;
            self.bind(name, id)?;
        }
        self.nodes(&graph.node)
    }

    /// Translates nodes in the order in which they depend on each other, which is nearly always the order they are in.
    pub(super) fn nodes(&mut self, nodes: &'m [NodeProto]) -> Result<()> {
        let mut producers: Option<FxHashMap<&'m str, usize>> = None;
        let mut done = vec![false; nodes.len()];
        for start in 0..nodes.len() {
            let mut path = vec![start];
            while let Some(&index) = path.last() {
                if done[index] {
                    path.pop();
                    continue;
                }
                let node = &nodes[index];
                let Some(missing) = self.first_missing(node) else {
                    self.node(node)?;
                    done[index] = true;
                    path.pop();
                    continue;
                };
                let producers = producers.get_or_insert_with(|| {
                    let outputs = |(index, node): (usize, &'m NodeProto)| {
                        node.output.iter().map(move |output| (output.as_str(), index))
                    };
                    nodes.iter().enumerate().flat_map(outputs).collect()
                });
                self.enter_node(node);
                match producers.get(missing) {
                    Some(&producer) if path.contains(&producer) => {
                        let cycle: Vec<_> = path
                            .iter()
                            .skip_while(|&&index| index != producer)
                            .map(|&index| format!("'{}'", display_name(&nodes[index])))
                            .take(8)
                            .collect();
                        return Err(format!("is part of a cycle: {}", cycle.join(" needs ")));
                    }
                    // A node that is done has bound its outputs, so a missing one was never there.
                    Some(&producer) if !done[producer] => path.push(producer),
                    _ => {
                        return Err(format!(
                            "needs '{missing}', which is neither an input, an initializer, nor the result of a node"
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    /// The first value that a node needs, or its subgraphs do, and that is not there yet.
    fn first_missing(&self, node: &'m NodeProto) -> Option<&'m str> {
        let absent = self.absent.last().map_or(&[][..], Vec::as_slice);
        let missing = |name: &&'m str| !name.is_empty() && self.lookup(name).is_none() && !absent.contains(name);
        let mut inputs = node.input.iter().map(String::as_str);
        inputs.find(missing).or_else(|| self.captures(node).into_iter().find(missing))
    }

    pub(super) fn enter_node(&mut self, node: &NodeProto) {
        self.current.name.clear();
        self.current.name.push_str(display_name(node));
        self.current.op.clear();
        self.current.op.push_str(node.op_type());
    }

    // --- names ---------------------------------------------------------------

    pub(super) fn push_scope(&mut self, graph: Option<&'m GraphProto>, sees_outer: bool) {
        let declared = Declared { graph, types: None };
        self.scopes.push(Scope { names: FxHashMap::default(), declared, sees_outer });
    }

    pub(super) fn pop_scope(&mut self) {
        self.scopes.pop();
    }

    pub(super) fn lookup(&self, name: &str) -> Option<ValueId> {
        for scope in self.scopes.iter().rev() {
            if let Some(&id) = scope.names.get(name) {
                return Some(id);
            }
            if !scope.sees_outer {
                break;
            }
        }
        None
    }

    /// Gives a value its name, which nothing else in the graph may have.
    pub(super) fn bind(&mut self, name: &'m str, id: ValueId) -> Result<()> {
        let scope = self.scopes.last_mut().expect("a scope is open while a graph is translated");
        match scope.names.insert(name, id) {
            None => Ok(()),
            Some(_) => Err(format!("defines '{name}', which is defined already: names of values must be unique")),
        }
    }

    pub(super) fn add(&mut self, slot: Slot) -> ValueId {
        self.values.push(slot);
        ValueId(self.values.len() - 1)
    }

    pub(super) fn slot(&self, id: ValueId) -> &Slot {
        &self.values[id.0]
    }

    pub(super) fn slot_mut(&mut self, id: ValueId) -> &mut Slot {
        &mut self.values[id.0]
    }

    pub(super) fn type_of(&self, id: ValueId) -> MlirType {
        match &self.slot(id).kind {
            Kind::Tensor(value) => self.emitter.tensor_type(&value.ty),
            Kind::Other(ty) => *ty,
        }
    }

    // --- declared types ------------------------------------------------------

    /// The type that the innermost graph declares for a value.
    pub(super) fn declared(&mut self, name: &str) -> Result<Option<ValueType>> {
        let scope = self.scopes.last_mut().expect("a scope is open while a graph is translated");
        let Some(graph) = scope.declared.graph else { return Ok(None) };
        let types = match &mut scope.declared.types {
            Some(types) => types,
            empty => {
                let mut types = FxHashMap::default();
                for bytes in &graph.value_info {
                    let info = ValueInfoProto::decode(bytes.clone())
                        .map_err(|error| format!("has value_info that is damaged ({error})"))?;
                    types.insert(info.name().to_owned(), info);
                }
                types.extend(graph.output.iter().map(|output| (output.name().to_owned(), output.clone())));
                empty.insert(types)
            }
        };
        let Some(info) = types.get(name) else { return Ok(None) };
        let ty = info.r#type.clone();
        self.declared_type(ty.as_ref()).map_err(|message| format!("declares '{name}', which {message}"))
    }

    /// What a graph declares of an output must not contradict what its nodes compute.
    fn check_output(&mut self, output: &ValueInfoProto, id: ValueId) -> Result<()> {
        let name = output.name();
        let declared =
            self.declared_type(output.r#type.as_ref()).map_err(|message| format!("output '{name}' {message}"))?;
        let (Some(ValueType::Tensor(declared)), Kind::Tensor(value)) = (declared, &self.slot(id).kind) else {
            return Ok(());
        };
        if declared.dtype != value.ty.dtype {
            return Err(format!(
                "output '{name}' is declared {}, but its nodes compute {}: correct the model's output or add a Cast",
                declared.dtype, value.ty.dtype
            ));
        }
        if declared.unify(&value.ty).is_none() && !self.options.overrides_shapes() {
            let message =
                format!("output '{name}' is declared {declared}, but its nodes compute {}: the latter holds", value.ty);
            self.warn(message);
        }
        Ok(())
    }

    /// The attributes of an argument or result: its name, and those of its dimensions (`0:batch,2:length`).
    fn value_attributes(&mut self, name: &str, dim_params: String) -> MlirAttribute {
        let mut attributes = vec![];
        if !dim_params.is_empty() {
            let text = self.emitter.string(&dim_params);
            attributes.push(self.emitter.named("onnx.dim_params", text));
        }
        let text = self.emitter.string(name);
        attributes.push(self.emitter.named("onnx.name", text));
        // SAFETY: the attributes outlive the call.
        unsafe { mlirDictionaryAttrGet(self.emitter.context.to_raw(), attributes.len() as isize, attributes.as_ptr()) }
    }

    fn dim_params(&self, id: ValueId) -> String {
        let Kind::Tensor(Value { ty: TensorType { shape: Some(shape), .. }, .. }) = &self.slot(id).kind else {
            return String::new();
        };
        let named = shape.iter().enumerate().filter_map(|(i, &dim)| Some(format!("{i}:{}", self.symbol_name(dim)?)));
        named.collect::<Vec<_>>().join(",")
    }

    /// Says what was carried along and what stays dynamic.
    fn report_open_ends(&mut self) {
        if !self.opaque.is_empty() {
            let list: Vec<_> =
                self.opaque.iter().map(|(op, (count, first))| format!("{op} ({count}, first '{first}')")).collect();
            self.warn(format!("carried along as opaque work: {}", list.join(", ")));
        }
        if !self.open_dimensions.is_empty() {
            self.open_dimensions.truncate(8);
            let open = self.open_dimensions.join(", ");
            self.warn(format!("stays dynamic: {open}; fix with --batch=N or --input-shape=NAME:AxBxC"));
        } else if let Some((count, first)) = self.data_dependent.take() {
            self.warn(format!(
                "{count} {} a shape that depends on data, the first is of node '{first}'",
                if count == 1 { "result has" } else { "results have" }
            ));
        }
    }

    fn note_open_dimensions(&mut self, name: &str, ty: &TensorType) {
        let Some(shape) = &ty.shape else {
            self.open_dimensions.push(format!("the shape of '{name}'"));
            return;
        };
        for (i, &dim) in shape.iter().enumerate().filter(|(_, dim)| dim.known().is_none()) {
            let symbol = self.symbol_name(dim).map_or(String::new(), |symbol| format!(" ({symbol})"));
            self.open_dimensions.push(format!("dimension {i}{symbol} of '{name}'"));
        }
    }
}

/// What messages call a node: its name, or the name of its first result.
pub(super) fn display_name(node: &NodeProto) -> &str {
    if !node.name().is_empty() {
        return node.name();
    }
    node.output.iter().map(String::as_str).find(|name| !name.is_empty()).unwrap_or("")
}
