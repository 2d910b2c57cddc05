//! What the tests of all crates share: recordings, tools, and one way to skip.
#![forbid(unsafe_code)]

mod alone;
mod c_program;
mod fixture;
pub mod guide;
mod skip;
mod stolen;
mod tool;

pub use alone::Alone;
pub use c_program::c_program;
pub use fixture::{BURSTS, Fixture, SIMULATED, fixture_file, hardware_recording, hardware_recordings};
pub use skip::{Skip, skip};
pub use stolen::stolen;
pub use tool::{LITTLE_LOG, has, tool};
