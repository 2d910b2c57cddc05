//! A job of a cluster: what executors made of a plan without exchanges, piece by piece, and whether that is all of it, once.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ballista_core::BALLISTA_VERSION;
use ballista_core::client::BallistaClient;
use ballista_core::config::BallistaConfig;
use ballista_core::error::BallistaError;
use ballista_core::serde::protobuf::execute_query_params::Query;
use ballista_core::serde::protobuf::execute_query_result;
use ballista_core::serde::protobuf::get_job_status_result::FlightProxy;
use ballista_core::serde::protobuf::job_status::Status;
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use ballista_core::serde::protobuf::{
    CancelJobParams, ExecuteQueryParams, ExecutorMetadata, GetJobStatusParams, KeyValuePair, PartitionLocation,
    RemoveSessionParams,
};
use ballista_core::serde::scheduler::{PartitionId, ShuffleLayout};
use ballista_core::utils::{GrpcClientConfig, create_grpc_client_endpoint};
use ballista_core::version::{check_compatibility, insert_version_header, version_from_metadata};
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{DataFusionError, Result, exec_datafusion_err, exec_err};
use datafusion::config::ConfigOptions;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_proto::physical_plan::{AsExecutionPlan, DefaultPhysicalExtensionCodec};
use datafusion_proto::protobuf::PhysicalPlanNode;
use futures::StreamExt;
use prost::Message;
use tonic::transport::Channel;

use super::Cluster;

/// Between two looks at whether a job has ended.
const LOOKS: Duration = Duration::from_millis(50);

/// For an executor to say whether it has a piece; one that was lost may say nothing.
const ANSWER: Duration = Duration::from_secs(20);

/// A piece of an answer, wherever it is: where an executor was lost, another may have made it again, and both are named.
pub type Piece = Vec<Replica>;

/// What an executor made of a piece.
#[derive(Clone, Debug)]
pub struct Replica {
    id: PartitionId,
    executor: ExecutorMetadata,
    executor_port: u16,
    /// Whom to ask for it: host and port.
    from: (String, u16),
    file: Option<u64>,
    layout: ShuffleLayout,
    /// As the executor counted them.
    rows: u64,
}

/// Has a cluster compute a plan.
pub struct Job {
    pub cluster: Arc<Cluster>,
    /// Those of the question.
    pub options: Arc<ConfigOptions>,
}

/// A plan as schedulers and executors read it.
///
/// # Errors
/// A node or an expression of it has no encoding, or none that can be read again.
pub fn encoded(plan: &Arc<dyn ExecutionPlan>, context: &TaskContext) -> Result<Vec<u8>> {
    let codec = DefaultPhysicalExtensionCodec {};
    let encoded = PhysicalPlanNode::try_from_physical_plan(plan.clone(), &codec)?;
    encoded.try_into_physical_plan(context, &codec)?;
    Ok(encoded.encode_to_vec())
}

impl Job {
    /// Where each of so many pieces of a plan ([`encoded`]) is, when all are there.
    ///
    /// # Errors
    /// The cluster cannot be reached, cannot do it, takes too long, or did another thing than that.
    pub async fn run(&self, plan: &[u8], pieces: usize) -> Result<Vec<Piece>> {
        let mut scheduler = self.scheduler().await?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let session = format!("hbbp-fleet-{}-{}", std::process::id(), now.as_nanos());
        let job = self.submit(&mut scheduler, plan.to_vec(), session.clone()).await?;
        let ended = tokio::time::timeout(self.cluster.wait, self.ended(&mut scheduler, &job)).await;
        // What comes of it bears on nothing that was asked.
        let _ = scheduler.remove_session(RemoveSessionParams { session_id: session }).await;
        let (locations, proxy) = match ended {
            Ok(ended) => ended?,
            Err(_) => {
                // Whether it can be cancelled or not, nobody reads it.
                let _ = scheduler.cancel_job(CancelJobParams { job_id: job }).await;
                return exec_err!(
                    "the cluster at {} has not answered within {} s: an executor may be lost, or all are busy; ask again, or wait longer with --cluster-wait",
                    self.cluster.scheduler,
                    self.cluster.wait.as_secs()
                );
            }
        };
        let pieces = in_order(locations, pieces, |executor| self.giver(executor, proxy.as_ref()));
        pieces.map_err(|odd| {
            exec_datafusion_err!(
                "the cluster at {} did not compute what was asked: {odd}; ask again, or without --cluster",
                self.cluster.scheduler
            )
        })
    }

    async fn scheduler(&self) -> Result<SchedulerGrpcClient<Channel>> {
        let scheduler = &self.cluster.scheduler;
        let config = BallistaConfig::default();
        let endpoint = create_grpc_client_endpoint(
            format!("http://{}:{}", scheduler.host, scheduler.port),
            Some(&GrpcClientConfig::from(&config)),
        );
        let connected = match endpoint {
            Ok(endpoint) => endpoint.connect().await,
            Err(error) => Err(error),
        };
        let channel = connected.map_err(|error| {
            exec_datafusion_err!(
                "no scheduler of Ballista answers at {scheduler} ({error}): is ballista-scheduler running there?"
            )
        })?;
        let most = config.grpc_client_max_message_size();
        Ok(SchedulerGrpcClient::new(channel).max_encoding_message_size(most).max_decoding_message_size(most))
    }

    /// Hands over a plan; the name of the job.
    async fn submit(
        &self,
        scheduler: &mut SchedulerGrpcClient<Channel>,
        plan: Vec<u8>,
        session: String,
    ) -> Result<String> {
        let settings = self.options.entries().into_iter();
        let settings = settings.map(|entry| KeyValuePair { key: entry.key, value: entry.value }).collect();
        let mut request = tonic::Request::new(ExecuteQueryParams {
            session_id: session.clone(),
            settings,
            operation_id: session,
            query: Some(Query::PhysicalPlan(plan)),
        });
        insert_version_header(request.metadata_mut());
        let answer = scheduler.execute_query(request).await.map_err(|status| self.refused(&status))?;
        let version = check_compatibility(Some(BALLISTA_VERSION), version_from_metadata(answer.metadata()));
        let job = match answer.into_inner().result {
            Some(execute_query_result::Result::Success(job)) => job.job_id,
            refused => {
                version.map_err(DataFusionError::Execution)?;
                return exec_err!("the scheduler at {} refused the question: {refused:?}", self.cluster.scheduler);
            }
        };
        if let Err(other) = version {
            let _ = scheduler.cancel_job(CancelJobParams { job_id: job }).await;
            return exec_err!("{other}");
        }
        Ok(job)
    }

    /// Where all is that a job made, when it has ended, and who hands it out if not the executors.
    async fn ended(
        &self,
        scheduler: &mut SchedulerGrpcClient<Channel>,
        job: &str,
    ) -> Result<(Vec<PartitionLocation>, Option<FlightProxy>)> {
        let mut unknown_since = Instant::now();
        loop {
            let asked = scheduler.get_job_status(GetJobStatusParams { job_id: job.to_owned() }).await;
            let answer = asked.map_err(|status| self.refused(&status))?.into_inner();
            match answer.status.and_then(|status| status.status) {
                None if unknown_since.elapsed() > ANSWER => {
                    return exec_err!(
                        "the scheduler at {} does not know the question any more: if it was started anew, ask again",
                        self.cluster.scheduler
                    );
                }
                None => tokio::time::sleep(LOOKS).await,
                Some(Status::Queued(_) | Status::Running(_)) => {
                    unknown_since = Instant::now();
                    tokio::time::sleep(LOOKS).await;
                }
                Some(Status::Failed(failed)) => {
                    return exec_err!("the cluster at {} has failed: {}", self.cluster.scheduler, failed.error);
                }
                Some(Status::Successful(done)) => return Ok((done.partition_location, answer.flight_proxy)),
            }
        }
    }

    /// Whom to ask for what an executor has made: host and port.
    fn giver(&self, executor: &ExecutorMetadata, proxy: Option<&FlightProxy>) -> Option<(String, u16)> {
        match proxy {
            Some(FlightProxy::External(address)) => {
                let (host, port) = address.rsplit_once(':')?;
                Some((host.to_owned(), port.parse().ok()?))
            }
            Some(FlightProxy::Local(true)) => Some((self.cluster.scheduler.host.clone(), self.cluster.scheduler.port)),
            Some(FlightProxy::Local(false)) | None => Some((executor.host.clone(), executor.port.try_into().ok()?)),
        }
    }

    fn refused(&self, status: &tonic::Status) -> DataFusionError {
        exec_datafusion_err!(
            "the scheduler at {} refuses, or does not answer: {}",
            self.cluster.scheduler,
            status.message()
        )
    }

    /// The rows of a piece, from the first executor that gives them: the one that was named last is asked first.
    ///
    /// # Errors
    /// None does. In the stream: it breaks off, has other columns, or other rows than were counted.
    pub async fn fetch(&self, piece: &Piece, schema: SchemaRef) -> Result<SendableRecordBatchStream> {
        let mut lost = String::new();
        for replica in piece.iter().rev() {
            let address = format!("{}:{}", replica.executor.host, replica.executor.port);
            match tokio::time::timeout(ANSWER, replica.rows()).await {
                Ok(Ok(rows)) => {
                    let rows = counted(rows, schema.clone(), replica.rows, address, self.cluster.wait);
                    return Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)));
                }
                Ok(Err(error)) => lost += &format!("; {address}: {error}"),
                Err(_) => lost += &format!("; {address} has not answered within {} s", ANSWER.as_secs()),
            }
        }
        exec_err!("an executor does not give what it has computed: ask again{lost}")
    }
}

impl Replica {
    async fn rows(&self) -> std::result::Result<SendableRecordBatchStream, BallistaError> {
        let config = BallistaConfig::default();
        let (host, port) = &self.from;
        let most = config.grpc_client_max_message_size();
        let retries = u8::try_from(config.io_retries_times()).unwrap_or(1);
        let pause = config.io_retry_wait_time_ms() as u64;
        let mut client = BallistaClient::try_new(host, *port, most, false, None, retries, pause, 0, 0).await?;
        let (id, host) = (&self.executor.id, &self.executor.host);
        client.fetch_partition_proxied(id, &self.id, self.file, self.layout, host, self.executor_port, true).await
    }
}

/// The batches of a stream, each of which comes within some time; at its end, an error if it had other rows than it should.
fn counted(
    rows: SendableRecordBatchStream,
    schema: SchemaRef,
    expected: u64,
    address: String,
    wait: Duration,
) -> impl futures::Stream<Item = Result<RecordBatch>> + Send {
    let next = move |(mut rows, seen): (SendableRecordBatchStream, u64)| {
        let (schema, address) = (schema.clone(), address.clone());
        async move {
            match tokio::time::timeout(wait, rows.next()).await {
                Ok(Some(Ok(batch))) => {
                    let seen = seen + batch.num_rows() as u64;
                    // Names and types are those of the plan; what else its schema says is not sent.
                    let rows_alone = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
                    let batch = RecordBatch::try_new_with_options(schema, batch.columns().to_vec(), &rows_alone)?;
                    Ok(Some((batch, (rows, seen))))
                }
                Ok(Some(Err(error))) => exec_err!("the executor at {address} has broken off ({error}): ask again"),
                Ok(None) if seen == expected => Ok(None),
                Ok(None) => {
                    exec_err!(
                        "the executor at {address} has sent {seen} rows of the {expected} that it had counted: ask again"
                    )
                }
                Err(_) => {
                    exec_err!(
                        "the executor at {address} has sent nothing for {} s: it may be lost; ask again",
                        wait.as_secs()
                    )
                }
            }
        }
    };
    futures::stream::try_unfold((rows, 0), next)
}

const NO_ADDRESS: &str = "the address of a piece is none";

/// The pieces by their numbers, if each is there, and no other; else what is odd.
fn in_order(
    locations: Vec<PartitionLocation>,
    pieces: usize,
    giver: impl Fn(&ExecutorMetadata) -> Option<(String, u16)>,
) -> std::result::Result<Vec<Piece>, String> {
    let mut found: Vec<Piece> = vec![Vec::new(); pieces];
    for location in locations {
        let layout = location.layout();
        let id = location.partition_id.ok_or("a piece has no number")?;
        // Stages are counted from 1. What one stage makes and another reads could have been read twice.
        if id.stage_id != 1 {
            return Err(format!("it took {} stages", id.stage_id));
        }
        let rows = location.partition_stats.and_then(|stats| u64::try_from(stats.num_rows).ok());
        let executor = location.executor_meta.ok_or("a piece is of no executor")?;
        let replica = Replica {
            id: PartitionId {
                job_id: id.job_id.into(),
                stage_id: id.stage_id as usize,
                partition_id: id.partition_id as usize,
            },
            from: giver(&executor).ok_or(NO_ADDRESS)?,
            executor_port: executor.port.try_into().map_err(|_| NO_ADDRESS)?,
            executor,
            file: location.file_id,
            layout,
            rows: rows.ok_or("the rows of a piece were not counted")?,
        };
        let number = replica.id.partition_id;
        found.get_mut(number).ok_or_else(|| format!("there is a piece {number} of {pieces}"))?.push(replica);
    }
    match found.iter().position(Vec::is_empty) {
        Some(number) => Err(format!("piece {number} of {pieces} is missing")),
        None => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use ballista_core::serde::protobuf;
    use datafusion::arrow::array::Int32Array;

    use super::*;

    fn location(stage: u32, number: u32) -> PartitionLocation {
        PartitionLocation {
            partition_id: Some(protobuf::PartitionId { job_id: "job".into(), stage_id: stage, partition_id: number }),
            executor_meta: Some(ExecutorMetadata { host: "one".into(), port: 50051, ..Default::default() }),
            partition_stats: Some(protobuf::PartitionStats { num_rows: 7, ..Default::default() }),
            ..Default::default()
        }
    }

    /// The numbers of the pieces, or what is odd.
    fn numbers(locations: Vec<PartitionLocation>, pieces: usize) -> std::result::Result<Vec<usize>, String> {
        let giver = |executor: &ExecutorMetadata| Some((executor.host.clone(), 1));
        Ok(in_order(locations, pieces, giver)?.iter().map(|piece| piece.last().unwrap().id.partition_id).collect())
    }

    #[test]
    fn each_piece_is_there() {
        assert_eq!(numbers(vec![location(1, 2), location(1, 0), location(1, 1)], 3), Ok(vec![0, 1, 2]));
        // One executor was lost, and another has made it again.
        let twice = vec![location(1, 0), location(1, 1), location(1, 0)];
        assert_eq!(numbers(twice, 2), Ok(vec![0, 1]));
        assert_eq!(numbers(vec![location(1, 1)], 2), Err("piece 0 of 2 is missing".into()));
        assert_eq!(numbers(vec![location(1, 0), location(1, 2)], 2), Err("there is a piece 2 of 2".into()));
        assert_eq!(numbers(vec![location(2, 0)], 1), Err("it took 2 stages".into()));
        let uncounted = PartitionLocation { partition_stats: None, ..location(1, 0) };
        assert_eq!(numbers(vec![uncounted], 1), Err("the rows of a piece were not counted".into()));
    }

    #[tokio::test]
    async fn all_rows_that_were_counted_come() {
        let rows = RecordBatch::try_from_iter([("a", Arc::new(Int32Array::from(vec![1, 2, 3])) as _)]).unwrap();
        let come = |expected| {
            let stream = futures::stream::iter([Ok(rows.clone()), Ok(rows.clone())]);
            let stream = Box::pin(RecordBatchStreamAdapter::new(rows.schema(), stream));
            counted(stream, rows.schema(), expected, "one:50051".into(), Duration::from_secs(9)).collect::<Vec<_>>()
        };
        assert!(come(6).await.iter().all(Result::is_ok));
        for other in [5, 7] {
            let all = come(other).await;
            assert_eq!((all.len(), all[..2].iter().all(Result::is_ok)), (3, true));
            let error = all[2].as_ref().unwrap_err().to_string();
            assert!(
                error.contains(&format!("has sent 6 rows of the {other} that it had counted: ask again")),
                "{error}"
            );
        }
    }
}
