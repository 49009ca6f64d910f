// How the labels of a data file lie against the places of its inputs. cross_entropy compares the logits of a place with the
// label of the same place, so a causal model learns to predict only if its labels are the tokens one place later.
#pragma once
#include "runtime/plan/plan.pb.h"
#include <optional>
#include <string>

namespace zero::runtime {

class Dataset;

struct LabelRule {
  enum Kind {
    Same,    // the file's labels belong to the places where they lie
    Shifted, // as Hugging Face has them, equal to the inputs: the label of a place is the file's of the next one, the last has none
    Next,    // the same, from the tokens of the tensor `tokens` instead of labels
  } kind = Same;
  std::string tokens; // Next
};

// "same", "shifted" or "next:INPUT"; nothing for any other text.
std::optional<LabelRule> labelRule(const std::string &text);
std::string textOf(const LabelRule &rule);

// Whether the last dimension of an input can be read one place later: integer labels of at least two places.
bool hasPlaces(const plan::Input &labels);

// A sentence if the labels of the first samples are the tokens of an input at the same places, or two places later: the model
// would learn to copy, or to skip a token. Empty if nothing is suspicious.
std::string labelWarning(const plan::Plan &plan, const Dataset &data, const LabelRule &rule);

} // namespace zero::runtime
