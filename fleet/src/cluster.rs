//! Questions that many machines answer: what reads files goes to executors of Apache Ballista, the rest of a plan stays here.
//!
//! ```text
//! plan:  sums <- exchange <- partial sums <- filter <- Parquet
//!        ------ here -----   ---------- executors ----------
//! ```
//!
//! What is sent has no exchange in it: executors make each piece of rows of files alone, and read nothing that another one made. So nothing can be
//! read twice, and what comes back is compared with what should have.

#[cfg(feature = "cluster")]
mod job;
#[cfg(feature = "cluster")]
mod parts;

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use datafusion::common::Result;
use datafusion::config::ConfigOptions;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;

/// Where questions are answered.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ClusterArgs {
    /// Have the executors of this scheduler of Apache Ballista read the store: df://HOST:PORT. They must see it under the same path
    #[arg(long, value_name = "URL")]
    cluster: Option<Scheduler>,

    /// How long executors may take for one part of a question; the scheduler may not notice that one is gone
    #[arg(long, value_name = "SECONDS", default_value_t = 600, requires = "cluster")]
    cluster_wait: u64,
}

impl ClusterArgs {
    /// The cluster that is asked for.
    ///
    /// # Errors
    /// This build has none.
    pub fn cluster(&self) -> anyhow::Result<Option<Cluster>> {
        let Some(scheduler) = self.cluster.clone() else {
            return Ok(None);
        };
        if cfg!(not(feature = "cluster")) {
            anyhow::bail!(
                "this build of hbbp-fleet has no clusters: build it with `--features cluster`, or ask without --cluster"
            );
        }
        Ok(Some(Cluster { scheduler, wait: Duration::from_secs(self.cluster_wait) }))
    }
}

/// Executors that a scheduler knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    scheduler: Scheduler,
    /// How long a job may take.
    wait: Duration,
}

impl Cluster {
    /// Has plans made of parts that can be sent.
    pub fn prepare(options: &mut ConfigOptions) {
        let optimizer = &mut options.optimizer;
        // What one operator learns from another while they run does not reach other processes, and may wait for all pieces.
        optimizer.enable_dynamic_filter_pushdown = false;
        optimizer.enable_join_dynamic_filter_pushdown = false;
        optimizer.enable_topk_dynamic_filter_pushdown = false;
        optimizer.enable_aggregate_dynamic_filter_pushdown = false;
        // The result of one plan in an expression of another has no encoding; a join has.
        optimizer.enable_physical_uncorrelated_scalar_subquery = false;
        // Executors have the files in pieces, not what was read of them.
        optimizer.enable_round_robin_repartition = false;
    }

    /// The plan with a job for the cluster in place of each part that reads files and needs no exchange.
    ///
    /// # Errors
    /// A node of the plan does not take other inputs.
    #[cfg(feature = "cluster")]
    pub fn spread(&self, plan: Arc<dyn ExecutionPlan>, context: &TaskContext) -> Result<Arc<dyn ExecutionPlan>> {
        parts::spread(plan, &Arc::new(self.clone()), context)
    }

    /// The plan as it is: a build without clusters makes none ([`ClusterArgs::cluster`]).
    #[cfg(not(feature = "cluster"))]
    pub fn spread(&self, plan: Arc<dyn ExecutionPlan>, _: &TaskContext) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(plan)
    }
}

/// The address of a scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Scheduler {
    host: String,
    port: u16,
}

impl FromStr for Scheduler {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.strip_prefix("df://").and_then(|rest| rest.rsplit_once(':'));
        let (host, port) = parts.ok_or("expected df://HOST:PORT")?;
        // An IPv6 address is in brackets.
        let is_plain = !host.is_empty() && !host.contains(['/', '@', '?', '#', ' ']);
        let is_host = is_plain && (!host.contains(':') || (host.starts_with('[') && host.ends_with(']')));
        let port = port.parse().ok().filter(|port| *port > 0);
        match port {
            Some(port) if is_host => Ok(Scheduler { host: host.to_owned(), port }),
            _ => Err("expected df://HOST:PORT".into()),
        }
    }
}

impl std::fmt::Display for Scheduler {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "df://{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedulers_have_a_host_and_a_port() {
        for good in ["df://localhost:50050", "df://10.0.0.1:1", "df://[::1]:50050"] {
            assert_eq!(good.parse::<Scheduler>().unwrap().to_string(), good);
        }
        for bad in [
            "",
            "localhost:50050",
            "df://localhost",
            "df://:50050",
            "df://a:0",
            "df://a:70000",
            "df://a/b:1",
            "df://::1:50050",
            "http://a:1",
        ] {
            assert!(bad.parse::<Scheduler>().is_err(), "{bad}");
        }
    }
}
