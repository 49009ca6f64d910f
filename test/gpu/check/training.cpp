// gpu-check training, equal: what runs of zerorun have left, against PyTorch and against each other.
#include "runtime/data/tensor_file.h"
#include "test/gpu/check/check.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

namespace zero::check {
namespace {

std::vector<double> lossesOf(const std::string &path) {
  std::ifstream in(path);
  std::vector<double> losses;
  for (std::string line; std::getline(in, line);) {
    nlohmann::json entry = nlohmann::json::parse(line, nullptr, false);
    if (entry.is_object() && entry.contains("loss")) losses.push_back(entry["loss"].is_number() ? entry["loss"].get<double>() : NAN);
  }
  if (losses.empty()) throw Error("there are no losses in '" + path + "'");
  return losses;
}

std::vector<float> floatsOf(const runtime::Tensor &tensor) {
  if (tensor.type != runtime::Element::F32) throw Error("'" + tensor.name + "' is not f32");
  std::vector<float> values(tensor.bytes.size() / sizeof(float));
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

struct Bounds {
  double first, any, gradient; // of the first loss; of the largest loss; of a gradient's norm
};

/// The distance of two tensors, of the norm of the first.
double distance(const runtime::Tensor &wanted, const runtime::Tensor &found) {
  if (wanted.shape != found.shape)
    throw Error(fmt::format("the gradient of {} has the shape {}, not {}", found.name, runtime::shapeText(found.shape),
                            runtime::shapeText(wanted.shape)));
  std::vector<float> w = floatsOf(wanted), f = floatsOf(found);
  double norm = 0, error = 0;
  for (size_t i = 0; i < w.size(); ++i) {
    norm += double(w[i]) * double(w[i]);
    error += (double(f[i]) - double(w[i])) * (double(f[i]) - double(w[i]));
  }
  norm = std::sqrt(norm), error = std::sqrt(error);
  return error <= 1e-7 ? 0 : error / std::max(norm, 1e-30); // gradients that are zero but for rounding
}

/// How many gradients were held against PyTorch's.
size_t checkGradients(const nlohmann::json &trainable, const runtime::TensorFile &wanted, const runtime::TensorFile &found, double bound,
                      double &worst) {
  std::set<std::string> seen; // PyTorch's names
  for (const runtime::Tensor &tensor : found.tensors) {
    if (!trainable.contains(tensor.name)) throw Error("'" + tensor.name + "' was trained and is no parameter");
    seen.insert(trainable[tensor.name].at("torch").get<std::string>());
  }
  size_t held = 0;
  for (const auto &[name, record] : trainable.items()) {
    const runtime::Tensor *have = found.find(name), *want = wanted.find(name);
    if (!have) {
      if (!record.at("tied_copy").get<bool>() || !seen.contains(record.at("torch").get<std::string>()))
        throw Error("there is no gradient of " + name);
      continue;
    }
    if (!want) continue; // its true gradient is zero, or part of it was folded away
    double off = distance(*want, *have);
    if (!(off <= bound)) throw Error(fmt::format("the gradient of {} is off by {:.1e} of its norm", name, off));
    worst = std::max(worst, off), ++held;
  }
  return held;
}

std::string bytesOf(const runtime::Tensor &tensor) { return {reinterpret_cast<const char *>(tensor.bytes.data()), tensor.bytes.size()}; }

void requireEqual(const std::string &one, const std::string &other, const char *what) {
  runtime::TensorFile a = runtime::openSafetensors(one), b = runtime::openSafetensors(other);
  if (a.tensors.empty() || a.tensors.size() != b.tensors.size()) throw Error(fmt::format("{} has other {} than {}", other, what, one));
  std::vector<std::string> different;
  for (const runtime::Tensor &tensor : a.tensors) {
    const runtime::Tensor *same = b.find(tensor.name);
    if (!same || bytesOf(*same) != bytesOf(tensor)) different.push_back(tensor.name);
  }
  if (!different.empty())
    throw Error(fmt::format("{} of {} {} of {} differ from those of {}, such as {}", different.size(), a.tensors.size(), what, other, one,
                            different.front()));
}

} // namespace

void training(const Arguments &arguments) {
  if (arguments.names.size() != 3) throw BadUsage("training wants FOLDER PRECISION RUN");
  const std::string &folder = arguments.names[0], &run = arguments.names[2];
  std::ifstream in(folder + "/reference.json");
  nlohmann::json reference = nlohmann::json::parse(in, nullptr, false);
  if (!reference.is_object()) throw Error("there is no reference in '" + folder + "'");
  const nlohmann::json &bounds = reference.at("bounds").at(arguments.names[1]);
  Bounds bound{bounds.at(0), bounds.at(1), bounds.at(2)};
  std::vector<double> have = lossesOf(run + ".jsonl"), want = reference.at("losses");
  if (have.size() > want.size()) throw Error(fmt::format("{} losses, where PyTorch has {}", have.size(), want.size()));
  want.resize(have.size());
  double largest = *std::ranges::max_element(want), far = 0;
  for (size_t i = 0; i < have.size(); ++i) {
    double off = std::abs(have[i] - want[i]), allowed = i == 0 ? bound.first * want[0] : bound.any * largest;
    if (!(off <= allowed))
      throw Error(
          fmt::format("the loss of step {} is {}, PyTorch's {}: off by {:.1e}, {:.1e} is allowed", i + 1, have[i], want[i], off, allowed));
    far = std::max(far, off);
  }
  std::string gradients = ", no gradients to compare";
  if (std::ifstream(folder + "/gradients.safetensors")) {
    double worst = 0;
    size_t held = checkGradients(reference.at("trainable"), runtime::openSafetensors(folder + "/gradients.safetensors"),
                                 runtime::openSafetensors(run + ".gradients.safetensors"), bound.gradient, worst);
    if (held == 0) throw Error("no gradient was compared");
    gradients = fmt::format(", {} gradients within {:.1e} of their norm", held, worst);
  }
  fmt::print("{} losses within {:.1e}{}\n", have.size(), far, gradients);
}

void equal(const Arguments &arguments) {
  const std::vector<std::string> &runs = arguments.names;
  if (runs.size() < 2) throw BadUsage("equal wants two runs or more");
  std::vector<double> losses = lossesOf(runs[0] + ".jsonl");
  for (size_t i = 1; i < runs.size(); ++i) {
    if (lossesOf(runs[i] + ".jsonl") != losses) throw Error("the losses of " + runs[i] + " are not those of " + runs[0]);
    requireEqual(runs[0] + ".gradients.safetensors", runs[i] + ".gradients.safetensors", "gradients");
    requireEqual(runs[0] + ".safetensors", runs[i] + ".safetensors", "parameters");
  }
  fmt::print("{} runs of {} steps are equal to the bit\n", runs.size(), losses.size());
}

} // namespace zero::check
