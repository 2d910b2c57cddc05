//! Timers of CPU time that start the bursts of a session, if the user asks for it.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata as FileMetadata};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;

use agent::{Clock as TimerClock, Preload};
use formats::metadata::Metadata;
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, ReadCache, elf};
use perfdata::{EventAttr, EventDescription};

use crate::error::RecordError;
use crate::machine::{EventOpener, Machine, Probe};
use crate::plan::choice::{Choice, CountsFrom};
use crate::plan::event_spec::{EventSpec, SessionAttrs};
use crate::plan::request::Request;
use crate::session::Summary;
use crate::session::followed::{Attached, Followed, Follows, PlannedFollower};
use crate::session::tracing::{conclude, introduce, spec, with_burst};
use crate::sys::{is_32_bit_program, tick};
use crate::tracer::budget::signal_cost::SignalCost;
use crate::tracer::budget::stop_cost::{StopCost, UNSEEN_SHARE};
use crate::tracer::{
    Clock, PreloadFile, Settings, TimedBursts, TraceError, Tracer, TracerChoice, TracerKind, TracerStatistics,
};

/// The id of the bursts' event. There is no other.
const ID: u64 = 1;
/// Since this release the kernel prefers the thread that computes for the signal of a timer of its process.
const PREFERS_CURRENT: (u32, u32) = (6, 4);

/// Tracing by timers that is to be done.
pub(crate) struct Timing {
    settings: Settings,
    spec: EventSpec,
    event: EventDescription,
    /// What is handed over when tracing begins.
    made: Option<(Arc<TimedBursts>, PreloadFile)>,
    /// `None`: the command is of 32 bits, and its loader would complain.
    environment: Option<(&'static str, OsString)>,
    program: OsString,
}

impl Timing {
    /// Whether a request is met in this way: only if the user wants it. A program that filters its own system calls strictly can be killed.
    pub(crate) fn wanted(request: &Request) -> bool {
        request.tracer.kind == TracerChoice::Kind(TracerKind::Timer)
    }

    /// Makes what programs are to load.
    ///
    /// # Errors
    /// No agent can be made here, or there is no place for its file.
    pub(crate) fn plan(request: &Request, machine: &Machine) -> Result<(Self, Choice), RecordError> {
        let options = &request.tracer;
        let kind = TracerKind::Timer;
        let settings = Settings {
            kind,
            end: options.size.end(kind),
            overhead: options.overhead,
            start_credit: options.start_credit,
            burst_share: 1.0 - UNSEEN_SHARE,
            inherit: true,
            command: None,
            waited_for: None,
            by_cpu: None,
            group: None,
            clock: Clock::Time,
            searched: request.searched.clone(),
        };
        let spec = spec(Clock::Time, options.overhead);
        let event = EventDescription { attr: attr(&spec), name: spec.name(), ids: vec![ID] };
        let limits = settings.end.limits();
        let clock = clock(&machine.kernel.release);
        let mut statistics = TracerStatistics::new(&settings, StopCost::built_in("timers stop nobody"));
        statistics.signal_cost = SignalCost::built_in("signals of timers are not timed");
        let agent = |error: String| RecordError::Trace(TraceError::Agent(error));
        let (bursts, preload): (TimedBursts, Preload) =
            TimedBursts::new(&event, statistics, limits, clock).map_err(|error| agent(error.to_string()))?;
        let file = PreloadFile::write(&preload).map_err(|error| {
            let advice = "TMPDIR should be one that code can be mapped from (no `noexec`)";
            agent(format!("no folder for its shared object: {error}; {advice}"))
        })?;
        let choice = choice(machine, clock);
        let program = request.command.first().cloned().unwrap_or_default();
        let environment = (!has_32_bits(&program)).then(|| file.environment());
        let made = Some((Arc::new(bursts), file));
        Ok((Self { settings, spec, event, made, environment, program }, choice))
    }
}

/// There are no events but that of bursts.
fn choice(machine: &Machine, clock: TimerClock) -> Choice {
    let degradations = vec![sentence(machine, clock)];
    Choice { source: CountsFrom::Clock, events: Vec::new(), by_cpu: false, degradations }
}

/// Whether the machine allows it.
pub(crate) fn is_possible(opener: &mut dyn EventOpener) -> bool {
    opener.try_timer().is_ok() && agent::Image::possible().is_ok()
}

/// What bursts are without perf events, in a sentence for every report.
fn sentence(machine: &Machine, clock: TimerClock) -> String {
    let why = match machine.probes.dummy {
        Probe::Fails(errno) if errno.is_permission() => {
            let place = if machine.container.is_some() { " in this container" } else { " here" };
            format!("perf_event_open is not permitted{place} ({errno}): ")
        }
        Probe::Fails(errno) => format!("this kernel does not open perf events ({errno}): "),
        _ => String::new(),
    };
    let threads = match clock {
        TimerClock::Process => "",
        TimerClock::Thread => ", of the first thread of each process only (Linux 6.4 has more)",
    };
    format!(
        "{why}bursts are started by timers of CPU time: no samples of a clock, no bursts of programs without a dynamic \
         loader, mappings as /proc shows them, and a resolution of {} ms{threads}",
        tick().as_millis()
    )
}

/// Whose CPU time is to be counted on a kernel of this release.
fn clock(release: &str) -> TimerClock {
    let mut numbers = release.split(|character: char| !character.is_ascii_digit()).map(|number| number.parse().ok());
    match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(major), Some(minor)) if (major, minor) >= PREFERS_CURRENT => TimerClock::Process,
        _ => TimerClock::Thread,
    }
}

/// The attributes of the bursts' event, which also tells of mappings, names, forks and exits.
fn attr(spec: &EventSpec) -> EventAttr {
    let attr = spec.attr(&SessionAttrs::default(), true);
    EventAttr { sample_format: with_burst(attr.sample_format), ..attr }
}

impl PlannedFollower for Timing {
    fn environment(&self) -> Option<(&'static str, OsString)> {
        self.environment.clone()
    }

    fn attach(
        mut self: Box<Self>,
        _: &Request,
        command: Option<u32>,
        _: Option<&EventAttr>,
        _: &mut Choice,
    ) -> Result<Option<Attached>, RecordError> {
        self.settings.command = command.map(|pid| pid as i32);
        let Some((bursts, file)) = self.made.take() else { return Ok(None) };
        let tracer = Tracer::by_timers(self.settings.clone(), bursts, file).map_err(RecordError::Trace)?;
        let event = self.event.clone();
        Ok(Some(Attached { traces: false, ..Followed::attached(*self, vec![event], tracer) }))
    }
}

impl Follows for Timing {
    type Statistics = TracerStatistics;

    fn introduce(&self, metadata: &mut Metadata) {
        introduce(&self.spec, &self.settings, metadata);
    }

    fn conclude(&self, done: Option<TracerStatistics>, own: Range<usize>, summary: &mut Summary) {
        let agents = done.as_ref().and_then(|done| done.agents.as_ref());
        if agents.is_some_and(|agents| agents.injected == 0) {
            let program = self.program.to_string_lossy();
            summary.metadata.degradations.push(format!("no process took part: {program} {}", why_not(&self.program)));
        }
        conclude(done, own, 0, summary);
    }
}

/// Why a command may have had no agent, in words that follow its name.
fn why_not(program: &OsStr) -> &'static str {
    const RIGHTS_OF_FILE: u32 = libc::S_ISUID | libc::S_ISGID;
    const SHORT: &str = "has taken no signal of its timer: it ended before, or does not let it through";
    let Some(path) = path_of(program) else { return SHORT };
    let Ok(file) = File::open(&path) else { return "may not be read: is it static?" };
    if has_32_bits(program) {
        return "is a 32-bit program: bursts are of 64-bit code";
    }
    if file.metadata().is_ok_and(|file: FileMetadata| file.mode() & RIGHTS_OF_FILE != 0) {
        return "has rights of its file (setuid): the dynamic loader takes nothing from its environment";
    }
    let cache = ReadCache::new(file);
    match has_loader(&cache) {
        Some(false) => "is static: it has no dynamic loader",
        _ => SHORT,
    }
}

/// Whether a command is a program of 32 bits.
fn has_32_bits(program: &OsStr) -> bool {
    path_of(program).and_then(|path| File::open(path).ok()).is_some_and(is_32_bit_program)
}

/// Whether an ELF file names a dynamic loader.
fn has_loader(data: &ReadCache<File>) -> Option<bool> {
    let elf = ElfFile64::<Endianness, _>::parse(data).ok()?;
    let segments = elf.elf_header().program_headers(elf.endian(), data).ok()?;
    Some(segments.iter().any(|segment| segment.p_type(elf.endian()) == elf::PT_INTERP))
}

/// The file of a command, as `execvp` finds it.
fn path_of(program: &OsStr) -> Option<PathBuf> {
    if program.as_encoded_bytes().contains(&b'/') {
        return Some(program.into());
    }
    let folders = env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    env::split_paths(&folders).map(|folder| folder.join(program)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_follows_the_release() {
        for (release, expected) in [
            ("6.4.0", TimerClock::Process),
            ("6.18.44-fc", TimerClock::Process),
            ("10.0", TimerClock::Process),
            ("6.3.9", TimerClock::Thread),
            ("5.15.0-100-generic", TimerClock::Thread),
            ("", TimerClock::Thread),
        ] {
            assert_eq!(clock(release), expected, "{release}");
        }
    }

    #[test]
    fn what_keeps_an_agent_out_is_named() {
        assert!(why_not(OsStr::new("sh")).contains("it ended before"));
        assert_eq!(why_not(OsStr::new("/nonexistent/program")), "may not be read: is it static?");
    }
}
