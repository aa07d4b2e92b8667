#include <sys/random.h>
#include <unistd.h>

#include <memory>
#include <thread>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/stop.h"
#include "page/http_server.h"
#include "page/live.h"

namespace sb::cli {
namespace watch_command {

struct Options {
  std::vector<std::string> folders;
  std::string host = "127.0.0.1";
  int port = 0;
  double every = 2;
};

// Secret part of the address, unknown to other users of the machine and to other sites in the browser.
std::string random_token() {
  unsigned char bytes[16];
  if (::getrandom(bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes))
    throw check_failed("watch", "cannot get random bytes from the system");
  static constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (const unsigned char byte : bytes) out += {digits[byte >> 4], digits[byte & 15]};
  return out;
}

HttpAnswer answer_to(const HttpRequest& request, LivePage& page, const std::string& token) {
  const std::string root = "/" + token + "/";
  try {
    if (request.path == root) return {200, "text/html; charset=utf-8", page.html(), ""};
    if (request.path == root + "data") {
      LivePage::Data data = page.data();
      if (request.if_none_match == data.tag) return {304, "", "", data.tag};
      return {200, "application/json", std::move(data.json), data.tag};
    }
  } catch (const std::exception& error) {  // not readable now: the page shows the message and polls again
    return {500, "text/plain; charset=utf-8", one_line(error.what()) + "\n", ""};
  }
  return {404, "text/plain; charset=utf-8", "Not Found\n", ""};
}

// Names the option at fault: --host if no port of the address can be opened, else --port.
Error cannot_listen(const Options& options) {
  if (options.port == 0 || !HttpServer(options.host, 0).is_open())
    return bad_input("watch --host", "cannot listen on '" + printable(options.host, 200) +
                                         "', expected an address of this machine, such as 127.0.0.1");
  return bad_input("watch --port", "cannot listen on port " + std::to_string(options.port) + " of " +
                                       printable(options.host, 200) + ": it is in use, or needs other permissions");
}

Exit run(const Options& options, const SwitchDefaults& defaults) {
  LivePage page(PageSource(options.folders, "watch DIR", defaults), built_in_parts(),
                static_cast<int>(options.every * 1000));
  for (const auto& line : page.begin("watch DIR")) complain("note: left out, damaged: " + one_line(line));
  const std::string token = random_token();
  HttpServer server(options.host, options.port);
  if (!server.is_open()) throw cannot_listen(options);
  const GracefulStop ends_the_server;
  const std::string shown = options.host.find(':') == std::string::npos ? options.host : "[" + options.host + "]";
  print("http://" + shown + ":" + std::to_string(server.port()) + "/" + token + "/\n");
  finish_output();
  complain("Ctrl-C ends it.");
  // Reading folders may take longer than a user waits, so a stop request ends the process; nothing needs saving.
  std::jthread ender([](const std::stop_token& over) {
    while (!over.stop_requested())
      if (stop_within(.2)) {
        for (int i = 0; i < 25 && !over.stop_requested(); ++i)
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
        if (!over.stop_requested()) ::_exit(static_cast<int>(Exit::done));
      }
  });
  server.serve([&](const HttpRequest& request) { return answer_to(request, page, token); }, stop_requested);
  return Exit::done;
}

}  // namespace watch_command

void add_watch(Program& program, SwitchDefaults defaults) {
  using namespace watch_command;
  auto options = std::make_shared<Options>();
  Arguments& arguments =
      program.command("watch", "Serve the page of `report` on this machine, and update it while runs continue",
                      {"selectivbench watch runs/quick", "selectivbench watch runs --port 8080"},
                      [options, defaults] { return run(*options, defaults); });
  arguments.positionals("DIR", options->folders, true, "Folders or archives of runs, or folders that contain them");
  arguments.integer("--port", options->port, 0, 65535, "Port to listen on; 0: any free port");
  arguments.text("--host", options->host, "ADDRESS",
                 "Address to listen on; with any address other than 127.0.0.1, other machines can connect");
  arguments.real("--every", options->every, .2, 3600, "Seconds between checks of the folders");
}

}  // namespace sb::cli
