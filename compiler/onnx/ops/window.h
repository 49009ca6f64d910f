//===- window.h - where the windows of convolutions and poolings lie ------------------------------===//
#pragma once
#include "compiler/onnx/importer.h"

namespace zero::onnx {

/// Windows that overlap are taken apart tap by tap; more taps than this make more operations than a node is worth.
constexpr int64_t kMostTaps = 1024;
/// Of more the columns of a convolution are made dimension by dimension.
constexpr int64_t kMostTapsAtOnce = 64;

struct Window {
  Ints kernel, stride, dilation, before, after, out;
  Ints beyond;                  // of `after`, what no padding but a last window that is cut off reaches
  int64_t taps = 1, places = 1; // products of kernel and out
};

/// Fills in everything but the kernel from the node's attributes, for an input [batch, channels, …]; false after a report. With `cut` the
/// last window may reach beyond the padded input, as long as it begins in front of the padding; of a single one the kernel becomes shorter.
bool window(NodeContext &c, const Val &x, Window &g, bool cut = false);
/// The elements of a padded input that tap `at` of the kernel sees: out… in place of its spatial dimensions, which begin with `first`.
Val tapOf(NodeContext &c, const Val &padded, const Window &g, Shape at, size_t first = 2);
/// x with stride - 1 zeros between neighbours along `dim`.
Val dilate(NodeContext &c, const Val &x, int64_t dim, int64_t stride);
/// The next tap in row-major order.
void advance(Ints &at, const Window &g);

} // namespace zero::onnx
