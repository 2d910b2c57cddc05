//! Programs that hardly ran, of which nothing can be a share.

use std::time::Duration;

/// How little a program ran, in a sentence: its CPU time, and how long was recorded.
pub fn idle((program, recorded): (Duration, Duration)) -> String {
    let how = if program.as_secs_f64() < recorded.as_secs_f64() / 10.0 { "was idle" } else { "hardly ran" };
    format!("the program {how}: {:.1} ms of CPU time in {:.2} s", program.as_secs_f64() * 1e3, recorded.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_program_is_not_idle() {
        let said = |program, recorded| idle((Duration::from_micros(program), Duration::from_millis(recorded)));
        assert_eq!(said(400, 10_000), "the program was idle: 0.4 ms of CPU time in 10.00 s");
        assert_eq!(said(1_500, 4), "the program hardly ran: 1.5 ms of CPU time in 0.00 s");
    }
}
