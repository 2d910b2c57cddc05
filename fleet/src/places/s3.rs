//! Buckets that speak S3: credentials and the server are those of the usual variables.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::{ClientConfigKey, ObjectStore, RetryConfig};

/// Requests that fail are made again so often, and for so long.
const RETRIES: usize = 5;
const RETRY_FOR: Duration = Duration::from_secs(60);

/// What one request may take, if AWS_TIMEOUT says nothing: files come and go whole, and lines are slow.
const TIMEOUT: &str = "300 seconds";

/// A bucket.
///
/// # Errors
/// A variable says what cannot be.
pub fn bucket(name: &str) -> anyhow::Result<Arc<dyn ObjectStore>> {
    let retry = RetryConfig { max_retries: RETRIES, retry_timeout: RETRY_FOR, ..RetryConfig::default() };
    let mut builder = AmazonS3Builder::from_env().with_bucket_name(name).with_retry(retry);
    if std::env::var_os("AWS_TIMEOUT").is_none() {
        builder = builder.with_config(AmazonS3ConfigKey::Client(ClientConfigKey::Timeout), TIMEOUT);
    }
    // Who names a server without TLS wants it so.
    let endpoints = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"].map(std::env::var);
    if endpoints.into_iter().flatten().any(|endpoint| endpoint.starts_with("http://")) {
        builder = builder.with_allow_http(true);
    }
    Ok(Arc::new(builder.build()?))
}
