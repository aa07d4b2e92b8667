// `report` and `watch` as a user calls them.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <fstream>
#include <map>
#include <set>
#include <thread>

#include "../page/made_up.h"
#include "program_run.h"
#include "store/checkpoint.h"

namespace sb::test {
namespace {

namespace fs = std::filesystem;

TEST(Report, WritesReproduciblePageAndFigures) {
  TemporaryFolder root;
  for (const int seed : {1, 2}) finish_small(root.file("runs"), "gla", seed);
  const auto report = [&](const std::string& out) {
    return run({"report", root.file("runs"), "--out", root.file(out), "--figures", root.file("figures/" + out)});
  };
  const Outcome first = report("a.html");
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_NE(first.out.find("2 runs, "), std::string::npos);
  EXPECT_NE(first.out.find(root.file("a.html")), std::string::npos);
  ASSERT_EQ(report("b.html").code, 0);
  EXPECT_EQ(whole_file(root.file("a.html")), whole_file(root.file("b.html")));
  size_t specifications = 0;
  for (const auto& entry : fs::directory_iterator(root.file("figures/a.html"))) {
    const std::string name = entry.path().filename().string();
    EXPECT_EQ(whole_file(entry.path().string()), whole_file(root.file("figures/b.html/" + name)));
    if (!name.ends_with(".vl.json")) continue;
    ++specifications;
    const Json spec = Json::parse(whole_file(entry.path().string()));
    EXPECT_TRUE(spec["data"]["values"].is_array());
    EXPECT_TRUE(fs::exists(entry.path().string().substr(0, entry.path().string().size() - 8) + ".csv"));
  }
  EXPECT_GT(specifications, 8U);
  const Outcome dated = run({"report", root.file("runs"), "--out", "-", "--dated"});
  EXPECT_EQ(dated.code, 0);
  EXPECT_NE(dated.out.find(" UTC\""), std::string::npos);
}

TEST(Report, ReportsInvalidInputInOneLineAndWritesNothing) {
  TemporaryFolder root;
  const std::string out = root.file("report.html");
  const Outcome nowhere = run({"report", root.file("nowhere"), "--out", out});
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_EQ(nowhere.err, "[report DIR] expected a folder of runs or an archive, got '" + root.file("nowhere") + "'\n");
  fs::create_directories(root.file("empty"));
  const Outcome empty = run({"report", root.file("empty"), "--out", out});
  EXPECT_EQ(empty.code, 2);
  EXPECT_TRUE(empty.err.starts_with("[report DIR] expected runs below the folder, got none")) << empty.err;
  EXPECT_FALSE(fs::exists(out));
  finish_small(root.file("runs"), "gla", 1);
  EXPECT_EQ(run({"report", root.file("runs"), "--out", root.file("no/such/folder.html")}).code, 74);
}

// A tar that ends in the middle.
void write_half_an_archive(const std::string& path, const std::string& runs) {
  ASSERT_EQ(run({"pack", runs, path}).code, 0);
  std::string bytes = whole_file(path);
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes.substr(0, bytes.size() / 2);
}

TEST(Report, NamesDamagedArchiveAndWritesPage) {
  TemporaryFolder root;
  finish_small(root.file("in/runs"), "gla", 1);
  write_half_an_archive(root.file("in/bad.tar"), root.file("in/runs"));
  ASSERT_TRUE(exits(run({"report", root.file("in"), "--out", root.file("r.html"), "--data", root.file("r.json")}), 0,
                    "An archive is damaged"));
  EXPECT_EQ(Json::parse(whole_file(root.file("r.json")))["meta"]["counts"]["damaged"], 1);
  const Outcome alone = run({"report", root.file("in/bad.tar"), "--out", root.file("n.html")});
  EXPECT_EQ(alone.code, 2);
  EXPECT_TRUE(alone.err.starts_with("[report DIR] expected an archive")) << alone.err;
  EXPECT_FALSE(fs::exists(root.file("n.html")));
}

TEST(Table, AveragesOverKeysThatAreNamed) {
  TemporaryFolder root;
  for (const char* noise : {"0.1", "0.2"}) {
    const ResolvedConfig config = resolve_text(std::string("[model]\nname = \"gla\"\n[task]\nnoise = ") + noise + "\n");
    finish_run(root.path(), config, result_of(config));
  }
  const auto cells = [&](const std::vector<std::string>& more) {
    const Outcome outcome = run(std::vector<std::string>{"table", root.path(), "--format", "json"} + more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out, nullptr, false)["cells"];
  };
  EXPECT_EQ(cells({}).size(), 2U);
  const Json averaged = cells({"--average", "task.noise"});
  ASSERT_EQ(averaged.size(), 1U);
  EXPECT_EQ(averaged[0]["runs"], 2);
  EXPECT_TRUE(exits(run({"table", root.path(), "--average", "model.name"}), 2, "[table --average]"));
}

TEST(Commands, RejectFilesThatAreNotArchives) {
  TemporaryFolder root;
  std::ofstream(root.file("notes.txt")) << "these are notes\n";
  const std::string what =
      "] expected a folder of runs or an archive of `selectivbench pack`, got a file that is neither tar nor gzip, '" +
      root.file("notes.txt") + "'\n";
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"table"}, {"report"}, {"watch"}, {"experiments", "verdict", "gates"}}) {
    std::vector<std::string> arguments = command;
    arguments.push_back(root.file("notes.txt"));
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 2) << command[0];
    EXPECT_NE(outcome.err.find(what), std::string::npos) << outcome.err;
  }
}

TEST(Check, DistinguishesNonArchiveFromDamagedArchive) {
  TemporaryFolder root;
  finish_small(root.file("runs"), "gla", 1);
  std::ofstream(root.file("notes.txt")) << "these are notes\n";
  const Outcome notes = run({"check", root.file("notes.txt"), "--json", "-"});
  EXPECT_EQ(notes.code, 2);
  EXPECT_EQ(notes.out, "");
  EXPECT_EQ(
      notes.err,
      "[check] expected a folder of runs or an archive of `selectivbench pack`, got a file that is neither tar nor "
      "gzip, '" +
          root.file("notes.txt") + "'\n");
  write_half_an_archive(root.file("bad.tar"), root.file("runs"));
  const Outcome bad = run({"check", root.file("bad.tar"), "--json", "-"});
  EXPECT_EQ(bad.code, 1);
  const Json json = Json::parse(bad.out);
  ASSERT_EQ(json["archives"].size(), 1U);
  EXPECT_EQ(json["archives"][0]["file"], root.file("bad.tar"));
  EXPECT_NE(json["archives"][0]["problem"].get<std::string>().find("bad.tar"), std::string::npos);
  EXPECT_NE(run({"check", root.file("bad.tar")}).out.find("0 runs: 1 damaged archive\n"), std::string::npos);
}

TEST(Check, ReportsUnreadableResultAsDamaged) {
  TemporaryFolder root;
  const std::string folder = finish_small(root.path(), "gla", 1);
  std::ofstream(folder + "/result.json") << "{}";
  const Outcome outcome = run({"check", root.path()});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(outcome.out.starts_with(folder + ": damaged\n")) << outcome.out;
  const double weight = 1;
  for (const auto& [updates, said] : std::map<int64_t, std::string>{
           {40, ": damaged, at update 40 of 100\n"},
           {100, ": damaged, all 100 updates are done, but there is no readable result\n"}}) {
    save_checkpoint(folder, updates, {{"weight", "F64", {1}, &weight}},
                    {{"run_id", fs::path(folder).filename().string()}});
    const std::string out = run({"check", root.path()}).out;
    EXPECT_TRUE(out.starts_with(folder + said)) << out;
  }
}

TEST(Verdict, RejectsFolderWithoutRuns) {
  TemporaryFolder root;
  const Outcome outcome = run({"experiments", "verdict", "main_table", root.path()});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(outcome.err.starts_with("[experiments verdict DIR] expected runs below the folder, got none, "));
}

int connected_to(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const timeval limit{60, 0};  // a server that does not answer fails the test instead of keeping it
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0) return fd;
  ::close(fd);
  return -1;
}

// What comes back for these bytes.
std::string answer_to(int port, const std::string& request) {
  const int fd = connected_to(port);
  size_t sent = 0;
  while (sent < request.size()) {
    const ssize_t n = ::send(fd, request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) break;
    sent += static_cast<size_t>(n);
  }
  std::string out;
  char buffer[65536];
  for (ssize_t n = 0; (n = ::recv(fd, buffer, sizeof buffer, 0)) > 0;) out.append(buffer, static_cast<size_t>(n));
  ::close(fd);
  return out;
}

// The answer to one request, head and body.
std::string ask(int port, const std::string& path, const std::string& header = "") {
  return answer_to(port, "GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n" + header + "\r\n");
}

// `watch` at work on a folder.
struct Watched {
  explicit Watched(const std::string& folder) : watch({"watch", folder, "--every", "0.2"}) {
    const std::string start = "http://127.0.0.1:";
    std::string address;
    for (int tries = 0; tries < 600 && address.find('\n') == std::string::npos; ++tries) {
      ::usleep(50'000);
      address = watch.output_so_far();
    }
    if (!address.starts_with(start)) throw std::runtime_error("no address: " + address + watch.errors_so_far());
    port = std::stoi(address.substr(start.size()));
    path = address.substr(address.find('/', start.size()), 34);
  }
  Started watch;
  int port = 0;
  std::string path;
};

TEST(Watch, ServesPageOnlyUnderTokenAndFollowsFolder) {
  TemporaryFolder root;
  finish_small(root.file(""), "gla", 1);
  Watched watched(root.file(""));
  const int port = watched.port;
  const std::string path = watched.path;
  ASSERT_EQ(path.size(), 34U) << "a token of 32 digits between slashes";
  const std::string page = ask(port, path);
  EXPECT_TRUE(page.starts_with("HTTP/1.1 200")) << page.substr(0, 200);
  EXPECT_NE(page.find("connect-src 'self'"), std::string::npos);
  for (const char* other : {"/", "/data", "/00000000000000000000000000000000/"})
    EXPECT_TRUE(ask(port, other).starts_with("HTTP/1.1 404")) << other;
  const std::string data = ask(port, path + "data");
  EXPECT_TRUE(data.starts_with("HTTP/1.1 200"));
  const Json before = Json::parse(data.substr(data.find("\r\n\r\n") + 4));
  EXPECT_EQ(before["runs"].size(), 1U);
  EXPECT_EQ(before["meta"]["live"]["data"], "data");
  const size_t tag = data.find("ETag: ");
  ASSERT_NE(tag, std::string::npos);
  const std::string value = data.substr(tag + 6, data.find("\r\n", tag) - tag - 6);
  EXPECT_TRUE(ask(port, path + "data", "If-None-Match: " + value + "\r\n").starts_with("HTTP/1.1 304"));
  finish_small(root.file(""), "gla", 2);
  size_t runs = 0;
  for (int tries = 0; tries < 100 && runs != 2; ++tries) {
    ::usleep(100'000);
    const std::string now = ask(port, path + "data");
    runs = Json::parse(now.substr(now.find("\r\n\r\n") + 4))["runs"].size();
  }
  EXPECT_EQ(runs, 2U);
  watched.watch.signal(SIGINT);
  EXPECT_EQ(watched.watch.wait().code, 0);
}

TEST(Watch, ServesAndStopsDespiteSlowConnections) {
  TemporaryFolder root;
  finish_small(root.file(""), "gla", 1);
  Watched watched(root.file(""));
  const auto pages_served = [&] {
    int count = 0;
    for (int i = 0; i < 20; ++i) count += ask(watched.port, watched.path).starts_with("HTTP/1.1 200") ? 1 : 0;
    return count;
  };
  std::vector<int> slow;
  for (int i = 0; i < 200; ++i) slow.push_back(connected_to(watched.port));
  ASSERT_EQ(std::count(slow.begin(), slow.end(), -1), 0);
  {
    const std::string request = "GET /slow HTTP/1.1";
    std::jthread drip([&](const std::stop_token& over) {
      for (size_t i = 0; !over.stop_requested(); ++i) {
        for (const int fd : slow) (void)!::send(fd, &request[i % request.size()], 1, MSG_NOSIGNAL);
        ::usleep(100'000);
      }
    });
    EXPECT_EQ(pages_served(), 20) << "200 connections that send a byte at a time";
    while (slow.size() < 700) slow.push_back(connected_to(watched.port));
    EXPECT_EQ(pages_served(), 20) << "more connections than are kept";
    watched.watch.signal(SIGINT);
    EXPECT_EQ(watched.watch.wait().code, 0);
  }
  for (const int fd : slow) ::close(fd);
}

TEST(Watch, RejectsForeignHostsAndOtherMethods) {
  TemporaryFolder root;
  finish_small(root.file(""), "gla", 1);
  const Watched watched(root.file(""));
  const auto status = [&](const std::string& method, const std::string& headers) {
    return answer_to(watched.port, method + " " + watched.path + " HTTP/1.1\r\n" + headers + "\r\n").substr(9, 3);
  };
  for (const char* own : {"127.0.0.1", "127.0.0.1:9", "localhost:8080", "LOCALHOST"})
    EXPECT_EQ(status("GET", std::string("Host: ") + own + "\r\n"), "200") << own;
  for (const char* other : {"example.org", "127.0.0.1.example.org:80", "192.0.2.7", "[::1]", ""})
    EXPECT_EQ(status("GET", std::string("Host: ") + other + "\r\n"), "403") << other;
  EXPECT_EQ(status("GET", ""), "400");
  EXPECT_EQ(status("GET", "Host: localhost\r\nHost: example.org\r\n"), "400");
  EXPECT_EQ(status("POST", "Host: localhost\r\n"), "405");
  EXPECT_EQ(status("GET", "Host: localhost\r\nCookie: " + std::string(20000, 'c') + "\r\n"), "431");
  const std::string head = answer_to(watched.port, "HEAD " + watched.path + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_TRUE(head.starts_with("HTTP/1.1 200")) << head;
  EXPECT_TRUE(head.ends_with("\r\n\r\n")) << head;
}

TEST(Watch, RejectsUnreadableInputBeforeServing) {
  TemporaryFolder root;
  finish_small(root.file("runs"), "gla", 1);
  write_half_an_archive(root.file("bad.tar"), root.file("runs"));
  EXPECT_TRUE(exits(run({"watch", root.file("nowhere")}), 2));
  const Outcome bad = run({"watch", root.file("bad.tar")});
  EXPECT_EQ(bad.code, 2);
  EXPECT_TRUE(bad.err.starts_with("[watch DIR] expected an archive")) << bad.err;
  EXPECT_EQ(std::count(bad.err.begin(), bad.err.end(), '\n'), 1) << bad.err;
  for (const char* port : {"0", "18733"}) {
    const Outcome host = run({"watch", root.file("runs"), "--host", "192.0.2.1", "--port", port});
    EXPECT_EQ(host.code, 2);
    EXPECT_TRUE(host.err.starts_with("[watch --host] cannot listen on '192.0.2.1'")) << host.err;
  }
}

TEST(Watch, NamesPortInUse) {
  TemporaryFolder root;
  finish_small(root.file("runs"), "gla", 1);
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof here;
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&here), size), 0);
  ASSERT_EQ(::listen(fd, 1), 0);
  ASSERT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&here), &size), 0);
  const Outcome taken = run({"watch", root.file("runs"), "--port", std::to_string(ntohs(here.sin_port))});
  ::close(fd);
  EXPECT_EQ(taken.code, 2);
  EXPECT_TRUE(taken.err.starts_with("[watch --port] cannot listen on port ")) << taken.err;
}

}  // namespace
}  // namespace sb::test
