//! The subcommands, one file each.

pub mod doctor;
pub mod record;
