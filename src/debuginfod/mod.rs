//! Files of a debuginfod server: programs and debug files by build id, where `DEBUGINFOD_URLS` names servers.
//!
//! Variables, folder and files are those of elfutils' client (`debuginfod-find(1)`), so that what one of them got serves the other.
//! This is the only use of the network, and it is made by analyses only.

#[cfg(feature = "debuginfod")]
mod deadline;
#[cfg(feature = "debuginfod")]
mod folder;
#[cfg(feature = "debuginfod")]
mod server;
#[cfg(feature = "debuginfod")]
mod settings;
#[cfg(feature = "debuginfod")]
mod source;

use analyzer::Elsewhere;

/// The servers that the environment names, if it names any: the same for the whole process.
#[cfg(feature = "debuginfod")]
pub fn of_environment() -> Elsewhere {
    static SERVERS: std::sync::OnceLock<Elsewhere> = std::sync::OnceLock::new();
    SERVERS.get_or_init(|| source::Source::of_environment().map(Elsewhere::of).unwrap_or_default()).clone()
}

/// This executable asks no servers.
#[cfg(not(feature = "debuginfod"))]
pub fn of_environment() -> Elsewhere {
    Elsewhere::default()
}
