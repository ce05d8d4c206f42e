func.func @main(%x: tensor<2x64xf32> {onnx.name = "x"}) -> (tensor<2x64xf32> {onnx.name = "y"}, tensor<2x64xf32> {onnx.name = "hidden"}) {
  %w = onnx.Constant #divi.external<"weights.bin", offset = 0, length = 16384> : tensor<64x64xf32> {onnx_node_name = "w"}
  %0 = "onnx.MatMul"(%x, %w) : (tensor<2x64xf32>, tensor<64x64xf32>) -> tensor<2x64xf32>
  %1 = "onnx.Relu"(%0) : (tensor<2x64xf32>) -> tensor<2x64xf32>
  %2 = "onnx.MatMul"(%1, %w) : (tensor<2x64xf32>, tensor<64x64xf32>) -> tensor<2x64xf32>
  %3 = "onnx.Tanh"(%1) : (tensor<2x64xf32>) -> tensor<2x64xf32>
  %4 = "onnx.Add"(%2, %3) : (tensor<2x64xf32>, tensor<2x64xf32>) -> tensor<2x64xf32>
  %5 = "onnx.Sub"(%4, %x) : (tensor<2x64xf32>, tensor<2x64xf32>) -> tensor<2x64xf32>
  return %5, %1 : tensor<2x64xf32>, tensor<2x64xf32>
}
