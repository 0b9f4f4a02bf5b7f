// fuselite completion, fuselite man: what shells and man(1) read, made of the commands' own flags.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "runtime/version.h"
#include "tools/commands/commands.h"

namespace fuselite::tools {
namespace {

std::vector<const CLI::App*> Commands(const CLI::App& app) {
  std::vector<const CLI::App*> commands;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    if (!command->get_group().empty()) commands.push_back(command);
  }
  return commands;
}

// Flags that the help shows.
std::vector<const CLI::Option*> Flags(const CLI::App& command) {
  std::vector<const CLI::Option*> flags;
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_group().empty() && !option->get_lnames().empty()) flags.push_back(option);
  }
  return flags;
}

// "--num_threads --isa ...".
std::string FlagNames(const CLI::App& command) {
  std::string names;
  for (const CLI::Option* flag : Flags(command)) {
    for (const std::string& name : flag->get_lnames())
      names += (names.empty() ? "--" : " --") + name;
  }
  return names;
}

std::string CommandNames(const CLI::App& app) {
  std::string names;
  for (const CLI::App* command : Commands(app)) {
    names += (names.empty() ? "" : " ") + command->get_name();
  }
  return names;
}

// bash's words; zsh reads the same through bashcompinit. Files stand wherever no flag is being
// written.
void PrintBash(const CLI::App& app, std::ostream& out) {
  out << "# bash completion of fuselite; source it, or put it into bash-completion's folder.\n"
         "_fuselite() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} flags=\n"
         "  COMPREPLY=()\n"
         "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
         "    mapfile -t COMPREPLY < <(compgen -W '"
      << CommandNames(app)
      << "' -- \"$word\")\n"
         "    return\n"
         "  fi\n"
         "  case ${COMP_WORDS[1]} in\n";
  for (const CLI::App* command : Commands(app)) {
    out << "    " << command->get_name() << ") flags='" << FlagNames(*command) << "' ;;\n";
  }
  out << "  esac\n"
         "  case $word in\n"
         "    -*) mapfile -t COMPREPLY < <(compgen -W \"$flags\" -- \"$word\") ;;\n"
         "    *) mapfile -t COMPREPLY < <(compgen -f -- \"$word\") ;;\n"
         "  esac\n"
         "}\n"
         "complete -o filenames -F _fuselite fuselite\n";
}

void PrintZsh(const CLI::App& app, std::ostream& out) {
  out << "# zsh completion of fuselite; source it after compinit.\nautoload -U +X bashcompinit && "
         "bashcompinit\n";
  PrintBash(app, out);
}

void PrintFish(const CLI::App& app, std::ostream& out) {
  out << "# fish completion of fuselite; put it into ~/.config/fish/completions.\n";
  const auto quoted = [](std::string text) {
    std::ranges::replace(text, '\'', ' ');
    return "'" + text + "'";
  };
  for (const CLI::App* command : Commands(app)) {
    out << "complete -c fuselite -n __fish_use_subcommand -a " << command->get_name() << " -d "
        << quoted(command->get_description()) << "\n";
    for (const CLI::Option* flag : Flags(*command)) {
      out << "complete -c fuselite -n '__fish_seen_subcommand_from " << command->get_name() << "'";
      for (const std::string& name : flag->get_lnames()) out << " -l " << name;
      out << " -d " << quoted(flag->get_description()) << "\n";
    }
  }
}

// As troff reads it: no line begins with its control characters, no dash becomes a hyphen.
std::string Troff(const std::string& text) {
  std::string escaped;
  for (char c : text) {
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else if (c == '\n') {
      escaped += ' ';
    } else {
      if (escaped.empty() && (c == '.' || c == '\'')) escaped += "\\&";
      escaped += c;
    }
  }
  return escaped;
}

void PrintManPage(const CLI::App& app, std::ostream& out) {
  out << ".TH FUSELITE 1 \"\" \"fuselite " << kVersion << "\" \"User Commands\"\n"
      << ".SH NAME\nfuselite \\- run, measure, compare and explain .tflite models on the CPU\n"
      << ".SH SYNOPSIS\n.B fuselite\n.I COMMAND\n[\\fIFLAG\\fR ...]\n"
      << ".SH DESCRIPTION\n"
      << Troff(app.get_description())
      << "\nA model is a .tflite file, or zoo:NAME for one of the networks that\n.B fuselite "
         "zoo\nlists.\n"
      << ".SH COMMANDS\n";
  for (const CLI::App* command : Commands(app)) {
    out << ".SS " << Troff(command->get_name()) << "\n"
        << Troff(command->get_description()) << ".\n";
    for (const CLI::Option* option : command->get_options()) {
      if (option->get_group().empty()) continue;
      out << ".TP\n\\fB" << Troff(option->get_name(true, true)) << "\\fR\n"
          << Troff(option->get_description().empty() ? "See above" : option->get_description())
          << "\n";
    }
  }
  out << ".SH ENVIRONMENT\nEach option of the delegate may also be given as FUSELITE_NAME; "
         "FUSELITE_LOG=info tells what the library does.\n"
      << ".SH EXIT STATUS\n0; 1 where the command fails, and where\n.B fuselite diff\n"
         "finds a difference beyond its bound; 2 where it is used wrongly.\n";
}

}  // namespace

void AddCompletionCommand(CLI::App& app) {
  CLI::App* completion = app.add_subcommand(
      "completion", "Print the completion of a shell: source <(fuselite completion bash)");
  auto shell = std::make_shared<std::string>();
  completion->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completion->callback([&app, shell] {
    const auto print = *shell == "bash" ? PrintBash : *shell == "zsh" ? PrintZsh : PrintFish;
    print(app, std::cout);
  });
  CLI::App* man = app.add_subcommand("man", "Print the manual page: fuselite man | man -l -");
  man->callback([&app] { PrintManPage(app, std::cout); });
}

}  // namespace fuselite::tools
