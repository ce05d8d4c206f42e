divi.device @cpu0 {kind = "cpu", memory = 1000000000 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1000000000 : i64}
divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e10 : f64, latency = 1.0e-5 : f64}
divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e10 : f64, latency = 1.0e-5 : f64}
func.func private @main.gpu0.0(%x: tensor<2x64xf32>) -> (tensor<2x64xf32>, tensor<2x64xf32>) attributes {divi.device = @gpu0} {
  %w = onnx.Constant #divi.external<"weights.bin", offset = 0, length = 16384> : tensor<64x64xf32> {onnx_node_name = "w"}
  %y = divi.cluster "matmul"(%x, %w : tensor<2x64xf32>, tensor<64x64xf32>) -> tensor<2x64xf32> attributes {divi.cost = #divi.cost<@gpu0 = {1 = 3.0}>} {
  ^bb0(%a: tensor<2x64xf32>, %b: tensor<64x64xf32>):
    %0 = "onnx.MatMul"(%a, %b) {onnx_node_name = "first"} : (tensor<2x64xf32>, tensor<64x64xf32>) -> tensor<2x64xf32>
    %1 = "onnx.Relu"(%0) {onnx_node_name = "relu"} : (tensor<2x64xf32>) -> tensor<2x64xf32>
    divi.yield %1 : tensor<2x64xf32>
  }
  return %y, %x : tensor<2x64xf32>, tensor<2x64xf32>
}
func.func private @main.gpu0.1(%y: tensor<2x64xf32>) -> tensor<2x64xf32> attributes {divi.device = @gpu0} {
  %w = onnx.Constant #divi.external<"weights.bin", offset = 0, length = 16384> : tensor<64x64xf32> {onnx_node_name = "w"}
  %0 = "onnx.MatMul"(%y, %w) {onnx_node_name = "left"} : (tensor<2x64xf32>, tensor<64x64xf32>) -> tensor<2x64xf32>
  return %0 : tensor<2x64xf32>
}
func.func private @main.cpu0.0(%y: tensor<2x64xf32>) -> tensor<2x64xf32> attributes {divi.device = @cpu0} {
  %0 = "onnx.Tanh"(%y) {onnx_node_name = "right"} : (tensor<2x64xf32>) -> tensor<2x64xf32>
  return %0 : tensor<2x64xf32>
}
func.func private @main.cpu0.1(%a: tensor<2x64xf32>, %b: tensor<2x64xf32>, %c: tensor<2x64xf32>) -> tensor<2x64xf32> attributes {divi.device = @cpu0} {
  %0 = "onnx.Add"(%a, %b) {onnx_node_name = "join"} : (tensor<2x64xf32>, tensor<2x64xf32>) -> tensor<2x64xf32>
  %1 = "onnx.Sub"(%0, %c) {onnx_node_name = "skip"} : (tensor<2x64xf32>, tensor<2x64xf32>) -> tensor<2x64xf32>
  return %1 : tensor<2x64xf32>
}
func.func @main(%x: tensor<2x64xf32> {onnx.name = "x"}) -> (tensor<2x64xf32> {onnx.name = "y"}, tensor<2x64xf32> {onnx.name = "hidden"}) {
  %t = divi.transfer %x from @cpu0 to @gpu0 {divi.start = 0.0 : f64} : tensor<2x64xf32>
  %h:2 = divi.launch @main.gpu0.0(%t) on @gpu0 {divi.start = 10.0 : f64} : (tensor<2x64xf32>) -> (tensor<2x64xf32>, tensor<2x64xf32>)
  %l = divi.launch @main.gpu0.1(%h#0) on @gpu0 {divi.start = 13.0 : f64} : (tensor<2x64xf32>) -> tensor<2x64xf32>
  %u = divi.transfer %h#0 from @gpu0 to @cpu0 {divi.start = 13.0 : f64} : tensor<2x64xf32>
  %v = divi.transfer %h#1 from @gpu0 to @cpu0 {divi.start = 13.0 : f64} : tensor<2x64xf32>
  %m = divi.transfer %l from @gpu0 to @cpu0 {divi.start = 16.0 : f64} : tensor<2x64xf32>
  %r = divi.launch @main.cpu0.0(%u) on @cpu0 {divi.start = 23.0 : f64} : (tensor<2x64xf32>) -> tensor<2x64xf32>
  %y = divi.launch @main.cpu0.1(%m, %r, %v) on @cpu0 {divi.start = 30.0 : f64} : (tensor<2x64xf32>, tensor<2x64xf32>, tensor<2x64xf32>) -> tensor<2x64xf32>
  return %y, %u : tensor<2x64xf32>, tensor<2x64xf32>
}
