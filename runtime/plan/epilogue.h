// What a product's step has beside A, B and C where it does more than multiply: see plan.MatMul.Epilogue.
#pragma once
#include "runtime/plan/plan.pb.h"

namespace zero::plan {

struct EpilogueForm {
  const char *text = ""; // " and bias", as it follows the product's own name
  bool readsBias = false, readsAux = false, writesAux = false;

  // References that follow A and B: one at most.
  int reads() const { return readsBias || readsAux; }
  bool hasAux() const { return readsAux || writesAux; }
};

// Of one that is valid.
EpilogueForm formOf(MatMul::Epilogue epilogue);

} // namespace zero::plan
