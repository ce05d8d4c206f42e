module {
  func.func @main(%x: tensor<1x512x512xf32> {onnx.name = "x"}) -> (tensor<1x512x512xf32> {onnx.name = "y"}) {
    %y = "onnx.Relu"(%x) {onnx_node_name = "relu"} : (tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
    return %y : tensor<1x512x512xf32>
  }
  "onnx.EntryPoint"() {func = @main} : () -> ()
}
