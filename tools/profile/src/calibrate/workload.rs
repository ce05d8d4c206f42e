//! Networks that calibration measures: layers of the sizes and combinations of common image models and transformers.

use divi_onnx::Op;
use std::fmt::Write;

/// A network as text of the `onnx` dialect.
pub(super) struct Network {
    /// File name without extension.
    pub(super) name: &'static str,
    pub(super) text: String,
    /// True if it is measured on several threads, too.
    pub(super) shows_scaling: bool,
}

/// Returns all networks. Those with short and with long convolutions show what several threads gain.
pub(super) fn networks() -> Vec<Network> {
    vec![
        residual(),
        mobile(),
        branches(),
        groups(),
        squeezes(),
        transformer("encoder", 128, 768, 12),
        transformer("patches", 197, 384, 6),
        head(),
    ]
}

/// Function under construction.
#[derive(Default)]
struct Builder {
    body: String,
    arguments: Vec<Tensor>,
    results: Vec<Tensor>,
    values: usize,
    /// Bytes of weights, which are at successive offsets of a file that does not exist.
    weights: i64,
}

/// Constants of more elements are weights that are generated when the bundle is loaded: code generation copies others into it.
const INLINE_ELEMENTS: i64 = 64;

/// Value of a function.
#[derive(Clone, Debug)]
struct Tensor {
    name: String,
    shape: Vec<i64>,
}

impl Tensor {
    fn ty(&self) -> String {
        ty(&self.shape)
    }

    fn channels(&self) -> i64 {
        self.shape[1]
    }
}

fn ty(shape: &[i64]) -> String {
    let dims: String = shape.iter().map(|size| format!("{size}x")).collect();
    format!("tensor<{dims}f32>")
}

/// Window of a convolution or pool.
#[derive(Clone, Copy)]
struct Window {
    side: i64,
    stride: i64,
    pad: i64,
}

const fn window(side: i64, stride: i64) -> Window {
    Window { side, stride, pad: side / 2 }
}

impl Window {
    fn attributes(self) -> String {
        let Self { side, stride, pad } = self;
        format!("kernel_shape = [{side}, {side}], strides = [{stride}, {stride}], pads = [{pad}, {pad}, {pad}, {pad}]")
    }

    fn output(self, size: i64) -> i64 {
        (size + 2 * self.pad - self.side) / self.stride + 1
    }
}

impl Builder {
    fn argument(&mut self, shape: &[i64]) -> Tensor {
        let tensor = Tensor { name: format!("%arg{}", self.arguments.len()), shape: shape.to_vec() };
        self.arguments.push(tensor.clone());
        tensor
    }

    fn constant(&mut self, shape: &[i64]) -> Tensor {
        let (name, ty) = (self.name(), ty(shape));
        let count: i64 = shape.iter().product();
        // Writing to a String cannot fail.
        let _ = if count > INLINE_ELEMENTS {
            let (offset, length) = (self.weights, 4 * count);
            self.weights += length;
            let place = format!("\"calibration.weights\", offset = {offset}, length = {length}");
            writeln!(self.body, "  {name} = onnx.Constant #divi.external<{place}> : {ty}")
        } else {
            writeln!(self.body, "  {name} = \"onnx.Constant\"() {{value = dense<0.01> : {ty}}} : () -> {ty}")
        };
        Tensor { name, shape: shape.to_vec() }
    }

    fn indices(&mut self, numbers: &[i64]) -> String {
        let (name, ty) = (self.name(), format!("tensor<{}xi64>", numbers.len()));
        let _ =
            writeln!(self.body, "  {name} = \"onnx.Constant\"() {{value = dense<{numbers:?}> : {ty}}} : () -> {ty}");
        name
    }

    fn name(&mut self) -> String {
        self.values += 1;
        format!("%{}", self.values)
    }

    fn apply(&mut self, op: Op, operands: &[&Tensor], attributes: &str, shape: &[i64]) -> Tensor {
        let result = Tensor { name: self.name(), shape: shape.to_vec() };
        let names: Vec<&str> = operands.iter().map(|operand| &operand.name[..]).collect();
        let types: Vec<String> = operands.iter().map(|operand| operand.ty()).collect();
        let (names, types, to) = (names.join(", "), types.join(", "), result.ty());
        let attributes = if attributes.is_empty() { String::new() } else { format!(" {{{attributes}}}") };
        let op = op.name();
        let _ = writeln!(self.body, "  {} = \"onnx.{op}\"({names}){attributes} : ({types}) -> {to}", result.name);
        result
    }

    fn unary(&mut self, op: Op, x: &Tensor) -> Tensor {
        self.apply(op, &[x], "", &x.shape.clone())
    }

    fn binary(&mut self, op: Op, x: &Tensor, y: &Tensor) -> Tensor {
        self.apply(op, &[x, y], "", &x.shape.clone())
    }

    /// Adds a convolution with a bias.
    fn conv(&mut self, x: &Tensor, filters: i64, window: Window, groups: i64) -> Tensor {
        let weights = self.constant(&[filters, x.channels() / groups, window.side, window.side]);
        let bias = self.constant(&[filters]);
        let shape = [1, filters, window.output(x.shape[2]), window.output(x.shape[3])];
        let attributes = format!("group = {groups} : si64, dilations = [1, 1], {}", window.attributes());
        self.apply(Op::Conv, &[x, &weights, &bias], &attributes, &shape)
    }

    fn conv_relu(&mut self, x: &Tensor, filters: i64, window: Window) -> Tensor {
        let sum = self.conv(x, filters, window, 1);
        self.unary(Op::Relu, &sum)
    }

    fn pool(&mut self, op: Op, x: &Tensor, window: Window) -> Tensor {
        let shape = [1, x.channels(), window.output(x.shape[2]), window.output(x.shape[3])];
        self.apply(op, &[x], &window.attributes(), &shape)
    }

    fn silu(&mut self, x: &Tensor) -> Tensor {
        let gate = self.unary(Op::Sigmoid, x);
        self.binary(Op::Mul, x, &gate)
    }

    /// Adds a product with weights and a bias.
    fn dense(&mut self, x: &Tensor, columns: i64) -> Tensor {
        let weights = self.constant(&[x.shape[x.shape.len() - 1], columns]);
        let bias = self.constant(&[columns]);
        let shape = [&x.shape[..x.shape.len() - 1], &[columns]].concat();
        let product = self.apply(Op::MatMul, &[x, &weights], "", &shape);
        self.binary(Op::Add, &product, &bias)
    }

    fn layer_norm(&mut self, x: &Tensor) -> Tensor {
        let width = x.shape[x.shape.len() - 1];
        let (scale, bias) = (self.constant(&[width]), self.constant(&[width]));
        let name = self.name();
        let (operands, ty, vector) = (format!("{}, {}, {}", x.name, scale.name, bias.name), x.ty(), scale.ty());
        let _ = writeln!(
            self.body,
            "  {name}:3 = \"onnx.LayerNormalization\"({operands}) {{axis = -1 : si64}} : ({ty}, {vector}, {vector}) -> ({ty}, none, none)"
        );
        Tensor { name: format!("{name}#0"), shape: x.shape.clone() }
    }

    fn reshape(&mut self, x: &Tensor, shape: &[i64]) -> Tensor {
        let (sizes, name) = (self.indices(shape), self.name());
        let (from, to, count) = (x.ty(), ty(shape), shape.len());
        let _ = writeln!(
            self.body,
            "  {name} = \"onnx.Reshape\"({}, {sizes}) : ({from}, tensor<{count}xi64>) -> {to}",
            x.name
        );
        Tensor { name, shape: shape.to_vec() }
    }

    fn transpose(&mut self, x: &Tensor, order: &[usize]) -> Tensor {
        let shape: Vec<i64> = order.iter().map(|&axis| x.shape[axis]).collect();
        self.apply(Op::Transpose, &[x], &format!("perm = {order:?}"), &shape)
    }

    fn finish(mut self, name: &'static str, result: Tensor) -> Network {
        self.results.push(result);
        let arguments: Vec<String> = self
            .arguments
            .iter()
            .map(|argument| format!("{}: {} {{onnx.name = \"{}\"}}", argument.name, argument.ty(), &argument.name[1..]))
            .collect();
        let named = |(index, result): (usize, &Tensor)| format!("{} {{onnx.name = \"y{index}\"}}", result.ty());
        let types: Vec<String> = self.results.iter().enumerate().map(named).collect();
        let names: Vec<&str> = self.results.iter().map(|result| &result.name[..]).collect();
        let plain: Vec<String> = self.results.iter().map(Tensor::ty).collect();
        let text = format!(
            "func.func @main({}) -> ({}) {{\n{}  return {} : {}\n}}\n",
            arguments.join(", "),
            types.join(", "),
            self.body,
            names.join(", "),
            plain.join(", ")
        );
        Network { name, text, shows_scaling: matches!(name, "residual" | "mobile" | "branches") }
    }
}

/// Blocks of dense convolutions with residuals.
fn residual() -> Network {
    let mut b = Builder::default();
    let image = b.argument(&[1, 3, 224, 224]);
    let mut x = b.conv_relu(&image, 64, window(7, 2));
    x = b.pool(Op::MaxPoolSingleOut, &x, window(3, 2));
    for (filters, stride) in [(64, 1), (128, 2), (192, 2), (320, 1), (512, 2)] {
        let start = b.conv_relu(&x, filters, window(3, stride));
        let inner = b.conv_relu(&start, filters, window(3, 1));
        let narrow = b.conv_relu(&inner, filters / 2, window(1, 1));
        let wide = b.conv(&narrow, filters, window(1, 1), 1);
        let sum = b.binary(Op::Add, &wide, &start);
        x = b.unary(Op::Relu, &sum);
        let bottleneck = b.conv_relu(&x, 4 * filters, window(1, 1));
        x = b.conv_relu(&bottleneck, filters, window(1, 1));
    }
    let mean = b.apply(Op::GlobalAveragePool, &[&x], "", &[1, 512, 1, 1]);
    let flat = b.reshape(&mean, &[1, 512]);
    let scores = b.dense(&flat, 1000);
    b.finish("residual", scores)
}

/// Inverted bottlenecks: depthwise convolutions, gates and sigmoids.
fn mobile() -> Network {
    let mut b = Builder::default();
    let image = b.argument(&[1, 3, 224, 224]);
    let first = b.conv(&image, 32, window(3, 2), 1);
    let mut x = b.silu(&first);
    let blocks = [
        (24, 3, 2, 4),
        (24, 3, 1, 6),
        (40, 5, 2, 6),
        (40, 3, 1, 3),
        (80, 3, 2, 6),
        (112, 5, 1, 6),
        (192, 5, 2, 6),
        (192, 3, 1, 4),
    ];
    for (index, (filters, side, stride, factor)) in blocks.into_iter().enumerate() {
        let width = x.channels() * factor;
        let wide = b.conv(&x, width, window(1, 1), 1);
        let wide = if index % 2 == 0 { b.silu(&wide) } else { b.unary(Op::HardSwish, &wide) };
        let deep = b.conv(&wide, width, window(side, stride), width);
        let deep = if index % 3 == 0 { b.silu(&deep) } else { b.unary(Op::Relu, &deep) };
        let mean = b.apply(Op::GlobalAveragePool, &[&deep], "", &[1, width, 1, 1]);
        let squeezed = b.conv_relu(&mean, (width / 24).max(8), window(1, 1));
        let gate = b.conv(&squeezed, width, window(1, 1), 1);
        let gate = b.unary(Op::Sigmoid, &gate);
        let gated = b.binary(Op::Mul, &deep, &gate);
        let narrow = b.conv(&gated, filters, window(1, 1), 1);
        x = if narrow.shape == x.shape { b.binary(Op::Add, &narrow, &x) } else { narrow };
    }
    let last = b.conv(&x, 1280, window(1, 1), 1);
    let last = b.silu(&last);
    b.finish("mobile", last)
}

/// Branches whose results are joined, pools and convolutions with wide windows.
fn branches() -> Network {
    let mut b = Builder::default();
    let mut x = b.argument(&[1, 192, 35, 35]);
    for width in [64, 96, 160] {
        let one = b.conv_relu(&x, width, window(1, 1));
        let two = b.conv_relu(&x, width / 2, window(1, 1));
        let two = b.conv_relu(&two, width, window(5, 1));
        let three = b.pool(Op::AveragePool, &x, window(3, 1));
        let three = b.conv_relu(&three, width / 2, window(1, 1));
        let four = b.pool(Op::MaxPoolSingleOut, &x, window(3, 1));
        let shape = [1, one.channels() + two.channels() + three.channels() + four.channels(), x.shape[2], x.shape[3]];
        let joined = b.apply(Op::Concat, &[&one, &two, &three, &four], "axis = 1 : si64", &shape);
        let scaled = b.unary(Op::HardSwish, &joined);
        x = b.pool(Op::MaxPoolSingleOut, &scaled, window(3, 2));
    }
    let wide = b.conv(&x, x.channels(), window(7, 1), x.channels());
    b.finish("branches", wide)
}

/// Bottlenecks with convolutions in groups of 4 to 32 channels.
fn groups() -> Network {
    let mut b = Builder::default();
    let mut x = b.argument(&[1, 64, 56, 56]);
    for (filters, width, stride) in
        [(128, 4, 1), (48, 8, 2), (256, 8, 1), (104, 8, 2), (208, 16, 1), (512, 16, 2), (448, 32, 1)]
    {
        let narrow = b.conv_relu(&x, filters, window(1, 1));
        let grouped = b.conv(&narrow, filters, window(3, stride), filters / width);
        let grouped = b.unary(Op::Relu, &grouped);
        let wide = b.conv(&grouped, filters, window(1, 1), 1);
        let sum = if stride == 1 { b.binary(Op::Add, &wide, &narrow) } else { wide };
        x = b.unary(Op::Relu, &sum);
    }
    b.finish("groups", x)
}

/// Pairs of convolutions of few channels whose results are joined, and pools between them.
fn squeezes() -> Network {
    let mut b = Builder::default();
    let mut x = b.argument(&[1, 64, 55, 55]);
    for (squeezed, filters) in [(16, 64), (32, 128), (48, 192), (64, 256)] {
        for is_last in [false, true] {
            let narrow = b.conv_relu(&x, squeezed, window(1, 1));
            let one = b.conv_relu(&narrow, filters, window(1, 1));
            let three = b.conv_relu(&narrow, filters, window(3, 1));
            let shape = [1, 2 * filters, x.shape[2], x.shape[3]];
            x = b.apply(Op::Concat, &[&one, &three], "axis = 1 : si64", &shape);
            if is_last && squeezed < 64 {
                x = b.pool(Op::MaxPoolSingleOut, &x, window(3, 2));
            }
        }
    }
    let mean = b.apply(Op::GlobalAveragePool, &[&x], "", &[1, 512, 1, 1]);
    b.finish("squeezes", mean)
}

/// Layers of a transformer: attention, normalization, and a feed-forward network with GELU.
fn transformer(name: &'static str, rows: i64, width: i64, heads: i64) -> Network {
    let mut b = Builder::default();
    let mut x = b.argument(&[1, rows, width]);
    let size = width / heads;
    for activation in [Op::Erf, Op::Tanh, Op::Sigmoid] {
        let normal = b.layer_norm(&x);
        let mut split = |order: &[usize]| {
            let projected = b.dense(&normal, width);
            let parts = b.reshape(&projected, &[1, rows, heads, size]);
            b.transpose(&parts, order)
        };
        let (query, key, value) = (split(&[0, 2, 1, 3]), split(&[0, 2, 3, 1]), split(&[0, 2, 1, 3]));
        let scores = b.apply(Op::MatMul, &[&query, &key], "", &[1, heads, rows, rows]);
        let scale = b.constant(&[]);
        let scaled = b.binary(Op::Mul, &scores, &scale);
        let weights = b.apply(Op::Softmax, &[&scaled], "axis = -1 : si64", &[1, heads, rows, rows]);
        let mixed = b.apply(Op::MatMul, &[&weights, &value], "", &[1, heads, rows, size]);
        let mixed = b.transpose(&mixed, &[0, 2, 1, 3]);
        let mixed = b.reshape(&mixed, &[1, rows, width]);
        let attention = b.dense(&mixed, width);
        let sum = b.binary(Op::Add, &attention, &x);
        let normal = b.layer_norm(&sum);
        let inner = b.dense(&normal, 4 * width);
        let gate = b.unary(activation, &inner);
        let gated = b.binary(Op::Mul, &inner, &gate);
        let outer = b.dense(&gated, width);
        x = b.binary(Op::Add, &outer, &sum);
    }
    b.finish(name, x)
}

/// Products with one row, as at the end of image models, and element-wise operators alone.
fn head() -> Network {
    let mut b = Builder::default();
    let features = b.argument(&[1, 9216]);
    let hidden = b.dense(&features, 4096);
    let hidden = b.unary(Op::Relu, &hidden);
    let scores = b.dense(&hidden, 1000);
    let probabilities = b.apply(Op::Softmax, &[&scores], "axis = -1 : si64", &scores.shape.clone());
    b.results.push(probabilities);
    for shape in [[1, 128, 768], [1, 512, 4096], [1, 64, 50176]] {
        let x = b.argument(&shape);
        let y = b.argument(&shape);
        let sum = b.binary(Op::Add, &x, &y);
        let swapped = b.transpose(&sum, &[0, 2, 1]);
        let root = b.unary(Op::Tanh, &swapped);
        let mean = b.transpose(&root, &[0, 2, 1]);
        b.results.push(mean);
    }
    let (x, y) = (b.argument(&[1, 197, 1024]), b.argument(&[1, 197, 1024]));
    let sum = b.binary(Op::Mul, &x, &y);
    b.finish("head", sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_valid_modules() {
        for network in networks() {
            let context = divi_passes::new_context();
            assert!(divi_dialect::parse_module(&context, network.text.as_bytes()).is_some(), "{}", network.name);
        }
        assert_eq!(networks().iter().filter(|network| network.shows_scaling).count(), 3);
    }
}
