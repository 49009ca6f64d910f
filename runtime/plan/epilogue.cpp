#include "runtime/plan/epilogue.h"
#include <array>

namespace zero::plan {

const EpilogueForm &formOf(MatMul::Epilogue epilogue) {
  static constexpr std::array<EpilogueForm, MatMul::Epilogue_ARRAYSIZE> kForms{{
      {.text = "", .writesSums = false, .readsBias = false, .readsAux = false, .writesAux = false},
      {.text = " and sums of A", .writesSums = true, .readsBias = false, .readsAux = false, .writesAux = false},
      {.text = " and sums of B", .writesSums = true, .readsBias = false, .readsAux = false, .writesAux = false},
      {.text = " and bias", .writesSums = false, .readsBias = true, .readsAux = false, .writesAux = false},
      {.text = " and bias and GELU", .writesSums = false, .readsBias = true, .readsAux = false, .writesAux = true},
      {.text = " and GELU's gradient", .writesSums = false, .readsBias = false, .readsAux = true, .writesAux = false},
  }};
  return kForms.at(static_cast<size_t>(epilogue));
}

} // namespace zero::plan
