#include "runtime/plan/epilogue.h"

namespace zero::plan {

EpilogueForm formOf(MatMul::Epilogue epilogue) {
  switch (epilogue) {
  case MatMul::BIAS:
    return {.text = " and bias", .readsBias = true};
  case MatMul::GELU:
    return {.text = " and bias and GELU", .readsBias = true, .writesAux = true};
  case MatMul::GELU_GRADIENT:
    return {.text = " and GELU's gradient", .readsAux = true};
  default:
    return {};
  }
}

} // namespace zero::plan
