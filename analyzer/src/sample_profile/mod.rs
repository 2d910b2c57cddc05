//! Sample profiles: counts by function and source position, as compilers read them (AutoFDO).
//!
//! ```text
//! Flow, of one module --> executed (address -> executions) --+
//! SourceIndex (address -> function, position) ---------------+-> positions --> SampleProfile
//! branches -----------------------------------------------------> calls ----^
//! ```

mod build;
mod calls;
mod executed;
mod names;
mod positions;
mod samples;

pub use build::build;
pub use names::Names;
pub use samples::{BodySample, FunctionSamples, Location, Placement, SampleProfile};
