#include <gtest/gtest.h>

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

TEST(Sha256, DoesNotDependOnHowTheBytesArePortioned) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>(i * 7);
  const std::string whole = sha256_hex(text);
  for (const size_t portion : {1U, 3U, 55U, 56U, 63U, 64U, 65U, 127U, 999U}) {
    Sha256 hash;
    for (size_t at = 0; at < text.size(); at += portion) hash.update(std::string_view(text).substr(at, portion));
    EXPECT_EQ(hash.hex(), whole) << portion;
  }
}

TEST(Crc32, GivesThePublishedCheckValueInAnyPortions) {
  const std::string text = "123456789";
  EXPECT_EQ(crc32(0, text.data(), text.size()), 0xCBF43926U);
  EXPECT_EQ(crc32(crc32(0, text.data(), 4), text.data() + 4, 5), 0xCBF43926U);
  EXPECT_EQ(crc32(0, nullptr, 0), 0U);
}

}  // namespace
}  // namespace sb
