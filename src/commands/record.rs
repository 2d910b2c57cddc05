#[derive(clap::Args)]
pub struct Args {}
pub fn run(_: Args) -> anyhow::Result<std::process::ExitCode> {
    anyhow::bail!("not yet")
}
pub fn record_for_analysis(_: &[std::ffi::OsString]) -> anyhow::Result<perfdata::Recording> {
    anyhow::bail!("not yet")
}
