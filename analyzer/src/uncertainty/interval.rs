//! The width of intervals.

use std::f64::consts::FRAC_PI_2;

/// How far a number can be from the truth.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interval {
    /// Half the width of the interval that holds the truth in 95 % of all recordings, in the unit of the number; `None` where the
    /// recording does not tell.
    pub half_width: Option<f64>,
    /// What of it is chance: `half_width` is the root of the sum of its square and that of what the costs of code are wrong by.
    pub by_chance: Option<f64>,
    /// The number rests on too few slices of the recording (fewer than [`Interval::FEW`]) for the width to be known well.
    pub rests_on_little: bool,
}

impl Interval {
    /// What was seen in fewer slices rests on little.
    pub const FEW: usize = 5;

    /// The same of so many times the number.
    pub fn times(self, factor: f64) -> Interval {
        let times = |width: Option<f64>| width.map(|width| width * factor);
        Interval { half_width: times(self.half_width), by_chance: times(self.by_chance), ..self }
    }
}

/// 97.5 % of Student's t are below it, by degrees of freedom from 1 on.
const STUDENT: [f64; 19] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093,
];

/// 97.5 % of a normal distribution are below it.
pub(super) const NORMAL: f64 = 1.960;

/// Standard deviations of 95 %, where the deviation was estimated from so many slices; `None` of fewer than two.
pub(super) fn student(slices: usize) -> Option<f64> {
    let degrees = slices.checked_sub(2)?;
    Some(STUDENT.get(degrees).copied().unwrap_or(NORMAL))
}

/// The number that so small a part of Student's t (0 to 1, both tails together) is beyond on either side, of at least one degree of freedom.
///
/// Example: 2.228 for 0.05 and 10 degrees of freedom.
pub(super) fn student_beyond(tails: f64, degrees: usize) -> f64 {
    // Where t is the root of the degrees times the tangent of an angle, the tails have a finite sum: Abramowitz and Stegun, 26.7.3 and 4.
    let beyond = |angle: f64| {
        let (sine, cosine) = angle.sin_cos();
        let is_odd = degrees % 2 == 1;
        let (mut term, mut sum) = (if is_odd { cosine } else { 1.0 }, 0.0);
        for power in (if is_odd { 1 } else { 0 }..degrees.saturating_sub(1)).step_by(2) {
            sum += term;
            term *= cosine * cosine * (power + 1) as f64 / (power + 2) as f64;
        }
        1.0 - if is_odd { (angle + sine * sum) / FRAC_PI_2 } else { sine * sum }
    };
    let (mut low, mut high) = (0.0, FRAC_PI_2);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if beyond(middle) > tails { low = middle } else { high = middle }
    }
    (degrees as f64).sqrt() * low.tan()
}

/// By what part of itself a count of rare events can be too small, at 95 %: that which was seen in `seen` of `slices` slices. The number of
/// events is what makes so many slices see one, if events are independent: slices x -ln(1 - seen / slices). The upper limit of a Poisson
/// count is Garwood's (1936), after Wilson and Hilferty. 0 where all slices saw it: then it is not rare.
///
/// Example: seen in 1 of 20 slices, 4.5; in 5 of 20, 1.2.
pub(super) fn rare(seen: usize, slices: usize) -> f64 {
    if seen == 0 || seen >= slices {
        return 0.0;
    }
    let events = independent(seen, slices);
    let above = events + 1.0;
    let upper = above * (1.0 - 1.0 / (9.0 * above) + NORMAL / (3.0 * above.sqrt())).powi(3);
    upper / events - 1.0
}

/// How many events make so many slices see one, if events are independent.
fn independent(seen: usize, slices: usize) -> f64 {
    -(slices as f64) * (1.0 - seen as f64 / slices as f64).ln()
}

/// How many bursts, or samples, a number rests on that was seen in `seen` of `slices` slices, if they are independent; `None` where all slices
/// saw it: then it is not known from that.
///
/// Example: seen in 1 of 20 slices, 1; in 10 of 20, 14.
pub(super) fn events(seen: usize, slices: usize) -> Option<u64> {
    (seen < slices).then(|| independent(seen, slices).round() as u64)
}

/// Which share of all instructions code may have that none of so many bursts, or samples, saw, at 95 %: Garwood's upper limit of a Poisson
/// count of 0 is 3.7, so it is 3.7 where so many more were seen.
///
/// Example: 3 bursts, 0.55; 370 bursts, 0.01.
pub(super) fn unseen(observations: u64) -> f64 {
    const NONE: f64 = 3.689;
    NONE / (observations as f64 + NONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_slices_make_wide_intervals() {
        assert_eq!([0, 1, 2, 20, 30].map(student), [None, None, Some(12.706), Some(2.093), Some(1.960)]);
    }

    #[test]
    fn quantiles_of_student_are_those_of_tables() {
        for (degrees, expected) in (1..).zip(STUDENT) {
            assert!((student_beyond(0.05, degrees) - expected).abs() < 0.0006, "{degrees} degrees");
        }
        // 0.05 % beyond on each side.
        for (degrees, expected) in [(1, 636.619), (2, 31.599), (4, 8.610), (19, 3.883)] {
            let found = student_beyond(0.001, degrees);
            assert!((found - expected).abs() < 0.001, "{degrees} degrees: {found}");
        }
        assert!((student_beyond(0.05, 100_000) - NORMAL).abs() < 0.001);
        assert!([0.0, 1.0].iter().all(|tails| student_beyond(*tails, 4).is_finite()));
    }

    #[test]
    fn slices_tell_how_many_bursts_there_were() {
        assert_eq!(
            [(0, 20), (1, 20), (10, 20), (19, 20)].map(|(seen, all)| events(seen, all)),
            [0, 1, 14, 60].map(Some)
        );
        assert_eq!([events(20, 20), events(0, 0)], [None; 2]);
    }

    #[test]
    fn what_is_rare_can_be_much_more() {
        // Garwood: of 1 event up to 5.57, of 5 up to 11.67. Several events in one slice are seen once.
        assert!((rare(1, 1000) - 4.57).abs() < 0.05, "{}", rare(1, 1000));
        assert!((rare(5, 1000) - 1.33).abs() < 0.02, "{}", rare(5, 1000));
        assert_eq!([rare(0, 20), rare(20, 20), rare(1, 1)], [0.0; 3]);
        assert!(rare(19, 20) < 0.4);
        assert!((unseen(3) - 0.55).abs() < 0.01 && (unseen(370) - 0.01).abs() < 0.001);
    }
}
