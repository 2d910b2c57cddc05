//! One request of one server.

use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use indicatif::{ProgressBar, ProgressStyle};
use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};

use super::settings::{LEAST_BYTES, Settings};

/// Asks servers.
pub struct Client {
    agent: Agent,
    timeout: Duration,
    longest: Option<Duration>,
    most: u64,
}

/// Why a file was not got.
pub struct Failure {
    /// What happened.
    pub why: anyhow::Error,
    /// The next request of the server would fail as well.
    pub is_of_server: bool,
}

impl Failure {
    fn of_server(why: impl Into<anyhow::Error>) -> Self {
        Failure { why: why.into(), is_of_server: true }
    }
}

/// It is of the file.
impl From<anyhow::Error> for Failure {
    fn from(why: anyhow::Error) -> Self {
        Failure { why, is_of_server: false }
    }
}

/// What came of a request.
pub enum Answer {
    /// The file was written.
    Written,
    /// The server does not have it.
    Absent,
}

impl Client {
    /// For servers that are asked so.
    pub fn new(settings: &Settings) -> Self {
        let timeout = Some(settings.timeout);
        let mut config = Agent::config_builder()
            .user_agent(concat!("hbbp/", env!("CARGO_PKG_VERSION")))
            .http_status_as_error(false)
            .timeout_resolve(timeout)
            .timeout_connect(timeout)
            .timeout_recv_response(timeout)
            .timeout_per_read(timeout)
            .timeout_per_write(timeout);
        // The machine's certificates are read only where they are used.
        if settings.servers.iter().any(|server| server.starts_with("https:")) {
            config = config.tls_config(tls());
        }
        Client {
            agent: config.build().new_agent(),
            timeout: settings.timeout,
            longest: settings.longest,
            most: settings.most,
        }
    }

    /// Writes what the server has at this address to a file.
    ///
    /// # Errors
    /// The server cannot be reached, is too slow or says that it failed; the file is too large, ends too early or cannot be written.
    pub fn get(&self, address: &str, file: &mut File) -> Result<Answer, Failure> {
        let mut response = self.agent.get(address).call().map_err(Failure::of_server)?;
        match response.status().as_u16() {
            200 => {}
            404 | 410 => return Ok(Answer::Absent),
            status => return Err(Failure::of_server(anyhow!("it answers with status {status}"))),
        }
        let stated = response.body().content_length();
        let size = response.headers().get("x-debuginfod-size").and_then(|size| size.to_str().ok()?.parse().ok());
        let expected: Option<u64> = stated.or(size);
        if let Some(expected) = expected.filter(|&expected| expected > self.most) {
            return Err(
                anyhow!("it has {expected} bytes, more than are taken ({}; DEBUGINFOD_MAXSIZE)", self.most).into()
            );
        }
        let bar = bar(address, expected);
        let got = self.copy(&mut response.body_mut().as_reader(), file, &bar);
        bar.finish_and_clear();
        let got = got?;
        if stated.is_some_and(|stated| stated != got) {
            return Err(anyhow!("it ends after {got} of {} bytes", stated.unwrap_or_default()).into());
        }
        Ok(Answer::Written)
    }

    fn copy(&self, from: &mut impl Read, to: &mut File, bar: &ProgressBar) -> Result<u64, Failure> {
        let mut piece = vec![0; 64 << 10];
        let began = Instant::now();
        let (mut got, mut window, mut before) = (0, began, 0);
        loop {
            let bytes = match from.read(&mut piece) {
                Ok(0) => return Ok(got),
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    let is_of_server = error.kind() == io::ErrorKind::TimedOut;
                    let why = anyhow::Error::new(error).context(format!("after {got} bytes"));
                    return Err(Failure { why, is_of_server });
                }
            };
            got += bytes as u64;
            if got > self.most {
                return Err(anyhow!("it has more bytes than are taken ({}; DEBUGINFOD_MAXSIZE)", self.most).into());
            }
            to.write_all(piece.get(..bytes).unwrap_or_default()).context("it cannot be written")?;
            bar.set_position(got);
            if self.longest.is_some_and(|longest| began.elapsed() > longest) {
                return Err(anyhow!("after {got} bytes it takes longer than DEBUGINFOD_MAXTIME allows").into());
            }
            if window.elapsed() > self.timeout {
                if got - before < LEAST_BYTES {
                    let (bytes, seconds) = (got - before, self.timeout.as_secs());
                    let why = anyhow!("it is too slow: {bytes} bytes in {seconds} s (DEBUGINFOD_TIMEOUT)");
                    return Err(Failure::of_server(why));
                }
                (window, before) = (Instant::now(), got);
            }
        }
    }
}

/// Certificates that this machine trusts.
fn tls() -> TlsConfig {
    let found = rustls_native_certs::load_native_certs();
    let certificates = found.certs.iter().map(|certificate| Certificate::from_der(certificate).to_owned());
    TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .root_certs(RootCerts::Specific(Arc::new(certificates.collect())))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build()
}

/// On a terminal, a line about what is being got.
fn bar(address: &str, expected: Option<u64>) -> ProgressBar {
    let (bar, template) = match expected {
        Some(expected) => (ProgressBar::new(expected), "{msg} [{bar:20}] {bytes} of {total_bytes} {eta}"),
        None => (ProgressBar::no_length(), "{msg} {bytes}"),
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.with_message(format!("getting {address}"))
}
