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
  int64_t taps = 1, places = 1; // products of kernel and out
};

/// Fills in everything but the kernel from the node's attributes, for an input [batch, channels, …]; false after a report.
bool window(NodeContext &c, const Val &x, Window &g);
/// The elements tap `at` of the kernel sees in a padded input, whose dimensions from `first` on it moves over: [batch, channels, out…] of
/// one with the channels before them.
Val tapOf(NodeContext &c, const Val &padded, const Window &g, Shape at, int64_t first = 2);
/// The next tap in row-major order.
void advance(Ints &at, const Window &g);

} // namespace zero::onnx
