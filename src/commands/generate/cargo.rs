//! What the manual pages of `cargo hbbp` say. The program `cargo-hbbp` hands its words to `hbbp` and parses none, so they are made of the
//! commands of `hbbp`.

use clap::Command;

const PGO_USAGE: &str = "cargo hbbp pgo [OPTIONS] -- run|bench|test [ARGUMENTS]";

const EXAMPLES: &str = "\
Examples:
  cargo hbbp pgo -- run -- input.json              a Rust program, built anew with its own profile
  cargo hbbp pgo --bolt -- bench --bench parse     by what a benchmark executes
  cargo hbbp mix -- target/release/parse input.json
  cargo hbbp doctor                                what this machine offers

Exit status: that of hbbp; 127 where hbbp is not installed.";

const PGO_ABOUT: &str = "Build a Rust program, record it, and build it again with the profile";

const PGO_DESCRIPTION: &str = "\
What is built in release mode has debug information and is otherwise the project's own. It is recorded, built again with the profile, and \
both run in turn at the end. All that is made is in one folder. hbbp-pgo(1) has the options for programs that cargo does not build.";

const PGO_EXAMPLES: &str = "\
Examples:
  cargo hbbp pgo -- run -- input.json              the new program is in hbbp-pgo/after
  cargo hbbp pgo -- run --bin parse -- input.json  options of cargo before the second --, the program's after it
  cargo hbbp pgo --bolt -- bench --bench parse     by what a benchmark executes
  cargo hbbp pgo --check -- run -- input.json      in CI: is the profile stale?

Exit status: 0 done, 1 failed, 2 wrong usage; with --check 3 where the profile is stale.";

/// `cargo hbbp` and `cargo hbbp pgo` as commands: names of their pages, and what is in them. `hbbp` is the whole command line.
pub fn commands(hbbp: &Command) -> Vec<(&'static str, Command)> {
    let whole = Command::new("cargo-hbbp")
        .about("hbbp as a command of cargo")
        .long_about(
            "Runs hbbp with the same words. Of `pgo` the command after `--` is one of cargo: `cargo hbbp pgo -- run` is `hbbp pgo -- cargo \
             run`. All other commands and their options are those of hbbp(1). The hbbp beside cargo-hbbp is taken, or else that of PATH.",
        )
        .override_usage(format!("{PGO_USAGE}\n  cargo hbbp COMMAND [ARGUMENTS]"))
        .after_help(EXAMPLES)
        .disable_help_flag(true);
    let mut pages = vec![("cargo-hbbp", whole)];
    if let Some(pgo) = hbbp.find_subcommand("pgo") {
        // How programs are built that cargo does not build.
        let others = ["build", "run", "clean", "binary"];
        let pgo = pgo.clone().mut_args(|argument| match argument {
            argument if others.contains(&argument.get_id().as_str()) => argument.hide(true),
            argument if argument.get_id() == "command" => {
                argument.value_name("ARGUMENTS").help("run, bench or test, with the options of cargo")
            }
            argument => argument,
        });
        let pgo = pgo.display_name("cargo-hbbp-pgo").about(PGO_ABOUT).long_about(PGO_DESCRIPTION);
        let pgo = pgo.override_usage(PGO_USAGE).after_help(PGO_EXAMPLES);
        pages.push(("cargo-hbbp-pgo", pgo));
    }
    pages
}
