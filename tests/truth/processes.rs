//! Everything a command runs is counted, and once.

use serde_json::Value;

use crate::{Workshop, executions, support, symbol};

/// `loop(n)` runs the instruction at its start n times.
const LOOP: &str = "
void loop(int n);
__asm__(\".globl loop\\n.type loop,@function\\nloop: dec %edi\\n jnz loop\\n ret\\n.size loop,.-loop\");
";

fn loops(document: &Value, program: &std::path::Path) -> u64 {
    executions(document, program)[&symbol(program, "loop")]
}

#[test]
fn a_child_does_not_count_again_what_its_parent_did() {
    let Some(workshop) = Workshop::new() else { return };
    let main = "
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv) {
    if (argc > 1) { loop(7); return 0; }
    loop(1000);
    for (int i = 0; i < 3; i++)
        if (fork() == 0) { loop(50); if (i == 2) execl(argv[0], argv[0], \"x\", (char *)0); _exit(0); }
    if (vfork() == 0) execl(argv[0], argv[0], \"x\", (char *)0);
    while (wait(0) > 0) {}
    return 0;
}";
    let program = workshop.compile("fork.c", &(LOOP.to_owned() + main), "forks", &["-O1"]);
    let document = workshop.truth(&["--", program.to_str().unwrap()]);
    assert_eq!(loops(&document, &program), 1000 + 3 * 50 + 2 * 7);
    assert_eq!(document["head"]["processes"], 5);
}

#[test]
fn threads_are_counted_together() {
    let Some(workshop) = Workshop::new() else { return };
    let main = "
#include <pthread.h>
static void *work(void *n) { loop((long)n); return 0; }
int main(void) {
    pthread_t threads[4];
    for (long i = 0; i < 4; i++) pthread_create(&threads[i], 0, work, (void *)(i + 100));
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    return 0;
}";
    let program = workshop.compile("threads.c", &(LOOP.to_owned() + main), "threads", &["-O1", "-pthread"]);
    let document = workshop.truth(&["--", program.to_str().unwrap()]);
    assert_eq!(loops(&document, &program), 100 + 101 + 102 + 103);
    assert_eq!(document["head"]["processes"], 1);
}

#[test]
fn a_command_that_fails_is_counted_and_said() {
    let Some(workshop) = Workshop::new() else { return };
    let file = workshop.path("truth.json");
    let output = support::run(&["truth", "-o", file.to_str().unwrap(), "--", "sh", "-c", "echo out; exit 3"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("the command ended with exit status 3"), "{said}");
    assert_eq!(output.stdout, b"out\n");
    let output = support::run(&["truth", "-o", file.to_str().unwrap(), "--", "/no/such/program"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("valgrind counted nothing"), "{said}");
}

#[test]
fn the_environment_is_printed_and_used() {
    let Some(workshop) = Workshop::new() else { return };
    let printed = support::stdout(&["truth", "--environment"]);
    let document = workshop.truth(&["--", "true"]);
    let used = document["head"]["environment"].as_object().unwrap();
    let used: Vec<String> = used.iter().map(|(name, value)| format!("{name}={}\n", value.as_str().unwrap())).collect();
    assert_eq!(printed, used.concat());
}

#[test]
fn without_valgrind_it_says_what_to_install() {
    let folder = tempfile::tempdir().unwrap();
    let mut hbbp = support::hbbp();
    hbbp.current_dir(folder.path()).env("PATH", folder.path()).args(["truth", "--", "/bin/true"]);
    let output = hbbp.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("apt-get install valgrind"), "{said}");
}
