// RUN: divi-opt %s | FileCheck %s
// RUN: divi-opt < %s | FileCheck %s
// RUN: divi-opt - < %s | FileCheck %s
// RUN: divi-opt %s -o - | FileCheck %s
// RUN: divi-opt %s --emit-bytecode -o %t.mlirbc && divi-opt %t.mlirbc | FileCheck %s
// RUN: divi-opt - < %t.mlirbc | FileCheck %s
// RUN: divi-opt %s -o /dev/null 2>&1 | count 0
// RUN: divi-opt %s 2>&1 >/dev/null | count 0

// Tests that input and output are files or streams, text or bytecode, with no other output.
// CHECK: module {
// CHECK-NEXT: divi.device @cpu0
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
