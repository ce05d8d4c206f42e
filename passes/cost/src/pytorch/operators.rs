//! Conversion of PyTorch's operators to their ONNX equivalents.

use super::{Network, Note, Time};
use crate::Micros;
use crate::device::{self, Kind};
use crate::json::{self, At, Error};
use crate::profile::{Entry, Key, Member, median};
use divi_onnx::{Attr, Attributes, DType, Op};
use std::collections::{BTreeMap, HashMap};

/// ONNX equivalent of an operator, or the reason why there is none.
enum Converted {
    Operator {
        ops: Vec<Member>,
        inputs: Vec<Vec<u64>>,
        weights: Vec<Vec<u64>>,
        /// Assumption about information that the table does not contain.
        assumed: Option<String>,
    },
    LeftOut(&'static str),
}

/// Node of the table.
struct Node<'a> {
    at: &'a At<'a>,
    inputs: Vec<Vec<u64>>,
    output: Vec<u64>,
    /// Size of the parameters in bytes, if it is given.
    params: Option<u64>,
}

const IDENTITY: &str = "is the identity in inference";
const VIEW: &str = "is a view, whose time is Python overhead";
const NO_WINDOW: &str = "its window is not in the table, and no common window has its sizes";
const UNKNOWN: &str = "has no known ONNX equivalent";
/// Size of an element in bytes: the tables are in single precision.
const ELEMENT: u64 = 4;

/// Reads a network. Equal operators become one entry, with the medians of their times.
pub(super) fn read(name: &str, at: &At<'_>, kind: Kind) -> Result<Network, Error> {
    let mut network =
        Network { name: name.to_owned(), entries: vec![], times: vec![], skipped: vec![], assumptions: vec![] };
    let mut known: HashMap<Key, usize> = HashMap::new();
    let mut times: Vec<BTreeMap<u64, Vec<(f64, u64)>>> = vec![];
    let column = |kind: Kind| format!("{kind}_us");
    let columns: Vec<String> = device::all().into_iter().map(column).collect();
    let mut known_fields = vec!["op", "inputs", "output", "preds", "params", "attrs"];
    known_fields.extend(columns.iter().map(|column| &column[..]));
    for (node, at) in at.fields()? {
        at.only(&known_fields)?;
        let op = at.field("op")?.string()?;
        let output = at.field("output")?.shape()?;
        let read = Node {
            at: &at,
            inputs: at.field("inputs")?.shapes()?,
            output: output.clone(),
            params: at.optional("params")?.map(|it| it.count()).transpose()?,
        };
        let (ops, inputs, weights, assumed) = match read.convert(op)? {
            Converted::Operator { ops, inputs, weights, assumed } => (ops, inputs, weights, assumed),
            Converted::LeftOut(why) => {
                network.skipped.push(Note { node: node.to_owned(), op: op.to_owned(), text: why.to_owned() });
                continue;
            }
        };
        if let Some(text) = assumed {
            network.assumptions.push(Note { node: node.to_owned(), op: op.to_owned(), text });
        }
        let entry = Entry {
            ops,
            types: None,
            inputs,
            weights: Some(weights),
            outputs: vec![output],
            dtype: DType::F32,
            micros: BTreeMap::new(),
            count: 0,
        };
        let index = *known.entry(Key::of(&entry)).or_insert_with(|| {
            network.entries.push(entry);
            times.push(BTreeMap::new());
            times.len() - 1
        });
        network.entries[index].count += 1;
        for (batch, micros) in at.field(&column(kind))?.fields()? {
            let size = batch.parse().ok().filter(|size| *size > 0);
            let size: u64 = size.ok_or_else(|| micros.error("must be named after a batch size"))?;
            let micros = json::micros(&micros)?;
            times[index].entry(size).or_default().push((micros, 1));
            network.times.push(Time { entry: index, batch: size, micros: Micros(micros) });
        }
    }
    for (entry, times) in network.entries.iter_mut().zip(times) {
        entry.micros = times.into_iter().map(|(batch, times)| (batch, median(times))).collect();
    }
    Ok(network)
}

fn op(op: Op, attributes: Vec<(&str, Attr)>) -> Member {
    Member { name: op.name().to_owned(), attributes: attributes.into_iter().collect::<Attributes>() }
}

fn ints(values: &[u64]) -> Attr {
    Attr::Ints(values.iter().map(|&value| i64::try_from(value).unwrap_or(i64::MAX)).collect())
}

/// Window of a pooling operator or a convolution, with symmetric padding.
struct Window {
    kernel: Vec<u64>,
    strides: Vec<u64>,
    padding: Vec<u64>,
}

impl Window {
    fn square(kernel: u64, stride: u64, padding: u64) -> Self {
        Self { kernel: vec![kernel; 2], strides: vec![stride; 2], padding: vec![padding; 2] }
    }

    /// Returns the spatial sizes of the result; with `ceil`, the last window may be partial.
    fn sizes(&self, image: &[u64], ceil: bool) -> Option<Vec<u64>> {
        let sides = image.iter().zip(&self.kernel).zip(&self.strides).zip(&self.padding);
        let size = |(((image, kernel), stride), padding): (((&u64, &u64), &u64), &u64)| {
            let free = padding.checked_mul(2)?.checked_add(*image)?.checked_sub(*kernel)?;
            let steps = free.checked_div(*stride)?;
            let is_partial = ceil && !free.is_multiple_of(*stride);
            steps.checked_add(1 + u64::from(is_partial))
        };
        sides.map(size).collect()
    }

    fn attributes(&self) -> Vec<(&'static str, Attr)> {
        let pads = [&self.padding[..], &self.padding].concat();
        vec![("kernel_shape", ints(&self.kernel)), ("strides", ints(&self.strides)), ("pads", ints(&pads))]
    }
}

impl Node<'_> {
    fn convert(&self, name: &str) -> Result<Converted, Error> {
        Ok(match name {
            "Conv2d" => self.conv()?,
            "Linear" => self.linear()?,
            "BatchNorm2d" => {
                let channels = self.dim(1)?;
                self.with(op(Op::BatchNormalization, vec![]), vec![vec![channels]; 4])
            }
            "LayerNorm" | "layer_norm" => {
                let weights = vec![vec![self.output.last().copied().unwrap_or(1)]; 2];
                let layer_norm = op(Op::LayerNormalization, vec![("axis", Attr::Int(-1))]);
                let inputs = vec![self.first()?.clone()];
                Converted::Operator { ops: vec![layer_norm], inputs, weights, assumed: None }
            }
            "ReLU" | "relu" => self.with(op(Op::Relu, vec![]), vec![]),
            "ReLU6" => self.with(op(Op::Clip, vec![]), vec![vec![], vec![]]),
            "GELU" => self.with(op(Op::Gelu, vec![]), vec![]),
            "add" => self.with(op(Op::Add, vec![]), vec![]),
            "mul" => self.with(op(Op::Mul, vec![]), vec![]),
            "MaxPool2d" | "max_pool2d" => self.pool(Op::MaxPool)?,
            "AvgPool2d" | "avg_pool2d" => self.pool(Op::AveragePool)?,
            "AdaptiveAvgPool2d" | "adaptive_avg_pool2d" => self.adaptive_pool()?,
            "cat" => self.concat()?,
            "flatten" | "Flatten" | "permute" | "Permute" => Converted::LeftOut(VIEW),
            "Dropout" | "dropout" | "stochastic_depth" | "StochasticDepth" => Converted::LeftOut(IDENTITY),
            _ => Converted::LeftOut(UNKNOWN),
        })
    }

    /// Returns one operator. Operands whose rank differs from the result's have no batch dimension and are also constants.
    fn with(&self, op: Member, weights: Vec<Vec<u64>>) -> Converted {
        let (inputs, constants): (Vec<_>, Vec<_>) =
            self.inputs.iter().cloned().partition(|shape| shape.len() == self.output.len());
        Converted::Operator { ops: vec![op], inputs, weights: [constants, weights].concat(), assumed: None }
    }

    fn first(&self) -> Result<&Vec<u64>, Error> {
        self.inputs.first().ok_or_else(|| self.at.error("must have an input"))
    }

    /// Returns a dimension of the first operand.
    fn dim(&self, index: usize) -> Result<u64, Error> {
        let first = self.first()?;
        first.get(index).copied().ok_or_else(|| self.at.error(format!("input {first:?} has no dimension {index}")))
    }

    /// Returns height and width of a shape.
    fn image(shape: &[u64]) -> &[u64] {
        shape.get(2..).unwrap_or_default()
    }

    fn attribute(&self, name: &str) -> Result<At<'_>, Error> {
        self.at.field("attrs")?.field(name)
    }

    /// Returns an attribute with one number per side, or one for both.
    fn sides(&self, name: &str) -> Result<Vec<u64>, Error> {
        let at = self.attribute(name)?;
        if at.value.is_array() { at.shape() } else { Ok(vec![at.count()?; 2]) }
    }

    /// Returns true if the parameters are these weights and a bias, false if they are only the weights.
    fn has_bias(&self, weights: &[u64], bias: u64) -> Result<bool, Error> {
        let bytes = weights.iter().fold(ELEMENT, |bytes, &size| bytes.saturating_mul(size));
        match self.params {
            Some(params) if params == bytes => Ok(false),
            Some(params) if params == bytes.saturating_add(ELEMENT.saturating_mul(bias)) => Ok(true),
            Some(params) => Err(self.at.error(format!("params are {params} bytes, weights {weights:?} are {bytes}"))),
            None => Err(self.at.error("field 'params' is missing")),
        }
    }

    fn conv(&self) -> Result<Converted, Error> {
        let group = self.attribute("groups")?.count()?.max(1);
        let channels = self.output.get(1).copied().unwrap_or(0);
        let window =
            Window { kernel: self.sides("kernel")?, strides: self.sides("stride")?, padding: self.sides("padding")? };
        let weights = [&[channels, self.dim(1)? / group], &window.kernel[..]].concat();
        let mut attributes = window.attributes();
        attributes.push(("dilations", ints(&self.sides("dilation")?)));
        attributes.push(("group", Attr::Int(i64::try_from(group).unwrap_or(i64::MAX))));
        let bias = if self.has_bias(&weights, channels)? { vec![vec![channels]] } else { vec![] };
        Ok(self.with(op(Op::Conv, attributes), [vec![weights], bias].concat()))
    }

    /// Converts a `Linear`: a Gemm for a matrix; for higher ranks a MatMul, and an Add for the bias.
    fn linear(&self) -> Result<Converted, Error> {
        let (x, y) = (self.first()?, &self.output);
        let (Some(&depth), Some(&columns)) = (x.last(), y.last()) else {
            return Err(self.at.error("must have an input and an output that are not scalars"));
        };
        let bias = if self.has_bias(&[columns, depth], columns)? { vec![vec![columns]] } else { vec![] };
        Ok(match x.len() {
            2 => self.with(op(Op::Gemm, vec![("transB", Attr::Int(1))]), [vec![vec![columns, depth]], bias].concat()),
            _ => {
                let mut ops = vec![op(Op::MatMul, vec![])];
                ops.extend(bias.first().map(|_| op(Op::Add, vec![])));
                Converted::Operator {
                    ops,
                    inputs: vec![x.clone()],
                    weights: [vec![vec![depth, columns]], bias].concat(),
                    assumed: None,
                }
            }
        })
    }

    /// Converts a pooling operator. PyTorch's functions, unlike modules, have no attributes in the table: a common window with
    /// matching sizes is assumed.
    fn pool(&self, kind: Op) -> Result<Converted, Error> {
        let (image, result) = (Self::image(self.first()?), Self::image(&self.output));
        let mut assumed = None;
        let (window, ceil) = if self.at.optional("attrs")?.is_some() {
            let strides = self.sides("stride")?;
            let window = Window { kernel: self.sides("kernel")?, strides, padding: self.sides("padding")? };
            let ceil = match window.sizes(image, false) {
                Some(sizes) if sizes == result => false,
                _ if window.sizes(image, true).is_some_and(|sizes| sizes == result) => true,
                _ => return Err(self.at.error(format!("no window of {image:?} gives {result:?}"))),
            };
            (window, ceil)
        } else {
            const COMMON: [(u64, u64, u64); 4] = [(3, 1, 1), (3, 2, 0), (3, 2, 1), (2, 2, 0)];
            let windows = COMMON.iter().map(|&(kernel, stride, padding)| Window::square(kernel, stride, padding));
            let found = windows.into_iter().find(|window| window.sizes(image, false).as_deref() == Some(result));
            let Some(window) = found else { return Ok(Converted::LeftOut(NO_WINDOW)) };
            let (kernel, stride) = (window.kernel[0], window.strides[0]);
            assumed = Some(format!("its window is not in the table: {kernel}x{kernel} at stride {stride} is assumed"));
            (window, false)
        };
        let mut attributes = window.attributes();
        if ceil {
            attributes.push(("ceil_mode", Attr::Int(1)));
        }
        if kind == Op::AveragePool && window.padding.iter().any(|padding| *padding > 0) {
            attributes.push(("count_include_pad", Attr::Int(1)));
        }
        let (ops, inputs) = (vec![op(kind, attributes)], vec![self.first()?.clone()]);
        Ok(Converted::Operator { ops, inputs, weights: vec![], assumed })
    }

    fn adaptive_pool(&self) -> Result<Converted, Error> {
        let (image, result) = (Self::image(self.first()?), Self::image(&self.output));
        if result.iter().all(|size| *size == 1) {
            return Ok(self.with(op(Op::GlobalAveragePool, vec![]), vec![]));
        }
        if image == result {
            return Ok(Converted::LeftOut("averages over single elements, which is the identity"));
        }
        let divides = |(image, result): (&u64, &u64)| *result > 0 && image.is_multiple_of(*result);
        if image.len() != result.len() || !image.iter().zip(result).all(divides) {
            return Ok(Converted::LeftOut("its windows have different sizes, which ONNX cannot express"));
        }
        let kernel: Vec<u64> = image.iter().zip(result).map(|(image, result)| image / result).collect();
        let window = Window { strides: kernel.clone(), padding: vec![0; kernel.len()], kernel };
        Ok(self.with(op(Op::AveragePool, window.attributes()), vec![]))
    }

    /// Converts a concatenation; its axis is the one whose size differs between the first operand and the result.
    fn concat(&self) -> Result<Converted, Error> {
        let first = self.first()?;
        let axis = first.iter().zip(&self.output).position(|(part, whole)| part != whole).unwrap_or(0);
        Ok(self.with(op(Op::Concat, vec![("axis", Attr::Int(axis as i64))]), vec![]))
    }
}
