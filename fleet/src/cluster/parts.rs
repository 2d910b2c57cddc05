//! Which parts of a plan executors compute.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result};
use datafusion::config::ConfigOptions;
use datafusion::datasource::memory::DataSourceExec;
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
    ReplaceChildrenOptions,
};
use futures::{StreamExt, TryStreamExt};
use tokio::sync::OnceCell;

use super::Cluster;
use super::job::{Job, Piece, encoded};

/// Pieces of what reads files. Executors get as many at a time as they have cores.
const PIECES: usize = 32;

/// See [`Cluster::spread`].
pub fn spread(
    plan: Arc<dyn ExecutionPlan>,
    cluster: &Arc<Cluster>,
    context: &TaskContext,
) -> Result<Arc<dyn ExecutionPlan>> {
    part(plan, cluster, context, false)
}

/// `in_any_order`: what reads from the plan takes any number of pieces, in any order.
fn part(
    plan: Arc<dyn ExecutionPlan>,
    cluster: &Arc<Cluster>,
    context: &TaskContext,
    in_any_order: bool,
) -> Result<Arc<dyn ExecutionPlan>> {
    // The columns of dictionaries come back without.
    let is_plain = plan.schema().fields().iter().all(|field| !matches!(field.data_type(), DataType::Dictionary(..)));
    if is_plain && is_by_piece(&plan) {
        let plan = if in_any_order { in_pieces(plan, context.session_config().options())? } else { plan };
        // What has no encoding is computed here.
        return Ok(match encoded(&plan, context) {
            Ok(encoded) => {
                Arc::new(Remote { plan, encoded: encoded.into(), cluster: cluster.clone(), pieces: Arc::default() })
            }
            Err(_) => plan,
        });
    }
    let in_any_order = plan.is::<RepartitionExec>() || plan.is::<CoalescePartitionsExec>();
    let children = plan.children().into_iter().cloned().collect::<Vec<_>>();
    if children.is_empty() {
        return Ok(plan);
    }
    let children =
        children.into_iter().map(|child| part(child, cluster, context, in_any_order)).collect::<Result<_>>()?;
    plan.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
}

/// Whether each piece of what comes out is made of rows of files alone, whatever the other pieces are, so that it does not matter who computes
/// them. (Ballista makes a stage of its own of the smaller side of a join, whatever it is.)
fn is_by_piece(plan: &Arc<dyn ExecutionPlan>) -> bool {
    // So many rows are enough of all pieces, or of each: what is above has seen how many pieces there were.
    if plan.fetch().is_some() {
        return false;
    }
    if let Some(source) = plan.downcast_ref::<DataSourceExec>() {
        return source.data_source().is::<FileScanConfig>();
    }
    // Other aggregates take one piece for all of it.
    let is_partial = |aggregate: &AggregateExec| *aggregate.mode() == AggregateMode::Partial;
    let is_by_row = plan.is::<FilterExec>()
        || plan.is::<ProjectionExec>()
        || plan.downcast_ref::<AggregateExec>().is_some_and(is_partial);
    is_by_row && plan.children().into_iter().all(is_by_piece)
}

/// With more pieces of the files.
fn in_pieces(plan: Arc<dyn ExecutionPlan>, options: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
    if plan.is::<DataSourceExec>() {
        return Ok(plan.repartitioned(PIECES, options)?.unwrap_or(plan));
    }
    let children =
        plan.children().into_iter().cloned().map(|child| in_pieces(child, options)).collect::<Result<_>>()?;
    plan.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
}

/// What executors compute of a plan.
#[derive(Debug)]
struct Remote {
    plan: Arc<dyn ExecutionPlan>,
    encoded: Arc<[u8]>,
    cluster: Arc<Cluster>,
    /// What the job made, when it has ended; it is not tried again.
    pieces: Arc<OnceCell<std::result::Result<Vec<Piece>, Arc<DataFusionError>>>>,
}

impl DisplayAs for Remote {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        match kind {
            DisplayFormatType::TreeRender => writeln!(f, "scheduler={}", self.cluster.scheduler),
            _ => write!(f, "Cluster: scheduler={}", self.cluster.scheduler),
        }
    }
}

impl ExecutionPlan for Remote {
    fn name(&self) -> &'static str {
        "Cluster"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.plan.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (encoded, cluster, pieces) = (self.encoded.clone(), self.cluster.clone(), self.pieces.clone());
        let (count, schema) = (self.plan.output_partitioning().partition_count(), self.plan.schema());
        let columns = schema.clone();
        let fetched = async move {
            let job = Job { cluster, options: context.session_config().options().clone() };
            let run = || async { job.run(&encoded, count).await.map_err(Arc::new) };
            match pieces.get_or_init(run).await {
                Ok(pieces) => job.fetch(&pieces[partition], columns).await,
                Err(error) => Err(DataFusionError::Shared(error.clone())),
            }
        };
        let stream = futures::stream::once(fetched).try_flatten().boxed();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream)))
    }
}
