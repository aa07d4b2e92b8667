#include <filesystem>
#include <memory>

#include "base/number.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "store/gzip.h"
#include "store/pack.h"
#include "store/run_check.h"

namespace sb::cli {
namespace pack_command {

struct Options {
  std::string folder, file;
};

Exit run(const Options& options) {
  expect_folder_or_archive(options.folder, "pack DIR");
  if (!RunTree::is_archive_name(options.file))
    throw bad_input("pack FILE",
                    "expected a name that ends in .tar or .tar.gz, got '" + printable(options.file, 400) + "'");
  if (!options.file.ends_with(".tar") && !has_gzip())
    throw bad_input("pack FILE", "this build has no zlib, expected a name that ends in .tar, got '" +
                                     printable(options.file, 400) + "'");
  const Packed packed = pack_runs(options.folder, options.file);
  const std::string digest = write_archive(options.file, packed.files);
  for (const auto& note : packed.notes) complain(note);
  if (packed.unfinished > 0) complain("left out, not finished: " + grouped(packed.unfinished));
  std::error_code failed;
  const auto bytes = static_cast<double>(std::filesystem::file_size(options.file, failed));
  print(grouped(packed.runs) + (packed.runs == 1 ? " run, " : " runs, ") + bytes_text(bytes) + ": " +
        one_line(options.file) + "\nsha256 " + digest + "\n");
  return packed.damaged ? Exit::check_failed : Exit::done;
}

}  // namespace pack_command

void add_pack(Program& program) {
  using namespace pack_command;
  auto options = std::make_shared<Options>();
  Arguments& arguments = program.command(
      "pack", "Pack finished runs, without weights, into one archive that `table` and `check` read like a folder",
      {"selectivbench pack runs/small results/small.tar.gz", "selectivbench table results/small.tar.gz"},
      [options] { return run(*options); });
  arguments.positional("DIR", options->folder, true, "Folder of runs, folder of such folders, or archive");
  arguments.positional("FILE", options->file, true, "Archive to write: .tar, or .tar.gz if the build has zlib");
}

}  // namespace sb::cli
