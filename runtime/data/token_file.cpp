#include "runtime/data/token_file.h"
#include "runtime/base/error.h"
#include "runtime/data/element.h"
#include "runtime/data/mapped_file.h"
#include <algorithm>
#include <fmt/format.h>

namespace zero::runtime {
namespace {

class TokenDataset : public Dataset {
public:
  TokenDataset(const plan::Plan &plan, const std::string &path) : plan(plan), file(path) {
    path_ = path;
    type = path.ends_with(".txt") ? Element::U8 : path.ends_with(".u32.bin") ? Element::U32 : Element::U16;
    for (int i = 0; i < plan.inputs_size(); ++i) {
      const plan::Input &input = plan.inputs(i);
      if (input.micro_step() > 0) continue; // takes other samples of the same stream
      if (input.role() == plan::Input::DATA)
        claim(tokens, i);
      else if (input.role() == plan::Input::LABELS)
        claim(labels, i);
      else if (input.role() == plan::Input::SHARED)
        throw Error(fmt::format("'{}' holds one stream of tokens, but the plan also needs '{}', which is the same for all samples; give a "
                                ".safetensors or .npz file",
                                path, input.name()));
    }
    if (tokens < 0) throw Error(fmt::format("'{}' holds tokens, but the plan has no input that takes them", path));
    sequence = sampleElements(plan.inputs(tokens));
    if (sequence == 0) throw Error(fmt::format("'{}' holds tokens, but the plan's '{}' takes none", path, plan.inputs(tokens).name()));
    if (labels >= 0 && (plan.inputs(labels).shape_size() != 2 || sampleElements(plan.inputs(labels)) != sequence))
      throw Error(fmt::format("'{}' holds a stream of tokens, whose labels are the next tokens, but the plan's '{}' is not one label "
                              "per token; give a .safetensors or .npz file",
                              path, plan.inputs(labels).name()));
    refuseHeader();
    count = file.bytes().size() / sizeOf(type);
    if (file.bytes().size() % sizeOf(type) != 0)
      throw Error(fmt::format("'{}' has {} bytes, which is no multiple of {}: it does not hold {} tokens", path, file.bytes().size(),
                              sizeOf(type), nameOf(type)));
    uint64_t ahead = labels >= 0 ? 1 : 0; // the last sample's last label is one token further
    samples_ = count > ahead ? (count - ahead) / sequence : 0;
    if (samples_ == 0)
      throw Error(fmt::format("'{}' holds {} tokens, but one sample takes {}{}", path, count, sequence + ahead,
                              ahead ? fmt::format(": {} and the label of the last", sequence) : ""));
  }

  void read(int index, uint64_t sample, std::span<std::byte> dst) const override {
    const plan::Input &input = plan.inputs(index);
    const std::byte *src = at(sample) + (index == labels ? sizeOf(type) : 0);
    for (const NumberRange &range : rangesOf(plan, input))
      for (uint64_t i = 0; i < sequence; ++i)
        if (int64_t value = integerAt(type, src, i); !range.has(value))
          throw Error(fmt::format("'{}': sample {} has the token {} at position {}, but '{}' knows {} of them, 0 to {}", path_, sample,
                                  value, i, input.name(), range.end, range.end - 1));
    convert(type, src, input.dtype(), dst.data(), sequence);
  }

  bool mayRefuse(int) const override { return true; }

  uint64_t countedLabels(int index, uint64_t sample) const override {
    std::optional<int64_t> ignored = ignoredLabel(plan, plan.inputs(index));
    if (!ignored || *ignored < 0) return sequence; // no token is
    uint64_t counted = 0;
    for (uint64_t i = 0; i < sequence; ++i) counted += integerAt(type, at(sample), i + 1) != ignored;
    return counted;
  }

  bool holds(const std::string &) const override { return false; }

private:
  // llm.c writes 256 int32 before the tokens, of which the first names the kind (github.com/karpathy/llm.c, dev/data/data_common.py).
  void refuseHeader() const {
    constexpr int64_t kTwoBytes = 20240520, kFourBytes = 20240801;
    constexpr size_t kHeader = 1024;
    if (type == Element::U8 || file.bytes().size() < kHeader) return;
    int64_t kind = integerAt(Element::I32, file.bytes().data(), 0), version = integerAt(Element::I32, file.bytes().data(), 1);
    if ((kind == kTwoBytes || kind == kFourBytes) && version > 0 && version < 100)
      throw Error(fmt::format("'{0}' begins with a header, as llm.c writes it, where tokens are expected; cut it off: "
                              "tail -c +{1} '{0}' > tokens.{2}",
                              path_, kHeader + 1, kind == kTwoBytes ? "bin" : "u32.bin"));
  }

  const std::byte *at(uint64_t sample) const { return file.bytes().data() + sample * sequence * sizeOf(type); }

  void claim(int &slot, int index) {
    const plan::Input &input = plan.inputs(index);
    if (slot >= 0)
      throw Error(fmt::format("'{}' holds one stream of tokens, but the plan also needs '{}' beside '{}'; give a .safetensors or .npz file",
                              path_, input.name(), plan.inputs(slot).name()));
    if (input.dtype() != plan::I64 && input.dtype() != plan::I32)
      throw Error(fmt::format("'{}' holds tokens, but the plan's input '{}' takes {} values; give a .safetensors or .npz file", path_,
                              input.name(), nameOf(elementOf(input.dtype()))));
    if (&slot == &tokens && input.shape_size() != 2)
      throw Error(fmt::format("'{}' holds a stream of tokens, but the plan's input '{}' is not [batch x sequence]", path_, input.name()));
    slot = index;
  }

  const plan::Plan &plan;
  MappedFile file;
  Element type = Element::U8;
  int tokens = -1, labels = -1; // plan inputs
  uint64_t sequence = 0, count = 0;
};

} // namespace

std::unique_ptr<Dataset> openTokenFile(const plan::Plan &plan, const std::string &path) {
  return std::make_unique<TokenDataset>(plan, path);
}

} // namespace zero::runtime
