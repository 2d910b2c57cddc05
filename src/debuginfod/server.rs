//! One request of one server.

use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use indicatif::{ProgressBar, ProgressStyle};
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{Connector, DefaultConnector};
use ureq::{Agent, Timeout};

use super::deadline::Deadline;
use super::settings::{LEAST_BYTES, Settings};

/// Asks servers.
pub struct Client {
    agent: Agent,
    deadline: Deadline,
    timeout: Duration,
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
            .timeout_global(settings.longest)
            .timeout_resolve(timeout)
            .timeout_connect(timeout)
            .timeout_recv_response(timeout)
            .timeout_per_write(timeout);
        // The machine's certificates are read only where they are used.
        if settings.servers.iter().any(|server| server.starts_with("https:")) {
            config = config.tls_config(tls());
        }
        let deadline = Deadline::default();
        let connector = DefaultConnector::default().chain(deadline.clone());
        let agent = Agent::with_parts(config.build(), connector, DefaultResolver::default());
        Client { agent, deadline, timeout: settings.timeout, most: settings.most }
    }

    /// Writes what the server has at this address to a file.
    ///
    /// # Errors
    /// The server cannot be reached, is too slow or says that it failed; the file is too large, has another size
    /// than the server says, or cannot be written.
    pub fn get(&self, address: &str, file: &mut File) -> Result<Answer, Failure> {
        self.deadline.set(self.timeout);
        let mut response = self.agent.get(address).call().map_err(|error| match error {
            ureq::Error::Timeout(Timeout::Global) => Failure::of_server(anyhow!("it does not answer in {MAXTIME}")),
            error => Failure::of_server(error),
        })?;
        match response.status().as_u16() {
            200 => {}
            404 | 410 => return Ok(Answer::Absent),
            status => return Err(Failure::of_server(anyhow!("it answers with status {status}"))),
        }
        let stated = response.body().content_length();
        let size = response.headers().get("x-debuginfod-size").and_then(|size| size.to_str().ok()?.parse().ok());
        let sizes: [(Option<u64>, &str); 2] = [(stated, "Content-Length"), (size, "X-DEBUGINFOD-SIZE")];
        let expected = stated.max(size);
        if let Some(expected) = expected.filter(|&expected| expected > self.most) {
            return Err(
                anyhow!("it has {expected} bytes, more than are taken ({}; DEBUGINFOD_MAXSIZE)", self.most).into()
            );
        }
        let bar = bar(address, expected);
        let got = self.copy(&mut response.body_mut().as_reader(), file, &bar);
        bar.finish_and_clear();
        let got = got?;
        for (size, header) in sizes {
            if let Some(size) = size.filter(|&size| size != got) {
                return Err(anyhow!("it ends after {got} bytes, and {header} says {size}").into());
            }
        }
        Ok(Answer::Written)
    }

    fn copy(&self, from: &mut impl Read, to: &mut File, bar: &ProgressBar) -> Result<u64, Failure> {
        let mut piece = vec![0; 64 << 10];
        let (mut got, mut before) = (0, 0);
        self.deadline.set(self.timeout);
        loop {
            let bytes = match from.read(&mut piece) {
                Ok(0) => return Ok(got),
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.ended(error, got, before)),
            };
            got += bytes as u64;
            if got > self.most {
                return Err(anyhow!("it has more bytes than are taken ({}; DEBUGINFOD_MAXSIZE)", self.most).into());
            }
            to.write_all(piece.get(..bytes).unwrap_or_default()).context("it cannot be written")?;
            bar.set_position(got);
            if got - before >= LEAST_BYTES {
                self.deadline.set(self.timeout);
                before = got;
            }
        }
    }

    /// Why no more came after `got` bytes; `before` of them came before the deadline was last put off.
    fn ended(&self, error: io::Error, got: u64, before: u64) -> Failure {
        match error.get_ref().and_then(|error| error.downcast_ref()) {
            Some(ureq::Error::Timeout(Timeout::Global)) => {
                anyhow!("after {got} bytes it is not there in {MAXTIME}").into()
            }
            Some(ureq::Error::Timeout(_)) => {
                let (bytes, seconds) = (got - before, self.timeout.as_secs());
                Failure::of_server(anyhow!("it is too slow: {bytes} bytes in {seconds} s (DEBUGINFOD_TIMEOUT)"))
            }
            _ => anyhow::Error::new(error).context(format!("after {got} bytes")).into(),
        }
    }
}

const MAXTIME: &str = "the time that DEBUGINFOD_MAXTIME allows";

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
