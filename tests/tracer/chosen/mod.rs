//! What holds for every way of tracing: these tests record in the way that `HBBP_TRACER` names. Only they can, so that a run with another value
//! is one of these alone: `HBBP_TRACER=agent cargo test --test tracer chosen::`.

mod budget;
mod other_tools;
mod paths;
mod processes;
mod settings;
mod system_calls;

use crate::bursts::Traced;
use crate::place::Place;

/// What traces, if `HBBP_TRACER` does not say otherwise: `lookahead`.
fn tracer() -> String {
    std::env::var("HBBP_TRACER").unwrap_or_else(|_| "lookahead".to_owned())
}

impl Place {
    /// A recording by the tracer, with these options, of this command; it must succeed.
    fn trace(&self, options: &[&str], command: &[&str]) -> Traced {
        let output = self.record(&[&["--tracer", &tracer()], options, &["--"], command].concat());
        assert!(output.status.success(), "{}", crate::errors(&output));
        Traced::read(&self.recording())
    }
}
