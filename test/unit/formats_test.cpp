// The formats of data files: what is written is read back, and what is broken is refused.
#include "test/unit/data_fixture.h"

using namespace zero;
using namespace zero::runtime;
using namespace zero::test;

TEST(Element, HalfAndBfloatRoundTrip) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    auto h = static_cast<uint16_t>(bits);
    if (float f = halfToFloat(h); !std::isnan(f)) {
      ASSERT_EQ(floatToHalf(f), h);
    }
    if (float f = bfloatToFloat(h); !std::isnan(f)) {
      ASSERT_EQ(floatToBfloat(f), h);
    }
  }
  EXPECT_EQ(floatToHalf(65520.0f), 0x7c00);          // rounds to infinity
  EXPECT_EQ(floatToHalf(1.0f + 0x1p-11f), 0x3c00);   // tie to even
  EXPECT_EQ(floatToHalf(1.0f + 0x1.8p-10f), 0x3c02); // tie to even, upwards
  EXPECT_EQ(floatToBfloat(1.0f + 0x1p-8f), 0x3f80);
}

TEST(Safetensors, WhatIsLaidOutIsReadBack) {
  Folder folder;
  SafetensorsLayout layout = layoutSafetensors({{"b", Element::I64, {2}}, {"a", Element::F32, {2, 2}}, {"none", Element::F32, {0}}});
  std::string file = layout.header + raw<int64_t>({7, -8}) + raw<float>({1, 2, 3, 4});
  ASSERT_EQ(file.size(), layout.bytes);
  TensorFile read = openTensorFile(folder.write("x.safetensors", file));
  ASSERT_EQ(read.tensors.size(), 3u);
  const Tensor *a = read.find("a"), *b = read.find("b");
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->shape, (std::vector<uint64_t>{2, 2}));
  EXPECT_EQ(a->offset, layout.offsets[1]);
  EXPECT_EQ(integerAt(b->type, b->bytes.data(), 1), -8);
  EXPECT_THROW(layoutSafetensors({{"a", Element::F32, {1}}, {"a", Element::F32, {1}}}), Error);
}

TEST(Safetensors, BrokenFilesAreRefused) {
  Folder folder;
  auto refused = [&](const std::string &bytes) { return refusalOf([&] { openTensorFile(folder.write("x.safetensors", bytes)); }); };
  auto entry = [](const char *shape, uint64_t begin, uint64_t end) {
    return fmt::format(R"({{"dtype":"F32","shape":{},"data_offsets":[{},{}]}})", shape, begin, end);
  };
  std::string good = safetensors("{\"a\":" + entry("[2]", 0, 8) + "}", std::string(8, 'x'));
  EXPECT_EQ(refused(good), "");
  for (size_t cut = 0; cut < good.size(); ++cut) EXPECT_NE(refused(good.substr(0, cut)), "") << cut;
  EXPECT_NE(refused(std::string(8, '\xff')).find("header claims"), std::string::npos);
  EXPECT_NE(refused(safetensors("[1]", "")), "");
  EXPECT_NE(refused(safetensors("{\"a\":" + std::string(50000, '['), "")), "");
  std::string two = "{\"a\":" + entry("[2]", 0, 8) + ",\"b\":" + entry("[2]", 4, 12) + "}";
  EXPECT_NE(refused(safetensors(two, std::string(12, 'x'))).find("overlaps"), std::string::npos);
  std::string hole = "{\"a\":" + entry("[2]", 0, 8) + ",\"b\":" + entry("[1]", 12, 16) + "}";
  EXPECT_NE(refused(safetensors(hole, std::string(16, 'x'))).find("hole"), std::string::npos);
  EXPECT_NE(refused(safetensors("{\"a\":" + entry("[2]", 0, 8) + "}", std::string(9, 'x'))), "");
  EXPECT_NE(refused(safetensors("{\"a\":" + entry("[3]", 0, 8) + "}", std::string(8, 'x'))), "");
  EXPECT_NE(refused(safetensors("{\"a\":" + entry("[4611686018427387904,4611686018427387904,4]", 0, 0) + "}", "")), "");
  EXPECT_NE(refused(safetensors("{\"a\":" + entry("[-1]", 0, 8) + "}", std::string(8, 'x'))), "");
}

TEST(Npz, StoredAndDeflatedMembersAreRead) {
  Folder folder;
  std::vector<std::pair<std::string, std::string>> members{{"a.npy", npy("<f4", "(2, 2)", raw<float>({1, 2, 3, 4}))},
                                                           {"n.npy", npy("<i8", "(3,)", raw<int64_t>({5, -6, 7}), 2)},
                                                           {"s.npy", npy("|b1", "()", "\1")}};
  for (bool deflated : {false, true}) {
    TensorFile file = openTensorFile(folder.write("x.npz", zip(members, deflated)));
    ASSERT_EQ(file.tensors.size(), 3u);
    const Tensor *n = file.find("n");
    ASSERT_TRUE(n && file.find("s"));
    EXPECT_EQ(file.find("a")->shape, (std::vector<uint64_t>{2, 2}));
    EXPECT_EQ(integerAt(n->type, n->bytes.data(), 1), -6);
    EXPECT_TRUE(file.find("s")->shape.empty());
  }
}

TEST(Npz, BrokenFilesAreRefused) {
  Folder folder;
  auto refused = [&](const std::string &bytes) { return refusalOf([&] { openTensorFile(folder.write("x.npz", bytes)); }); };
  std::string body = npy("<f4", "(2, 2)", raw<float>({1, 2, 3, 4}));
  for (bool deflated : {false, true}) {
    std::string good = zip({{"a.npy", body}}, deflated);
    ASSERT_EQ(refused(good), "");
    for (size_t cut = 0; cut < good.size(); ++cut) EXPECT_NE(refused(good.substr(0, cut)), "") << cut;
  }
  std::string flipped = zip({{"a.npy", body}}, true);
  flipped[50] = static_cast<char>(flipped[50] ^ 0x10); // inside the deflated bytes
  EXPECT_NE(refused(flipped), "");
  EXPECT_NE(refused(zip({{"a.npy", npy("<f4", "(99999999999999999, 99999999999999999)", "")}}, false)), "");
  EXPECT_NE(refused(zip({{"a.npy", npy(">f4", "(1,)", "1234")}}, false)).find("'>f4'"), std::string::npos);
  EXPECT_NE(refused(zip({{"a.npy", npy("<f4", "(2,)", "1234")}}, false)), "");
  EXPECT_NE(refused(zip({{"a.npy", "not an array"}}, false)), "");
}

TEST(Npz, StoredBytesAreSummed) {
  Folder folder;
  std::string bytes = zip({{"a.npy", npy("<f4", "(2, 2)", raw<float>({1, 2, 3, 4}))}}, false);
  bytes[bytes.find("PK\1\2") - 1] ^= 1; // the last element
  EXPECT_NE(
      refusalOf([&] { openTensorFile(folder.write("x.npz", bytes)); }).find("the bytes of member 'a.npy' are not those whose checksum"),
      std::string::npos);
}

TEST(Npz, MembersDoNotOverlap) {
  Folder folder;
  std::string body = npy("<f4", "(2, 2)", raw<float>({1, 2, 3, 4})), good = zip({{"a.npy", body}, {"b.npy", body}}, false);
  auto refused = [&](const std::string &bytes) { return refusalOf([&] { openTensorFile(folder.write("x.npz", bytes)); }); };
  ASSERT_EQ(refused(good), "");
  size_t first = good.find("PK\1\2"), second = good.find("PK\1\2", first + 1);
  std::string twice = good, longer = good, beyond = good;
  twice.replace(second + 42, 4, good.substr(first + 42, 4)); // both entries name the first member's place
  EXPECT_NE(refused(twice).find("members 'a.npy' and 'b.npy' overlap"), std::string::npos) << refused(twice);
  for (size_t field : {20, 24}) longer[first + field] = beyond[second + field] = static_cast<char>(body.size() + 1);
  EXPECT_NE(refused(longer).find("members 'a.npy' and 'b.npy' overlap"), std::string::npos) << refused(longer);
  EXPECT_NE(refused(beyond).find("overlaps its directory"), std::string::npos) << refused(beyond);
  EXPECT_NE(refused(zip({{"a.npy", body}, {"a.npy", body}}, false)).find("two members named 'a.npy'"), std::string::npos);
}

TEST(Element, IntegersKeepTheirRange) {
  auto converted = [](Element from, const std::string &bytes, plan::DType to) {
    std::vector<std::byte> out(8);
    convert(from, reinterpret_cast<const std::byte *>(bytes.data()), to, out.data(), 1);
    return integerAt(elementOf(to), out.data(), 0);
  };
  EXPECT_EQ(converted(Element::I64, raw<int64_t>({INT32_MIN}), plan::I32), INT32_MIN);
  EXPECT_NE(refusalOf([&] { converted(Element::I64, raw<int64_t>({INT32_MAX + int64_t(1)}), plan::I32); }).find("element 0 is 2147483648"),
            std::string::npos);
  EXPECT_NE(refusalOf([&] { converted(Element::U64, raw<uint64_t>({uint64_t(1) << 63}), plan::I64); }).find("9223372036854775808"),
            std::string::npos);
  std::vector<std::byte> out(1);
  convert(Element::BOOL, reinterpret_cast<const std::byte *>("\7"), plan::BOOL, out.data(), 1);
  EXPECT_EQ(out[0], std::byte{1}); // kernels rely on it
}

TEST(Safetensors, TensorsStartAtMultiplesOfEight) {
  for (const char *name : {"a", "ab", "abc"}) EXPECT_EQ(layoutSafetensors({{name, Element::U8, {1}}}).header.size() % 8, 0u);
}

TEST(Npz, FortranOrderIsRefused) {
  Folder folder;
  for (auto [shape, refused] : {std::pair{"(2, 2)", true}, {"(4,)", false}}) { // one dimension has no order
    std::string body = npy("<f4", shape, raw<float>({1, 2, 3, 4}));
    body.replace(body.find("False"), 5, "True ");
    std::string sentence = refusalOf([&] { openTensorFile(folder.write("x.npz", zip({{"a.npy", body}}, false))); });
    EXPECT_EQ(sentence.find("Fortran order") != std::string::npos, refused) << sentence;
  }
}

// Fields of an entry of the directory, by their place in it.
TEST(Npz, WhatTheDirectoryClaimsIsChecked) {
  Folder folder;
  std::string good = zip({{"a.npy", npy("<f4", "(2, 2)", raw<float>({1, 2, 3, 4}))}, {"notes.txt", "not an array"}}, true);
  size_t entry = good.find("PK\1\2");
  auto changed = [&](size_t field, char byte) {
    std::string bytes = good;
    bytes[entry + field] = static_cast<char>(bytes[entry + field] ^ byte);
    return refusalOf([&] { EXPECT_EQ(openTensorFile(folder.write("x.npz", bytes)).tensors.size(), 1u); });
  };
  EXPECT_EQ(changed(0, 0), "");
  EXPECT_NE(changed(8, 1).find("encrypted"), std::string::npos);
  EXPECT_NE(changed(10, 4).find("zip method 12"), std::string::npos);
  EXPECT_NE(changed(16, 1).find("CRC-32"), std::string::npos);             // the checksum
  EXPECT_NE(changed(27, 0x40).find("claims 10737419"), std::string::npos); // a gigabyte from a few bytes
}

TEST(Npz, ArchivesBeyondFourGibAreRead) {
  Folder folder;
  std::string body = npy("<i4", "(2,)", raw<int32_t>({3, 4})), bytes = zip({{"a.npy", body}}, false);
  // As zip64 writes it: the sizes stand in an extra field, and the directory's place in an end record of its own.
  size_t entry = bytes.find("PK\1\2"), end = bytes.find("PK\5\6");
  std::string directory = bytes.substr(entry, end - entry), extra, record, tail = bytes.substr(end);
  directory.replace(20, 8, 8, '\xff'), directory[30] = 28;
  put<uint16_t>(extra, 0x7777), put<uint16_t>(extra, 4), put<uint32_t>(extra, 0); // of someone else
  put<uint16_t>(extra, 1), put<uint16_t>(extra, 16), put<uint64_t>(extra, body.size()), put<uint64_t>(extra, body.size());
  directory += extra;
  record = "PK\6\6" + std::string(28, '\0');
  put<uint64_t>(record, 1), put<uint64_t>(record, directory.size()), put<uint64_t>(record, entry);
  record += "PK\6\7" + std::string(4, '\0');
  put<uint64_t>(record, entry + directory.size()), put<uint32_t>(record, 1);
  tail.replace(10, 10, 10, '\xff');
  TensorFile file = openTensorFile(folder.write("x.npz", bytes.substr(0, entry) + directory + record + tail));
  ASSERT_TRUE(file.find("a"));
  EXPECT_EQ(integerAt(Element::I32, file.find("a")->bytes.data(), 1), 4);
}
