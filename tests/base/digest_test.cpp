#include <gtest/gtest.h>

#include <zlib.h>

#include <random>

#include "base/base64.h"
#include "base/crc32.h"
#include "base/sha256.h"

namespace sb {
namespace {

TEST(Sha256, GivesThePublishedDigests) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, DoesNotDependOnChunkSizes) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>(i * 7);
  const std::string whole = sha256_hex(text);
  for (const size_t portion : {1U, 3U, 55U, 56U, 63U, 64U, 65U, 127U, 999U}) {
    Sha256 hash;
    for (size_t at = 0; at < text.size(); at += portion) hash.update(std::string_view(text).substr(at, portion));
    EXPECT_EQ(hash.hex(), whole) << portion;
  }
}

TEST(Base64, MatchesTestVectorsOfStandard) {
  const std::pair<const char*, const char*> vectors[] = {{"", ""},
                                                         {"f", "Zg=="},
                                                         {"fo", "Zm8="},
                                                         {"foo", "Zm9v"},
                                                         {"foob", "Zm9vYg=="},
                                                         {"fooba", "Zm9vYmE="},
                                                         {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, coded] : vectors) EXPECT_EQ(base64(plain), coded);
  EXPECT_EQ(base64(sha256_bytes("")), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
}

TEST(Crc32, GivesPublishedCheckValueForAnyChunks) {
  const std::string text = "123456789";
  EXPECT_EQ(crc32(0, text.data(), text.size()), 0xCBF43926U);
  EXPECT_EQ(crc32(crc32(0, text.data(), 4), text.data() + 4, 5), 0xCBF43926U);
  EXPECT_EQ(crc32(0, nullptr, 0), 0U);
}

std::vector<uint8_t> noise(size_t size) {
  std::mt19937 random(1);
  std::vector<uint8_t> out(size);
  for (uint8_t& byte : out) byte = static_cast<uint8_t>(random());
  return out;
}

// The first bytes of a stream are digested by portable code, the others by libcrypto if there is one.
TEST(Sha256, LongStreamsMatchPublishedDigest) {
  Sha256 hash;
  for (int i = 0; i < 1000; ++i) hash.update(std::string(1000, 'a'));
  EXPECT_EQ(hash.hex(), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Crc32, MatchesZlib) {
  const std::vector<uint8_t> data = noise(2100);
  for (size_t size = 0; size < data.size() - 3; size += size < 300 ? 1 : 37) {
    const uint8_t* from = data.data() + size % 3;
    const auto want = static_cast<uint32_t>(::crc32(size, from, static_cast<uInt>(size)));
    EXPECT_EQ(crc32(static_cast<uint32_t>(size), from, size), want) << size;
  }
}

}  // namespace
}  // namespace sb
