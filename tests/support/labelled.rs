//! Labelled blocks of made-up programs.
#![allow(dead_code)] // Each test program uses a part of it.

use model::Features;
use model::training::LabelledBlock;

/// Numbers that look random: xorshift64*, which no crate in use has. Snapshots of reports hold what is made of them.
pub struct Random(u64);

impl Random {
    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) % end
    }

    /// A number from 0 to 1.
    pub fn unit(&mut self) -> f64 {
        self.below(1 << 20) as f64 / (1 << 20) as f64
    }
}

/// Blocks of programs whose better source `lbr_is_better` names; it is off by up to a tenth, the other by a third to two thirds.
pub fn blocks(programs: usize, mut lbr_is_better: impl FnMut(&Features, &mut Random) -> bool) -> Vec<LabelledBlock> {
    let mut random = Random(88172645463325252);
    let mut blocks = Vec::new();
    for program in 0..programs {
        for index in 0..80 {
            let mut features = Features {
                instructions: 1 + random.below(40) as u32,
                bytes: 4 + random.below(200),
                bias: random.below(4) == 0,
                memory_reads: random.below(5) as u32,
                simd: random.below(3) as u32,
                ebs_samples: random.below(1000),
                lbr_streams: random.below(1000),
                ..Features::default()
            };
            let executions = 1000.0 + random.below(100_000) as f64;
            let mut off = |from: f64, by: f64| {
                let factor = 1.0 + from + by * random.unit();
                executions * if random.below(2) == 0 { factor } else { 1.0 / factor }
            };
            let (near, far) = (off(0.0, 0.1), off(1.0 / 3.0, 1.0 / 3.0));
            (features.lbr_count, features.ebs_count) =
                if lbr_is_better(&features, &mut random) { (near, far) } else { (far, near) };
            blocks.push(LabelledBlock {
                program: format!("program {program}"),
                module: "module".into(),
                function: "function".into(),
                start: 0x1000 + 16 * index,
                features,
                executions,
            });
        }
    }
    blocks
}

/// The paper's rule is right.
pub fn by_length(block: &Features, _: &mut Random) -> bool {
    block.instructions <= 18
}
