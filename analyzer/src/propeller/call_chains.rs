//! An order of functions by call-chain clustering (C3): each comes after the caller that calls it most, as long as both fit together.
//!
//! (G. Ottoni, B. Maher, *Optimizing Function Placement for Large-Scale Data-Center Applications*, CGO 2017; the limits are those of
//! lld's `--call-graph-ordering-file`.)

use std::collections::BTreeMap;

/// The most bytes of a cluster.
const LARGEST: u64 = 1 << 20;
/// A caller takes a function in only if it makes this part of all that the function runs.
const LEAST_PART: f64 = 0.1;
/// How much thinner a cluster may become by what it takes in.
const MOST_THINNER: f64 = 8.0;

/// A function that is to be placed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Placed {
    /// Bytes of it that ran.
    pub size: u64,
    /// Bytes that it executed.
    pub weight: f64,
    /// How often it was entered.
    pub entered: f64,
}

/// Functions in their order. `calls` are callers and functions with executions.
pub(super) fn order(functions: &[Placed], calls: &BTreeMap<(usize, usize), f64>) -> Vec<usize> {
    let mut callers: Vec<Option<(usize, f64)>> = vec![None; functions.len()];
    for (&(caller, function), &count) in calls {
        let is_most = callers[function].is_none_or(|(_, most)| count > most);
        if caller != function && is_most {
            callers[function] = Some((caller, count));
        }
    }
    let mut clusters: Vec<Cluster> = functions.iter().enumerate().map(|(index, of)| Cluster::of(index, of)).collect();
    // Which cluster a function is in: that of the one that it points to, and so on.
    let mut inside: Vec<usize> = (0..functions.len()).collect();
    let by_density = |clusters: &[Cluster]| {
        let mut order: Vec<usize> = (0..clusters.len()).collect();
        order.sort_by(|a, b| clusters[*b].density().total_cmp(&clusters[*a].density()));
        order
    };
    for function in by_density(&clusters) {
        let Some((caller, count)) = callers[function] else { continue };
        let target = root(&mut inside, caller);
        // It leads its own cluster: only then does it come right after who calls it.
        if target == function
            || root(&mut inside, function) != function
            || count < LEAST_PART * functions[function].entered
        {
            continue;
        }
        let (to, from) = (&clusters[target], &clusters[function]);
        let (size, weight) = (to.size + from.size, to.weight + from.weight);
        let is_thin = weight / size as f64 * MOST_THINNER < to.density();
        if size > LARGEST || is_thin {
            continue;
        }
        let members = std::mem::take(&mut clusters[function].functions);
        clusters[target].functions.extend(members);
        (clusters[target].size, clusters[target].weight) = (size, weight);
        inside[function] = target;
    }
    let order = by_density(&clusters);
    order.into_iter().flat_map(|cluster| std::mem::take(&mut clusters[cluster].functions)).collect()
}

struct Cluster {
    functions: Vec<usize>,
    size: u64,
    weight: f64,
}

impl Cluster {
    fn of(index: usize, function: &Placed) -> Self {
        Cluster { functions: vec![index], size: function.size.max(1), weight: function.weight }
    }

    fn density(&self) -> f64 {
        self.weight / self.size as f64
    }
}

/// The cluster that a function is in; the way there becomes shorter.
fn root(inside: &mut [usize], mut function: usize) -> usize {
    while inside[function] != function {
        inside[function] = inside[inside[function]];
        function = inside[function];
    }
    function
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(size: u64, weight: f64, entered: f64) -> Placed {
        Placed { size, weight, entered }
    }

    #[test]
    fn functions_come_after_who_calls_them_most() {
        // 0 calls 2 often, 1 calls it seldom; nobody calls 3, which is the hottest.
        let functions =
            [placed(10, 100.0, 1.0), placed(10, 90.0, 1.0), placed(10, 80.0, 50.0), placed(10, 1000.0, 1.0)];
        let calls = [((0, 2), 40.0), ((1, 2), 10.0)].into();
        assert_eq!(order(&functions, &calls), [3, 0, 2, 1]);
    }

    #[test]
    fn what_is_too_large_or_too_cold_stays_apart() {
        let large = [placed(LARGEST, 1e9, 1.0), placed(10, 1.0, 5.0), placed(100, 1e6, 1.0)];
        let calls = [((0, 1), 5.0)].into();
        assert_eq!(order(&large, &calls), [2, 0, 1]);
        let cold = [placed(10, 1e6, 1.0), placed(1000, 1.0, 5.0), placed(10, 1e5, 1.0)];
        assert_eq!(order(&cold, &calls), [0, 2, 1]);
    }

    #[test]
    fn functions_that_call_each_other_are_one_cluster() {
        let functions = [placed(10, 100.0, 60.0), placed(10, 90.0, 60.0)];
        assert_eq!(order(&functions, &[((0, 1), 50.0), ((1, 0), 50.0), ((0, 0), 99.0)].into()), [1, 0]);
    }
}
