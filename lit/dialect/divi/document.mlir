// docs/guides/plugin.md shows a part of round-trip.mlir.
// RUN: sed -n '/^```mlir/,/^```/p' %S/../../../docs/guides/plugin.md | grep -v '^```' > %t.mlir
// RUN: divi-opt %t.mlir -o /dev/null
// RUN: not grep -v -x -F -f %S/round-trip.mlir %t.mlir
// RUN: FileCheck %s < %t.mlir

// Tests that the excerpt in the document is part of this test, and shows every operation.
// CHECK-DAG: divi.device
// CHECK-DAG: divi.link
// CHECK-DAG: divi.cluster
// CHECK-DAG: divi.yield
// CHECK-DAG: divi.transfer
// CHECK-DAG: divi.launch
