//! Small programs to record, compiled when needed.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// `spin THREADS MS`: each thread uses so much CPU time. The main thread's name is `spin`, the others' `worker`.
const SPIN: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

static long milliseconds;
static volatile unsigned long sink;

static void spin(void) {
    struct timespec now;
    do {
        for (int i = 0; i < 10000; i++)
            sink += i;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < milliseconds);
}

static void *worker(void *unused) {
    prctl(PR_SET_NAME, "worker");
    spin();
    return unused;
}

int main(int argc, char **argv) {
    long threads = argc > 1 ? atol(argv[1]) : 1;
    pthread_t started[64];
    milliseconds = argc > 2 ? atol(argv[2]) : 100;
    for (long i = 1; i < threads && i < 64; i++)
        pthread_create(&started[i], 0, worker, 0);
    spin();
    for (long i = 1; i < threads && i < 64; i++)
        pthread_join(started[i], 0);
    return 0;
}
"#;

/// The compiled program, or `None` (said on stderr) without a C compiler.
pub fn spin() -> Option<PathBuf> {
    static BUILT: OnceLock<Option<(tempfile::TempDir, PathBuf)>> = OnceLock::new();
    let build = || {
        let dir = tempfile::tempdir().ok()?;
        let (source, program) = (dir.path().join("spin.c"), dir.path().join("spin"));
        std::fs::write(&source, SPIN).ok()?;
        let compiled = Command::new("gcc").args(["-O1", "-pthread", "-o"]).arg(&program).arg(&source).status();
        match compiled {
            Ok(status) if status.success() => Some((dir, program)),
            other => {
                testing::skip!(Tool, "cannot compile with gcc: {other:?}");
                None
            }
        }
    };
    BUILT.get_or_init(build).as_ref().map(|(_, program)| program.clone())
}
