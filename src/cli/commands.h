// Registration of commands: one line here and one in commands.cpp per command.
#pragma once
#include "cli/program.h"
#include "config/config_file.h"
#include "report/rows.h"

namespace sb::cli {

void add_grammar(Program& program);
void add_generate(Program& program);
void add_show(Program& program);
void add_ceiling(Program& program);
void add_bench_data(Program& program);
void add_rank(Program& program);
void add_submit(Program& program);

void add_bench_gpu(Program& program);
void add_bench_kernels(Program& program);
void add_bench_train(Program& program);
void add_config(Program& program);
void add_doctor(Program& program);
void add_eval(Program& program);
void add_experiments(Program& program);
void add_models(Program& program);
void add_pack(Program& program);
void add_suite(Program& program);
void add_train(Program& program);
void add_verify(Program& program);

// Without the rules of the models, with which `eval` resolves configs, networks are not compared.
void add_check(Program& program, std::optional<ModelRules> rules = {});
// `defaults`: of every model's switches; without them, switches are compared only with the paper's.
void add_experiments_verdict(Program& program, SwitchDefaults defaults = {});  // in the group "experiments"
void add_report(Program& program, SwitchDefaults defaults = {});
void add_table(Program& program, SwitchDefaults defaults = {});
void add_watch(Program& program, SwitchDefaults defaults = {});
// Writes the page of a folder's runs, like `report FOLDER --out OUT`.
void write_report(const std::string& folder, const std::string& out, const SwitchDefaults& defaults);

void add_torch_commands(Program& program);  // commands on runs; without libtorch, only those that do not need it
void add_all_commands(Program& program);

}  // namespace sb::cli
