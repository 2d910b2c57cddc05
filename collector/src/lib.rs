//! From a running program to a recording.
