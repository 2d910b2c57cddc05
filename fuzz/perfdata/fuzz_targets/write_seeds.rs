//! Writes the starting corpora: `cargo run --bin write-seeds`, in this folder.

use std::fs;
use std::path::Path;

fn main() -> std::io::Result<()> {
    let write = |target: &str, name: &str, bytes: &[u8]| {
        let folder = Path::new("corpus").join(target);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(name), bytes)
    };
    for (name, bytes) in perfdata_fuzz::seeds::recordings() {
        write("read", name, &bytes)?;
    }
    for (number, bytes) in perfdata_fuzz::seeds::samples().iter().enumerate() {
        write("sample", &number.to_string(), bytes)?;
    }
    Ok(())
}
