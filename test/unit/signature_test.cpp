// Signed plans: what the right key signed is loaded, and nothing else is.
#include "runtime/plan/container.h"
#include "test/unit/plan_builder.h"
#include "test/unit/run_fixtures.h"
#include <algorithm>
#include <openssl/evp.h>
#include <openssl/pem.h>

using namespace zero;
using namespace zero::plan;
using zero::test::Folder;
using zero::test::PlanBuilder;
using zero::test::refusalOf;

namespace {

class Signed : public testing::Test {
protected:
  Signed() {
    writeKeys("key", EVP_PKEY_ED25519), writeKeys("other", EVP_PKEY_ED25519), writeKeys("x448", EVP_PKEY_X448);
    b.floats("weights", 64);
    save(path, b.plan, kernels, constants, &*key);
    file = folder.read("plan.bin");
  }

  // NAME and NAME.pub in PEM form.
  void writeKeys(const std::string &name, int kind) {
    EVP_PKEY *made = nullptr;
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_id(kind, nullptr);
    ASSERT_TRUE(EVP_PKEY_keygen_init(context) == 1 && EVP_PKEY_keygen(context, &made) == 1);
    FILE *secret = fopen((folder / name).c_str(), "w"), *open = fopen((folder / (name + ".pub")).c_str(), "w");
    PEM_write_PrivateKey(secret, made, nullptr, nullptr, 0, nullptr, nullptr), PEM_write_PUBKEY(open, made);
    fclose(secret), fclose(open);
    EVP_PKEY_free(made), EVP_PKEY_CTX_free(context);
    if (name == "key") key.emplace(folder / name);
  }
  PublicKey publicKey(const std::string &name) { return readPublicKey(folder / (name + ".pub")); }

  std::string refusal(const std::string &bytes, const std::string &who = "key") {
    PublicKey required = publicKey(who);
    return refusalOf([&] { parse(std::as_bytes(std::span(bytes)), "p.bin", &required); });
  }

  Folder folder;
  std::string path = folder / "plan.bin", file;
  std::optional<SigningKey> key;
  PlanBuilder b;
  std::vector<std::byte> kernels{100, std::byte{7}}, constants{256, std::byte{9}};
};

TEST_F(Signed, ByTheRightKeyItIsLoaded) {
  PublicKey required = publicKey("key");
  PlanFile loaded = load(path, &required);
  ASSERT_TRUE(loaded.signer);
  EXPECT_EQ(*loaded.signer, required);
  EXPECT_TRUE(std::ranges::equal(loaded.kernels, kernels));
  EXPECT_EQ(load(path).signer, required) << "a signature is told without being required";
  save(folder / "again.bin", b.plan, kernels, constants, &*key);
  EXPECT_EQ(file, folder.read("again.bin")) << "the same plan and key give the same bytes";
}

TEST_F(Signed, ByAnotherKeyOrNotAtAllItIsRefused) {
  EXPECT_NE(refusal(file, "other").find("p.bin is signed by another key, "), std::string::npos) << refusal(file, "other");
  std::string unsigned_ = file.substr(0, file.size() - Signature::kTrailer);
  EXPECT_NE(refusal(unsigned_).find("p.bin is not signed, and a signature by key "), std::string::npos) << refusal(unsigned_);
  // Another's signature under the name of the right key.
  std::string forged = unsigned_;
  SigningKey other(folder / "other");
  Signature signature = other.sign(std::as_bytes(std::span(unsigned_)));
  signature.key = publicKey("key");
  auto trailer = signature.trailer();
  forged.append(reinterpret_cast<const char *>(trailer.data()), trailer.size());
  EXPECT_NE(refusal(forged).find("was changed after it was signed"), std::string::npos) << refusal(forged);
}

// Where checksums are made right, the signature is what finds a change; and it is looked at whether or not it is required.
TEST_F(Signed, ChangedItIsRefused) {
  PlanBuilder other;
  other.floats("weights", 128);
  save(folder / "other.bin", other.plan, kernels, constants);
  std::string changed = folder.read("other.bin") + file.substr(file.size() - Signature::kTrailer);
  EXPECT_NE(refusal(changed).find("p.bin was changed after it was signed by key "), std::string::npos) << refusal(changed);
  EXPECT_NE(refusalOf([&] { parse(std::as_bytes(std::span(changed)), "p.bin"); }), "");
  PublicKey required = publicKey("key");
  for (size_t i = 0; i < file.size(); ++i) { // of the trailer too
    file[i] = static_cast<char>(file[i] ^ 0x10);
    EXPECT_NE(refusalOf([&] { parse(std::as_bytes(std::span(file)), "p.bin", &required); }), "") << "byte " << i;
    file[i] = static_cast<char>(file[i] ^ 0x10);
  }
  EXPECT_EQ(refusal(file), "");
  EXPECT_NE(refusal(file + "x"), "");
}

TEST_F(Signed, APlanThatIsThereCanBeSigned) {
  save(folder / "bare.bin", b.plan, kernels, constants);
  EXPECT_TRUE(isPlan(folder / "bare.bin"));
  EXPECT_FALSE(isPlan(folder / "key"));
  sign(folder / "bare.bin", folder / "signed.bin", *key);
  EXPECT_EQ(file, folder.read("signed.bin")) << "as if it had been signed when it was written";
  SigningKey other(folder / "other");
  sign(folder / "signed.bin", folder / "signed.bin", other);
  EXPECT_EQ(load(folder / "signed.bin").signer, publicKey("other"));
  EXPECT_EQ(folder.read("signed.bin").size(), file.size()) << "one signature, not two";
  folder.write("bare.bin", folder.read("bare.bin") + "more");
  EXPECT_NE(refusalOf([&] { sign(folder / "bare.bin", folder / "new.bin", *key); }), "");
  EXPECT_FALSE(std::filesystem::exists(folder / "new.bin"));
}

TEST_F(Signed, KeysOfOtherKindsAreRefused) {
  auto refusals = [&](const std::string &name) {
    return refusalOf([&] { SigningKey key(folder / name); }) + "\n" + refusalOf([&] { readPublicKey(folder / (name + ".pub")); });
  };
  std::string said = refusals("x448");
  EXPECT_NE(said.find("holds no private Ed25519 key"), std::string::npos) << said;
  EXPECT_NE(said.find("holds no public Ed25519 key"), std::string::npos) << said;
  EXPECT_NE(refusals("absent").find("cannot open the key"), std::string::npos);
  EXPECT_NE(refusalOf([&] { readPublicKey(folder / "key"); }), "") << "a private key taken for a public one";
  EXPECT_EQ(publicKey("key").fingerprint().size(), 64u);
  EXPECT_NE(publicKey("key").fingerprint(), publicKey("other").fingerprint());
}

} // namespace
