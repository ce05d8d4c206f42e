//! Random functions as text: convolutions, products, decomposed activations, branches, views, pins.

use divi_test::random::Random;
use std::fmt::Write;

/// All tensors have 256 elements, in one of these shapes.
const SHAPES: [&str; 3] = ["tensor<1x4x8x8xf32>", "tensor<1x32x8xf32>", "tensor<32x8xf32>"];

struct Value {
    name: String,
    shape: usize,
    readers: usize,
}

pub(crate) struct Generator<'a> {
    random: &'a mut Random,
    text: String,
    values: Vec<Value>,
    nodes: usize,
    /// One in this many operators is pinned to one of two devices; 0 for none.
    pinned_one_in: usize,
}

/// Generates a module with a function of about `size` operators.
pub(crate) fn random_module(random: &mut Random, size: usize) -> String {
    let pinned_one_in = *random.choose(&[0, 0, 2, 10]);
    let mut generator = Generator { random, text: String::new(), values: vec![], nodes: 0, pinned_one_in };
    for shape in [0, 0, 1] {
        let name = format!("%arg{}", generator.values.len());
        generator.values.push(Value { name, shape, readers: 0 });
    }
    while generator.nodes < size {
        generator.step();
    }
    generator.finish()
}

const HEADER: &str = r#"
divi.device @cpu0 {kind = "cpu", memory = 1024 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1024 : i64}
func.func @main(%arg0: tensor<1x4x8x8xf32>, %arg1: tensor<1x4x8x8xf32>, %arg2: tensor<1x32x8xf32>) -> "#;

const CONSTANTS: &str = r"
  %absent = &onnx.NoValue&() <{value}> : () -> none
  %kernel = onnx.Constant dense<0.5> : tensor<4x4x1x1xf32>
  %channel = onnx.Constant dense<1.0> : tensor<4xf32>
  %matrix = onnx.Constant dense<0.5> : tensor<8x8xf32>
  %column = onnx.Constant dense<1.0> : tensor<8xf32>
  %half = onnx.Constant dense<0.5> : tensor<f32>
  %one = onnx.Constant dense<1.0> : tensor<f32>
  %two = onnx.Constant dense<2.0> : tensor<f32>
  %root = onnx.Constant dense<0.707106769> : tensor<f32>
  %last = onnx.Constant dense<-1> : tensor<1xi64>
  %shape0 = onnx.Constant dense<[1, 4, 8, 8]> : tensor<4xi64>
  %shape1 = onnx.Constant dense<[1, 32, 8]> : tensor<3xi64>
  %shape2 = onnx.Constant dense<[32, 8]> : tensor<2xi64>
";

impl Generator<'_> {
    /// Adds one operator, or a few that belong together.
    fn step(&mut self) {
        let x = self.pick();
        let shape = self.values[x].shape;
        match self.random.below(16) {
            0 | 1 => self.unary(x, &["Relu", "Tanh", "Sigmoid", "HardSwish", "Abs", "Exp"]),
            2..=4 if shape == 0 => self.convolution(x),
            5 | 6 => self.product(x),
            7 | 8 => {
                let y = self.pick();
                if self.values[y].shape == shape {
                    let op = *self.random.choose(&["Add", "Add", "Add", "Mul", "Sub"]);
                    self.emit(op, &[x, y], &[], shape, "");
                }
            }
            9 => self.view(x),
            10 => {
                let op = *self.random.choose(&["Mul", "Add", "Div"]);
                self.emit(op, &[x], &[("%half", "tensor<f32>")], shape, "");
            }
            11 => self.emit("Softmax", &[x], &[], shape, "axis = -1 : si64, "),
            12 if shape == 0 => self.emit("MaxPoolSingleOut", &[x], &[], 0, "kernel_shape = [1, 1], "),
            13 => self.silu_or_gelu(x),
            14 => self.rms_norm(x),
            _ if shape == 0 => self.emit("FancyNewOp", &[x], &[], 0, ""),
            _ => self.emit("Identity", &[x], &[], shape, ""),
        }
    }

    fn unary(&mut self, x: usize, ops: &[&str]) {
        let op = *self.random.choose(ops);
        self.emit(op, &[x], &[], self.values[x].shape, "");
    }

    fn convolution(&mut self, x: usize) {
        let op = *self.random.choose(&["Conv", "Conv", "ConvTranspose"]);
        let bias = *self.random.choose(&[("%absent", "none"), ("%channel", "tensor<4xf32>")]);
        self.emit(op, &[x], &[("%kernel", "tensor<4x4x1x1xf32>"), bias], 0, "");
        if self.random.one_in(3) {
            return;
        }
        self.emit("BatchNormalizationInferenceMode", &[self.newest()], &[("%channel", "tensor<4xf32>"); 4], 0, "");
        if self.random.one_in(2) {
            self.unary(self.newest(), &["Relu", "Tanh"]);
        }
        if self.random.one_in(2) {
            self.emit("Add", &[x, self.newest()], &[], 0, "");
            if self.random.one_in(2) {
                self.unary(self.newest(), &["Relu"]);
            }
        }
    }

    fn product(&mut self, x: usize) {
        let shape = self.values[x].shape;
        if shape == 2 {
            self.emit("Gemm", &[x], &[("%matrix", "tensor<8x8xf32>"), ("%column", "tensor<8xf32>")], 2, "");
            return;
        }
        self.emit("MatMul", &[x], &[("%matrix", "tensor<8x8xf32>")], shape, "");
        if self.random.one_in(2) {
            self.emit("Add", &[self.newest()], &[("%column", "tensor<8xf32>")], shape, "");
        }
    }

    fn view(&mut self, x: usize) {
        let shape = self.random.below(SHAPES.len());
        let target = [("%shape0", "tensor<4xi64>"), ("%shape1", "tensor<3xi64>"), ("%shape2", "tensor<2xi64>")][shape];
        self.emit("Reshape", &[x], &[target], shape, "");
    }

    fn silu_or_gelu(&mut self, x: usize) {
        let shape = self.values[x].shape;
        if self.random.one_in(2) {
            self.emit("Sigmoid", &[x], &[], shape, "");
            self.emit("Mul", &[x, self.newest()], &[], shape, "");
            return;
        }
        self.emit("Mul", &[x], &[("%root", "tensor<f32>")], shape, "");
        self.emit("Erf", &[self.newest()], &[], shape, "");
        self.emit("Add", &[self.newest()], &[("%one", "tensor<f32>")], shape, "");
        self.emit("Mul", &[x, self.newest()], &[], shape, "");
        self.emit("Mul", &[self.newest()], &[("%half", "tensor<f32>")], shape, "");
    }

    fn rms_norm(&mut self, x: usize) {
        const REDUCED: [&str; 3] = ["tensor<1x4x8x1xf32>", "tensor<1x32x1xf32>", "tensor<32x1xf32>"];
        let shape = self.values[x].shape;
        self.emit("Pow", &[x], &[("%two", "tensor<f32>")], shape, "");
        let (squares, reduced) = (self.values[self.newest()].name.clone(), REDUCED[shape]);
        let first = self.nodes;
        let last = first + 2;
        self.nodes += 3;
        let full = SHAPES[shape];
        let _ = write!(
            self.text,
            r#"  %n{first} = "onnx.ReduceMean"({squares}, %last) {{onnx_node_name = "n{first}"}} : ({full}, tensor<1xi64>) -> {reduced}
  %n{} = "onnx.Sqrt"(%n{first}) {{onnx_node_name = "n{}"}} : ({reduced}) -> {reduced}
  %n{last} = "onnx.Div"({}, %n{}) {{onnx_node_name = "n{last}"}} : ({full}, {reduced}) -> {full}
"#,
            first + 1,
            first + 1,
            self.values[x].name,
            first + 1
        );
        let newest = self.newest();
        self.values[newest].readers += 1;
        self.values[x].readers += 1;
        self.values.push(Value { name: format!("%n{last}"), shape, readers: 0 });
    }

    fn newest(&self) -> usize {
        self.values.len() - 1
    }

    /// Picks the newest value with probability 2/3, to create chains, and otherwise any value, preferably a recent one.
    fn pick(&mut self) -> usize {
        let count = self.values.len();
        if self.random.one_in(3) {
            count - 1 - self.random.below(count).min(self.random.below(count))
        } else {
            count - 1
        }
    }

    fn emit(&mut self, op: &str, operands: &[usize], constants: &[(&str, &str)], shape: usize, attributes: &str) {
        let node = self.nodes;
        self.nodes += 1;
        let mut names: Vec<&str> = operands.iter().map(|&operand| &self.values[operand].name[..]).collect();
        let mut types: Vec<_> = operands.iter().map(|&operand| SHAPES[self.values[operand].shape]).collect();
        names.extend(constants.iter().map(|(name, _)| name));
        types.extend(constants.iter().map(|(_, ty)| ty));
        let pinned = self.pinned_one_in > 0 && self.random.one_in(self.pinned_one_in);
        let pin = if pinned { *self.random.choose(&["divi.pin = @cpu0, ", "divi.pin = @gpu0, "]) } else { "" };
        let _ = writeln!(
            self.text,
            r#"  %n{node} = "onnx.{op}"({}) {{{attributes}{pin}onnx_node_name = "n{node}"}} : ({}) -> {}"#,
            names.join(", "),
            types.join(", "),
            SHAPES[shape]
        );
        for &operand in operands {
            self.values[operand].readers += 1;
        }
        self.values.push(Value { name: format!("%n{node}"), shape, readers: 0 });
    }

    /// Returns all unused values of the function, and one other.
    fn finish(self) -> String {
        let extra = self.random.below(self.values.len());
        let computed = self.values.iter().enumerate().filter(|(_, value)| value.name.starts_with("%n"));
        let returned: Vec<_> =
            computed.filter(|(i, value)| value.readers == 0 || *i == extra).map(|(_, value)| value).collect();
        let names: Vec<_> = returned.iter().map(|value| &value.name[..]).collect();
        let types: Vec<_> = returned.iter().map(|value| SHAPES[value.shape]).collect();
        let types = types.join(", ");
        let constants = CONSTANTS.replace('&', "\"");
        format!("{HEADER}({types}) {{{constants}{}  return {} : {types}\n}}\n", self.text, names.join(", "))
    }
}
