// The head of a request, as browsers and others send it.
#include "page/http_request.h"

#include <gtest/gtest.h>

namespace sb {
namespace {

TEST(HttpRequest, IsParsedFromHeader) {
  const auto request = read_request("GET /a/b?c=d HTTP/1.1\r\nhOST:  LocalHost:8080 \r\nIf-None-Match: \"12\"");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->method, "GET");
  EXPECT_EQ(request->path, "/a/b");
  EXPECT_EQ(request->host, "localhost");
  EXPECT_EQ(request->if_none_match, "\"12\"");
}

TEST(HttpRequest, RejectsInvalidRequests) {
  for (const char* head : {"", " ", "  ", "GET", "GET /", "GET / HTTP/2\r\nHost: a", "GET / HTTP/1.1",
                           "GET / HTTP/1.1\r\nHost: a\r\nHost: a", "GET / HTTP/1.1\r\nno colon\r\nHost: a",
                           "\x16\x03\x01\x02", "GET HTTP/1.1\r\nHost: a", "GET / HTTP/1.1\r\nHost: a\nb",
                           "GET /\r HTTP/1.1\r\nHost: a", " / HTTP/1.1\r\nHost: a"})
    EXPECT_FALSE(read_request(head)) << head;
}

TEST(HttpRequest, StripsPortFromHost) {
  EXPECT_EQ(host_name("Example.org"), "example.org");
  EXPECT_EQ(host_name("example.org:80"), "example.org");
  EXPECT_EQ(host_name("[::1]:80"), "::1");
  EXPECT_EQ(host_name("::1"), "::1");
  EXPECT_EQ(host_name("["), "");
  for (const char* malformed : {"[::1", "[localhost]evil.org", "localhost:evil.org", "[::1]:80x"})
    EXPECT_EQ(host_name(malformed), "") << malformed;
  EXPECT_EQ(host_name(":80"), "");
}

}  // namespace
}  // namespace sb
