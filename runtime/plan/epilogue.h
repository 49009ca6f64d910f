// What a product's step has beside A, B and C where it does more than multiply: see plan.MatMul.Epilogue.
#pragma once
#include "runtime/plan/plan.pb.h"

namespace zero::plan {

struct EpilogueForm {
  const char *text; // " and sums of A", as it follows the product's own name
  bool writesSums, readsBias, readsAux, writesAux;

  // References that follow A and B, and C: of each one at most.
  int reads() const { return readsBias || readsAux; }
  int writes() const { return writesSums || writesAux; }
  bool hasVector() const { return writesSums || readsBias; }
  bool hasAux() const { return readsAux || writesAux; }
};

// Of one that is valid.
const EpilogueForm &formOf(MatMul::Epilogue epilogue);

// Numbers of its sums or its bias, of a product of m x n; 0 where it has neither.
template <typename Size> Size vectorElements(MatMul::Epilogue epilogue, Size m, Size n) {
  return !formOf(epilogue).hasVector() ? 0 : epilogue == MatMul::SUMS_OF_A ? m : n;
}

} // namespace zero::plan
