//! How long it takes to make the image. `cargo run --release -p hbbp-agent --example image`

use std::time::Instant;

fn main() {
    for _ in 0..5 {
        let began = Instant::now();
        let image = agent::Image::make();
        println!("{:?} {}", began.elapsed(), image.is_ok());
    }
}
