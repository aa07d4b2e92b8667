#include <httplib.h>
#include <sys/random.h>

#include <memory>
#include <thread>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/commands/report.h"
#include "cli/output.h"
#include "cli/stop.h"
#include "page/live.h"

namespace sb::cli {
namespace {

struct Options {
  std::vector<std::string> folders;
  std::string host = "127.0.0.1";
  int port = 0;
  double every = 2;
};

// Part of every address: another user of the machine, or a page open in the browser, does not know it.
std::string random_token() {
  unsigned char bytes[16];
  if (::getrandom(bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes))
    throw check_failed("watch", "the system gives no random bytes");
  static constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (const unsigned char byte : bytes) out += {digits[byte >> 4], digits[byte & 15]};
  return out;
}

void serve(httplib::Server& server, LivePage& page, const std::string& token) {
  server.set_default_headers({{"Cache-Control", "no-store"},
                              {"Referrer-Policy", "no-referrer"},
                              {"X-Content-Type-Options", "nosniff"},
                              {"X-Frame-Options", "DENY"}});
  server.Get("/" + token + "/", [&page](const httplib::Request&, httplib::Response& answer) {
    answer.set_content(page.html(), "text/html; charset=utf-8");
  });
  server.Get("/" + token + "/data", [&page](const httplib::Request& asked, httplib::Response& answer) {
    const LivePage::Data data = page.data();
    answer.set_header("ETag", data.tag);
    if (asked.get_header_value("If-None-Match") == data.tag)
      answer.status = 304;
    else
      answer.set_content(data.json, "application/json");
  });
  // What cannot be read just now: the page shows the line, and asks again.
  server.set_exception_handler([](const httplib::Request&, httplib::Response& answer, std::exception_ptr failure) {
    answer.status = 500;
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& error) {
      answer.set_content(one_line(error.what()) + "\n", "text/plain; charset=utf-8");
    } catch (...) {
      answer.set_content("unknown error\n", "text/plain; charset=utf-8");
    }
  });
}

// One line that names the option at fault: an address of this machine takes connections on some port.
Error cannot_listen(const Options& options) {
  httplib::Server other;
  if (options.port == 0 || other.bind_to_any_port(options.host) < 0)
    return bad_input("watch --host", "cannot listen on '" + printable(options.host, 200) +
                                         "', expected an address of this machine, as 127.0.0.1");
  return bad_input("watch --port", "cannot listen on port " + std::to_string(options.port) + " of " +
                                       printable(options.host, 200) + ": it is taken, or needs other rights");
}

Exit run(const Options& options, const SwitchDefaults& defaults) {
  LivePage page(PageSource(options.folders, "watch DIR", defaults), built_in_parts(),
                static_cast<int>(options.every * 1000));
  for (const auto& line : page.begin("watch DIR")) complain("note: left out, damaged: " + one_line(line));
  const std::string token = random_token();
  httplib::Server server;
  serve(server, page, token);
  const int port = options.port == 0                                 ? server.bind_to_any_port(options.host)
                   : server.bind_to_port(options.host, options.port) ? options.port
                                                                     : -1;
  if (port < 0) throw cannot_listen(options);
  const GracefulStop ends_the_server;
  const std::string shown = options.host.find(':') == std::string::npos ? options.host : "[" + options.host + "]";
  print("http://" + shown + ":" + std::to_string(port) + "/" + token + "/\n");
  finish_output();
  complain("Ctrl-C ends it.");
  std::jthread stopper([&server](const std::stop_token& over) {
    while (!over.stop_requested())
      if (stop_within(.2)) {
        server.stop();
        return;
      }
  });
  server.listen_after_bind();
  return Exit::done;
}

}  // namespace

void add_watch(Program& program, SwitchDefaults defaults) {
  auto options = std::make_shared<Options>();
  Arguments& arguments =
      program.command("watch", "The page of `report`, served on this machine and kept up to date while runs go on",
                      {"selectivbench watch runs/quick", "selectivbench watch runs --port 8080"},
                      [options, defaults] { return run(*options, defaults); });
  arguments.positionals("DIR", options->folders, true, "Folders or archives of runs, or folders of those");
  arguments.integer("--port", options->port, 0, 65535, "Where to listen, 0 for any that is free");
  arguments.text("--host", options->host, "ADDRESS",
                 "Address to listen on; others than 127.0.0.1 let other machines in");
  arguments.real("--every", options->every, .2, 3600, "Seconds between looks at the folders");
}

void add_watch(Program& program) {
  add_watch(program, {});
}

}  // namespace sb::cli
