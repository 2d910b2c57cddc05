//! Finds the least value of a smooth function.

/// After so many evaluations the search ends.
const MOST_STEPS: usize = 2000;
/// A slope that is flat.
const FLAT: f64 = 1e-6;
/// Values looked back at: a step may lead upwards a little (Raydan 1997).
const LOOK_BACK: usize = 10;

/// Where `value` is least, looking from `at`: gradient descent with steps after Barzilai and Borwein (1988). `value` writes the gradient to
/// its second argument. Ends where it is flat, or after 2,000 evaluations at the best place seen.
pub(super) fn least(mut at: Vec<f64>, value: impl Fn(&[f64], &mut [f64]) -> f64) -> Vec<f64> {
    let mut slope = vec![0.0; at.len()];
    let mut now = value(&at, &mut slope);
    let mut best = (now, at.clone());
    let mut recent = vec![now];
    let mut length = 1.0 / steepest(&slope).max(1.0);
    let mut new_slope = slope.clone();
    for _ in 0..MOST_STEPS {
        if steepest(&slope) < FLAT {
            break;
        }
        let next: Vec<f64> = at.iter().zip(&slope).map(|(at, slope)| at - length * slope).collect();
        let then = value(&next, &mut new_slope);
        let highest = recent.iter().copied().fold(f64::MIN, f64::max);
        let descent: f64 = slope.iter().map(|slope| slope * slope).sum::<f64>() * length;
        if !then.is_finite() || then > highest - 1e-4 * descent {
            length /= 4.0;
            if length < 1e-12 {
                break;
            }
            continue;
        }
        let (mut along, mut squared) = (0.0, 0.0);
        for index in 0..at.len() {
            let moved = next[index] - at[index];
            along += moved * (new_slope[index] - slope[index]);
            squared += moved * moved;
        }
        length = if along > 0.0 { (squared / along).clamp(1e-9, 1e3) } else { 1.0 };
        at = next;
        std::mem::swap(&mut slope, &mut new_slope);
        now = then;
        if now < best.0 {
            best = (now, at.clone());
        }
        if recent.len() == LOOK_BACK {
            recent.remove(0);
        }
        recent.push(now);
    }
    best.1
}

fn steepest(slope: &[f64]) -> f64 {
    slope.iter().fold(0.0, |most, slope| f64::max(most, slope.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bottom_of_a_valley_is_found() {
        // Rosenbrock (1960), least at (1, 1).
        let found = least(vec![-1.2, 1.0], |at, slope| {
            let (x, y) = (at[0], at[1]);
            slope[0] = -2.0 * (1.0 - x) - 400.0 * x * (y - x * x);
            slope[1] = 200.0 * (y - x * x);
            (1.0 - x).powi(2) + 100.0 * (y - x * x).powi(2)
        });
        assert!((found[0] - 1.0).abs() < 1e-4 && (found[1] - 1.0).abs() < 1e-4, "{found:?}");
    }

    #[test]
    fn a_function_without_a_least_value_ends() {
        let found = least(vec![0.0], |at, slope| {
            slope[0] = -1.0;
            -at[0]
        });
        assert!(found[0].is_finite());
    }
}
