//! Why no recording can be made of a file.

use std::io;

/// Why no recording can be made of a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It cannot be read.
    #[error("it cannot be read")]
    Read(#[source] io::Error),
    /// It is packed, and cannot be unpacked.
    #[error("it is packed by {by}, and cannot be unpacked: the file is damaged or cut short")]
    Unpack {
        /// What packed it.
        by: &'static str,
        /// What is wrong.
        #[source]
        source: io::Error,
    },
    /// More came out of it than such data has.
    #[error("{what} grows to more than {most} bytes, out of proportion to the file: no profile does")]
    Grows {
        /// What grows.
        what: &'static str,
        /// Bytes that are taken.
        most: u64,
    },
    /// One of several messages in a file goes beyond its end.
    #[error(
        "message {number} has {length} bytes by the number before it, and {left} are left: the file is damaged or cut short"
    )]
    Cut {
        /// Which message, from 1 on.
        number: usize,
        /// Its length, bytes.
        length: u64,
        /// Bytes that there are.
        left: u64,
    },
    /// It is no JSON of such messages.
    #[error("message {number} is no JSON of OTLP profiles: {reason}")]
    Json {
        /// Which message, from 1 on.
        number: usize,
        /// What is wrong, and where.
        reason: String,
    },
    /// It is no protocol buffer of such messages.
    #[error(
        "{what} cannot be read: {reason}; expected messages of opentelemetry-proto 1.10 (profiles/v1development), {ADVICE}"
    )]
    Malformed {
        /// Which part.
        what: String,
        /// What is wrong.
        reason: String,
    },
    /// An index leads nowhere.
    #[error(
        "{what} names entry {index} of {table}, which has {length}: the file is damaged, or of another version than opentelemetry-proto 1.10"
    )]
    Index {
        /// What has the index.
        what: &'static str,
        /// The index.
        index: i64,
        /// The table.
        table: &'static str,
        /// Its entries.
        length: usize,
    },
    /// There are profiles, and not what their indexes lead to.
    #[error(
        "it has profiles and no {what}: it is of a version before opentelemetry-proto 1.8, or holds other signals (traces, metrics, logs); {ADVICE}"
    )]
    Without {
        /// What there is not.
        what: &'static str,
    },
    /// There is nothing to count.
    #[error("it has no samples of code that ran; {has}")]
    NothingToCount {
        /// What it has instead.
        has: String,
    },
    /// It is of too many services, versions and hosts.
    #[error("it has profiles of more than {most} services, versions and hosts: split the file")]
    Owners {
        /// How many are taken.
        most: usize,
    },
    /// The recording cannot be written.
    #[error("the recording made of it cannot be written")]
    Write(#[from] perfdata::Error),
}

/// What to do about other versions.
const ADVICE: &str = "as the OpenTelemetry eBPF profiler writes them; versions before have other messages";
