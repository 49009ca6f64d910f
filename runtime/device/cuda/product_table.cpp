#include "runtime/device/cuda/product_table.h"
#include "runtime/base/error.h"
#include "runtime/plan/epilogue.h"
#include "runtime/plan/validate.h"
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <openssl/sha.h>

namespace zero::runtime::cuda {
namespace {

constexpr uint64_t kFormat = 1;
constexpr std::string_view kSum = ",\n \"sha256\": \"";

std::string hexOf(const unsigned char *bytes, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

std::string sumLine(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const unsigned char *>(text.data()), text.size(), digest.data());
  return fmt::format("{}{}\"\n}}\n", kSum, hexOf(digest.data(), digest.size()));
}

std::string hexOf(const Algorithm &algorithm) { return hexOf(reinterpret_cast<const unsigned char *>(&algorithm), sizeof(algorithm)); }

Algorithm algorithmOf(const std::string &hex) {
  if (hex.size() != 2 * sizeof(Algorithm) || hex.find_first_not_of("0123456789abcdef") != std::string::npos)
    throw std::invalid_argument("an algorithm");
  std::array<unsigned char, sizeof(Algorithm)> bytes;
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(std::stoul(hex.substr(2 * i, 2), nullptr, 16));
  Algorithm algorithm;
  std::memcpy(&algorithm, bytes.data(), sizeof(algorithm));
  return algorithm;
}

} // namespace

uint32_t alignmentOf(Pointer at, int64_t batch, int64_t strideBytes) {
  uint64_t all = at | kMostAlignment | (batch > 1 ? static_cast<uint64_t>(strideBytes) : 0);
  return static_cast<uint32_t>(all & ~(all - 1));
}

std::string keyOf(const MatMulOf<Pointer> &p) {
  auto aligned = [&](Pointer at, int64_t stride, plan::DType type) {
    return alignmentOf(at, p.batch, stride * static_cast<int64_t>(plan::bytesOf(type)));
  };
  std::string many = p.batch > 1 ? fmt::format(", {} with strides {} {} {}", p.batch, p.strideA, p.strideB, p.strideC) : "", beside;
  plan::EpilogueForm epilogue = plan::formOf(p.epilogue);
  if (epilogue.readsBias) beside = fmt::format(" and {}", aligned(p.bias, 0, p.cDtype));
  if (epilogue.hasAux()) beside += fmt::format(" and {}", aligned(p.aux, 0, p.cDtype));
  return fmt::format("{} {} x {} x {}{}{} to {}{}{}{}, ld {} {} {}, aligned {} {} {}{}", p.tf32 ? "TF32" : plan::DType_Name(p.dtype), p.m,
                     p.n, p.k, p.transA ? " A^T" : "", p.transB ? " B^T" : "", plan::DType_Name(p.cDtype), p.accumulate ? " added" : "",
                     epilogue.text, many, p.lda, p.ldb, p.ldc, aligned(p.a, p.strideA, p.dtype), aligned(p.b, p.strideB, p.dtype),
                     aligned(p.c, p.strideC, p.cDtype), beside);
}

const MeasuredDevice *findDevice(const ProductTable &table, const std::string &device, uint64_t library) {
  auto found = std::ranges::find_if(table, [&](const MeasuredDevice &each) { return each.device == device && each.library == library; });
  return found == table.end() ? nullptr : &*found;
}

std::string textOf(const ProductTable &table) {
  auto list = nlohmann::ordered_json::array();
  auto rounded = [](double microseconds) { return std::round(microseconds * 100) / 100; };
  for (const MeasuredDevice &device : table) {
    auto products = nlohmann::ordered_json::object();
    for (const auto &[key, product] : device.products) {
      auto tried = nlohmann::ordered_json::array();
      for (double each : product.tried) tried.push_back(rounded(each));
      products[key] = {{"algorithm", hexOf(product.algorithm)},
                       {"microseconds", rounded(product.microseconds)},
                       {"heuristic", rounded(product.heuristic)},
                       {"tried", std::move(tried)}};
    }
    list.push_back({{"device", device.device}, {"cublaslt", device.library}, {"products", std::move(products)}});
  }
  nlohmann::ordered_json json = {{"format", kFormat}, {"tables", std::move(list)}};
  std::string text = json.dump(1);
  text.resize(text.size() - 2); // the end of the object, which follows its sum
  return text + sumLine(text);
}

ProductTable parseTable(std::string_view text, const std::string &name) {
  std::string advice = "; delete it, or copy it again from where it is whole";
  size_t at = text.rfind(kSum);
  if (at == std::string_view::npos || text.substr(at) != sumLine(text.substr(0, at)))
    throw Error(fmt::format("'{}' is no table of algorithms for products, or is damaged: it is not what `zerorun --tune` has written{}",
                            name, advice));
  try {
    nlohmann::json json = nlohmann::json::parse(text);
    uint64_t format = json.at("format").get<uint64_t>();
    if (format > kFormat) throw Error(fmt::format("'{}' has format {}; this zerorun knows formats up to {}", name, format, kFormat));
    ProductTable table;
    for (const nlohmann::json &entry : json.at("tables")) {
      MeasuredDevice &device = table.emplace_back();
      device.device = entry.at("device").get<std::string>(), device.library = entry.at("cublaslt").get<uint64_t>();
      for (const auto &[key, product] : entry.at("products").items())
        device.products[key] = {algorithmOf(product.at("algorithm").get<std::string>()), product.at("microseconds").get<double>(),
                                product.at("heuristic").get<double>(), product.at("tried").get<std::vector<double>>()};
    }
    return table;
  } catch (const Error &) {
    throw;
  } catch (const std::exception &) { // nothing that could be read so
  }
  throw Error(
      fmt::format("'{}' is no table of algorithms for products: its entries are not those that `zerorun --tune` writes{}", name, advice));
}

} // namespace zero::runtime::cuda
