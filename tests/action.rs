//! The GitHub Action, and the example for GitLab in the guide: the scripts of their steps, run as those services do.

mod support;

use std::fs::{read_to_string, write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use support::has;
use tempfile::TempDir;
use testing::Alone;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A step that is a script.
struct Step {
    name: String,
    script: String,
    /// Variables that the action sets, and the expressions they are set to.
    variables: Vec<(String, String)>,
}

/// The steps of the action with scripts, in order.
fn steps() -> Vec<Step> {
    let text = read_to_string(root().join("action/action.yml")).unwrap();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut steps: Vec<Step> = Vec::new();
    let mut within = "";
    for line in text.split_once("  steps:\n").unwrap().1.lines() {
        if let Some(name) = line.strip_prefix("    - name: ") {
            steps.push(Step { name: name.into(), script: String::new(), variables: Vec::new() });
            within = "";
        } else if indent(line) == 6 {
            within = line.trim().trim_end_matches('|').trim_end().trim_end_matches(':');
        } else if within == "run" {
            let step = steps.last_mut().unwrap();
            step.script += line.strip_prefix("        ").unwrap_or_default();
            step.script += "\n";
        } else if within == "env" {
            let (name, value) = line.trim().split_once(": ").unwrap();
            steps.last_mut().unwrap().variables.push((name.into(), value.into()));
        }
    }
    steps.retain(|step| !step.script.is_empty());
    steps
}

/// Rounds of the program: instrumented, they take milliseconds.
const FEW: u32 = 1000;
/// The same where it is sampled: each run is long enough for bursts.
const MANY: u32 = 100_000;

/// A repository of two revisions. The program of the first does so many rounds, that of the second a tenth more, if `slower`.
fn repository(rounds: u32, slower: bool) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let program = |rounds: u32| {
        format!(
            "#include <stdio.h>\nlong work(long n, long sum) {{ for (long i = 0; i < n; i++) sum += i ^ (sum >> 3); return sum; }}\n\
             int main(void) {{ long sum = 0; for (int i = 0; i < {rounds}; i++) sum = work(1000, sum); printf(\"%ld\\n\", sum); return 0; }}\n"
        )
    };
    let git = |words: &[&str]| {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"];
        let done = Command::new("git").args(identity).args(words).current_dir(folder.path()).output().unwrap();
        assert!(done.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    git(&["init", "-q"]);
    write(folder.path().join("bench.c"), program(rounds)).unwrap();
    git(&["add", "."]);
    git(&["commit", "-qm", "one"]);
    write(folder.path().join("bench.c"), program(if slower { rounds + rounds / 10 } else { rounds })).unwrap();
    git(&["commit", "-qam", "two", "--allow-empty"]);
    folder
}

/// PATH with the `hbbp` that is tested.
fn path() -> String {
    let hbbp = Path::new(env!("CARGO_BIN_EXE_hbbp")).parent().unwrap();
    format!("{}:{}", hbbp.display(), std::env::var("PATH").unwrap())
}

/// Runs the steps up to one of that name as a runner does; what each of them said, and the folder of the runner.
fn run_action(repository: &Path, inputs: &[(&str, &str)], last: &str) -> (Vec<Output>, TempDir) {
    let runner = tempfile::tempdir().unwrap();
    let at = |name: &str| runner.path().join(name);
    let mut said = Vec::new();
    for step in steps() {
        let mut script = Command::new("bash");
        script
            .args(["--noprofile", "--norc", "-eo", "pipefail", "-c", &step.script])
            .current_dir(repository)
            .env("PATH", path());
        script.env("RUNNER_TEMP", runner.path()).env("GITHUB_ACTION_PATH", root().join("action"));
        script.env("XDG_CACHE_HOME", support::NO_FOLDER);
        for file in ["GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"] {
            script.env(file, at(file));
        }
        let outputs = read_to_string(at("GITHUB_OUTPUT")).unwrap_or_default();
        for (name, value) in &step.variables {
            let input = value.strip_prefix("${{ inputs.").and_then(|rest| rest.strip_suffix(" }}"));
            let value = match input {
                Some(input) => {
                    inputs.iter().find(|(name, _)| *name == input).unwrap_or_else(|| panic!("{input}")).1.to_owned()
                }
                None if value == "${{ steps.compare.outputs.status }}" => {
                    outputs.trim().strip_prefix("status=").unwrap().into()
                }
                None => panic!("{}: {name}: {value}", step.name),
            };
            script.env(name, value);
        }
        let done = script.output().unwrap();
        let failed = !done.status.success();
        said.push(done);
        if failed || step.name == last {
            break;
        }
        // What the service does itself comes before this one, and needs its account.
        if last == "Judge" && step.name == "Compare" {
            let judge = steps().into_iter().find(|step| step.name == "Judge").unwrap();
            let outputs = read_to_string(at("GITHUB_OUTPUT")).unwrap();
            let mut script = Command::new("bash");
            script.args(["-e", "-c", &judge.script]).env("STATUS", outputs.trim().strip_prefix("status=").unwrap());
            said.push(script.output().unwrap());
            break;
        }
    }
    (said, runner)
}

fn inputs(more: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
    let usual = [
        ("build", "cc -O1 -g -o bench bench.c"),
        ("run", "./bench"),
        ("base", "HEAD^"),
        ("counts", "exact"),
        ("precision", "20%"),
    ];
    more.iter().chain(&usual).copied().collect()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn the_action_finds_what_executes_more_and_passes_what_does_not() {
    let _alone = Alone::wait();
    if !has("valgrind") || !has("git") {
        return;
    }
    for (slower, status) in [(true, "3"), (false, "0")] {
        let repository = repository(FEW, slower);
        let inputs = inputs(&[("fail-if", "instructions>+2%\nshare:main>+50%\n")]);
        let (said, runner) = run_action(repository.path(), &inputs, "Judge");
        let all: Vec<String> = said.iter().map(text).collect();
        assert_eq!(said.len(), 4, "{all:#?}");
        assert!(said[..3].iter().all(|step| step.status.success()), "{all:#?}");
        assert_eq!(said[3].status.success(), !slower, "{all:#?}");
        assert_eq!(read_to_string(runner.path().join("GITHUB_OUTPUT")).unwrap(), format!("status={status}\n"));
        let table = read_to_string(runner.path().join("GITHUB_STEP_SUMMARY")).unwrap();
        assert!(table.contains("| ") && table.contains("work"), "{table}");
        // The repository is as it was, but for what was built.
        let list = Command::new("git").args(["worktree", "list"]).current_dir(repository.path()).output().unwrap();
        assert_eq!(text(&list).lines().count(), 1);
    }
}

#[test]
fn the_action_records_where_shares_are_enough() {
    let _alone = Alone::wait();
    let repository = repository(MANY, false);
    let inputs = inputs(&[("counts", "sampled"), ("fail-if", "share:work>+40%")]);
    let (said, _runner) = run_action(repository.path(), &inputs, "Judge");
    assert!(said.last().unwrap().status.success(), "{:#?}", said.iter().map(text).collect::<Vec<_>>());
}

#[test]
fn what_fails_in_the_action_fails_it() {
    let _alone = Alone::wait();
    let repository = repository(FEW, false);
    for (wrong, expected) in [
        (("build", "echo no compiler; exit 9"), "no compiler"),
        (("counts", "guessed"), "expected exact or sampled"),
        (("base", "nowhere"), "origin"),
    ] {
        let (said, _runner) = run_action(repository.path(), &inputs(&[wrong, ("fail-if", "")]), "Judge");
        let last = said.last().unwrap();
        assert!(
            said.len() == 2 && !last.status.success() && text(last).contains(expected),
            "{wrong:?}: {}",
            text(last)
        );
        let _ = Command::new("git").args(["worktree", "prune"]).current_dir(repository.path()).output();
    }
}

/// Every input is used, and every input that is used is there.
#[test]
fn inputs_of_the_action_are_declared() {
    let file = read_to_string(root().join("action/action.yml")).unwrap();
    let declared: Vec<&str> = file
        .split_once("inputs:\n")
        .unwrap()
        .1
        .split_once("outputs:\n")
        .unwrap()
        .0
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.strip_suffix(':'))
        .filter(|name| !name.starts_with(' '))
        .collect();
    assert_eq!(declared.len(), 7, "{declared:?}");
    let guide = read_to_string(root().join("docs/guide/ci.md")).unwrap();
    for name in &declared {
        assert!(file.contains(&format!("inputs.{name}")), "{name} is not used");
        assert!(guide.contains(&format!("`{name}`")), "the guide does not explain {name}");
    }
    for used in file.split("inputs.").skip(1).map(|rest| rest.split([' ', '}']).next().unwrap()) {
        assert!(declared.contains(&used), "{used} is not declared");
    }
}

/// The lines of the job in the guide, with the variables that GitLab sets.
#[test]
fn the_job_for_gitlab_does_what_it_says() {
    let _alone = Alone::wait();
    if !has("valgrind") || !has("git") {
        return;
    }
    let guide = read_to_string(root().join("docs/guide/ci.md")).unwrap();
    let job = guide.split_once("      script:\n").unwrap().1.split_once("      artifacts:\n").unwrap().0;
    let script: Vec<&str> = job.lines().map(|line| line.trim_start().strip_prefix("- ").unwrap()).collect();
    assert!(script.len() >= 4);
    for (slower, status) in [(true, 3), (false, 0)] {
        let repository = repository(FEW, slower);
        write(repository.path().join("Makefile"), "server: bench.c\n\tcc -O1 -g -o server bench.c\n").unwrap();
        let at = |words: &[&str]| {
            let identity = ["-c", "user.name=a", "-c", "user.email=a@b"];
            let done = Command::new("git").args(identity).args(words).current_dir(repository.path()).output().unwrap();
            String::from_utf8(done.stdout).unwrap()
        };
        // The base has a Makefile as well.
        at(&["add", "."]);
        at(&["commit", "-qm", "make"]);
        let base = repository.path().join("older");
        at(&["worktree", "add", "-q", base.to_str().unwrap(), "HEAD~2"]);
        std::fs::copy(repository.path().join("Makefile"), base.join("Makefile")).unwrap();
        let in_base = |words: &[&str]| {
            let identity = ["-c", "user.name=a", "-c", "user.email=a@b"];
            let done = Command::new("git").args(identity).args(words).current_dir(&base).output().unwrap();
            String::from_utf8(done.stdout).unwrap()
        };
        in_base(&["add", "."]);
        in_base(&["commit", "-qm", "make"]);
        let revision = in_base(&["rev-parse", "HEAD"]);
        let mut shell = Command::new("sh");
        shell.args(["-ec", &script.join("\n")]).current_dir(repository.path()).env("PATH", path());
        shell.env("CI_MERGE_REQUEST_DIFF_BASE_SHA", revision.trim()).env("XDG_CACHE_HOME", support::NO_FOLDER);
        let done = shell.output().unwrap();
        assert_eq!(done.status.code(), Some(status), "{}", text(&done));
    }
}
