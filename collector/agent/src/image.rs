//! The image: the recorder's own executable, as it is mapped into programs.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{Advice, madvise};

use crate::executable::{Executable, Tls, Value};
use crate::imports;
use crate::inside::burst;
use crate::inside::context::Tcb;
use crate::inside::entry;
use crate::inside::heap::Heap;
use crate::inside::system::{self, Action};
use crate::inside::{faults, follow};
use crate::layout::{BASE, CONTEXT_COUNT, CONTEXTS, HEAP, SLOTS, STUBS, tcb};
use crate::slots::{Shared, Slots};

/// Bytes of the file: up to where the scratch page begins.
const FILE_BYTES: u64 = crate::layout::SCRATCH - BASE;

/// What preparing takes of the first context's heap, in whole pages: the tables of the decoder and of the encoder.
const PREPARED: usize = 310 * 4096;

/// Why there is no image.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// User code may not change the base of fs.
    #[error("the CPU or the kernel does not let user code change the base of fs (FSGSBASE, Linux 5.9)")]
    NoSegmentBases,
    /// What agents use of the C library is not replaced where it is in the executable.
    #[error("this hbbp is linked statically: one that is linked with the C library has agents")]
    Static,
    /// The executable is not as expected.
    #[error("hbbp's own executable cannot be mapped elsewhere: {0}")]
    Executable(String),
    /// The system refuses memory.
    #[error("{what}: {source}")]
    System {
        /// What was asked for.
        what: &'static str,
        /// The system's answer.
        source: io::Error,
    },
}

fn failed(what: &'static str) -> impl Fn(io::Error) -> ImageError {
    move |source| ImageError::System { what, source }
}

/// A file in memory, from which code may be mapped.
pub(crate) fn memory_file() -> io::Result<OwnedFd> {
    /// linux/memfd.h.
    const MFD_EXEC: MemfdFlags = MemfdFlags::from_bits_retain(0x10);
    let file = memfd_create("hbbp-agent", MemfdFlags::CLOEXEC | MFD_EXEC);
    // Before Linux 6.3, code may be mapped from any.
    Ok(file.or_else(|_| memfd_create("hbbp-agent", MemfdFlags::CLOEXEC))?)
}

/// How a part of the image may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protection {
    /// Constants.
    Read,
    /// Code.
    Execute,
    /// Data.
    Write,
    /// Code that is made there.
    WriteAndExecute,
    /// Data that the recorder has, too.
    Share,
}

/// What a part is mapped from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The recorder's executable.
    Executable,
    /// The image's own file ([`Image::as_fd`]).
    Memory,
}

/// A part of the image, to be mapped from one of its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Where it is, in every process.
    pub(crate) address: u64,
    /// Its length, in whole pages.
    pub(crate) bytes: u64,
    /// Where it begins in its file.
    pub(crate) offset: u64,
    /// Which file that is.
    pub(crate) source: Source,
    /// How it is mapped: shared only if the recorder is to have it, too.
    pub(crate) protection: Protection,
}

impl Part {
    /// The arguments of mmap(2) for this: protection and flags, but for MAP_FIXED.
    pub(crate) fn mmap_flags(&self) -> (c_int, c_int) {
        use libc::{MAP_NORESERVE, MAP_PRIVATE, MAP_SHARED, PROT_EXEC, PROT_READ, PROT_WRITE};
        match self.protection {
            Protection::Read => (PROT_READ, MAP_PRIVATE),
            Protection::Execute => (PROT_READ | PROT_EXEC, MAP_PRIVATE),
            Protection::Write => (PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE),
            Protection::WriteAndExecute => (PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_NORESERVE),
            Protection::Share => (PROT_READ | PROT_WRITE, MAP_SHARED),
        }
    }
}

/// A handler of the agent's, by addresses in a program.
pub(crate) struct Handler {
    pub(crate) signal: c_int,
    pub(crate) agents: u64,
    /// Where the action is that the program had.
    pub(crate) programs: u64,
    pub(crate) kept: Kept,
}

/// When a handler is installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// From the beginning on.
    Always,
    /// From when the word at this address is not zero.
    If(u64),
    /// While bursts run.
    ForBursts,
}

/// What is mapped into programs, made ready.
pub struct Image {
    pub(crate) file: OwnedFd,
    parts: Vec<Part>,
    /// The bursts that come out of programs.
    pub slots: Slots,
    own_start: u64,
    /// Another one for each image.
    pub(crate) token: u64,
}

impl Image {
    /// Makes one of this process's executable.
    ///
    /// # Errors
    /// The CPU, the executable or the system does not allow it.
    pub fn make() -> Result<Self, ImageError> {
        // One at a time is mapped at its address.
        static ONE: Mutex<()> = Mutex::new(());
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        Self::possible()?;
        let executable = Executable::own()?;
        if executable.end > CONTEXTS - BASE {
            return Err(ImageError::Executable("it is too large".to_owned()));
        }
        let own_start = own_start();
        let file = memory_file().map_err(failed("memory for the agent (memfd_create)"))?;
        ftruncate(&file, FILE_BYTES).map_err(|error| failed("memory for the agent (ftruncate)")(error.into()))?;
        let parts = parts(&executable);
        let mapped = Mapped::all(&file, &executable, &parts)?;
        mapped.fill(&executable, own_start)?;
        mapped.prepare(&executable.tls, own_start);
        drop(mapped);
        let slots = map(None, file.as_fd(), &shared_part()).map_err(failed("memory for bursts (mmap)"))?;
        // SAFETY: the part is at least as long as what is shared, and stays mapped until the value is dropped.
        let slots = unsafe { Slots::new(slots.cast::<Shared>()) };
        let token = u64::from(std::process::id()) << 40 ^ system::monotonic_time();
        Ok(Self { file, parts, slots, own_start, token })
    }

    /// Whether the CPU and the kernel allow agents, and this executable.
    ///
    /// # Errors
    /// One of them does not.
    pub fn possible() -> Result<(), ImageError> {
        if cfg!(target_feature = "crt-static") {
            return Err(ImageError::Static);
        }
        // SAFETY: looks up a number.
        let has_segment_bases = unsafe { libc::getauxval(libc::AT_HWCAP2) } & 2 != 0;
        if has_segment_bases { Ok(()) } else { Err(ImageError::NoSegmentBases) }
    }

    /// Whether bursts go on after system calls here.
    pub fn follows_system_calls() -> bool {
        system::can_dispatch()
    }

    /// The parts to be mapped, those of the executable first.
    pub(crate) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The action that installs the handler.
    pub(crate) fn action(&self) -> Action {
        let inside = |function: *const ()| self.inside(function as u64);
        Action::of_agent(inside(entry::handler as *const ()), inside(entry::restorer as *const ()), libc::SA_RESTART)
    }

    /// Where, in a program, the kernel is to write the action that it had for the signal.
    pub(crate) fn place_of_programs_action(&self) -> u64 {
        self.inside(&raw const entry::PROGRAMS_HANDLER as u64)
    }

    /// The agent's handlers in a program whose clocks send this signal.
    pub(crate) fn handlers(&self, signal: c_int) -> Vec<Handler> {
        let clock = (signal, entry::handler as *const () as u64, &entry::PROGRAMS_HANDLER, Kept::Always);
        let stays = Kept::If(self.inside(&raw const follow::INSTALLED as u64));
        let others = follow::handlers().map(|(signal, programs, own)| (signal, own.handler, programs, stays));
        let of_faults = faults::handlers().map(|(signal, own, programs)| (signal, own, programs, Kept::ForBursts));
        let all = [clock].into_iter().chain(others).chain(of_faults);
        all.map(|(signal, own, programs, kept)| {
            let (agents, programs) = (self.inside(own), self.inside(&raw const *programs as u64));
            Handler { signal, agents, programs, kept }
        })
        .collect()
    }

    /// Where something of this process is in a program.
    pub(crate) fn inside(&self, own: u64) -> u64 {
        own - self.own_start + BASE
    }
}

impl AsFd for Image {
    /// The file of which the parts are mapped.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn parts(executable: &Executable) -> Vec<Part> {
    let fixed = executable.fixed.iter().map(|segment| Part {
        address: BASE + segment.address,
        bytes: segment.bytes,
        offset: segment.offset,
        source: Source::Executable,
        protection: if segment.is_code { Protection::Execute } else { Protection::Read },
    });
    let data = BASE + executable.data;
    let of_memory = [(data, STUBS, Protection::Write), (STUBS, SLOTS, Protection::WriteAndExecute)];
    let of_memory = of_memory.map(|(start, end, protection)| memory_part(start, end - start, protection));
    fixed.chain(of_memory).chain([shared_part()]).collect()
}

fn memory_part(address: u64, bytes: u64, protection: Protection) -> Part {
    Part { address, bytes, offset: address - BASE, source: Source::Memory, protection }
}

fn shared_part() -> Part {
    memory_part(SLOTS, (size_of::<Shared>() as u64).next_multiple_of(4096), Protection::Share)
}

/// Where this process has its executable.
fn own_start() -> u64 {
    extern "C" fn first(info: *mut libc::dl_phdr_info, _: usize, start: *mut libc::c_void) -> c_int {
        // SAFETY: the C library hands over one structure, and what `dl_iterate_phdr` was given.
        unsafe { *start.cast::<u64>() = (*info).dlpi_addr };
        1
    }
    let mut start = 0_u64;
    // SAFETY: the callback takes a pointer to a `u64`, which lives on meanwhile. The first object is the executable.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut start).cast()) };
    start
}

/// Maps a part where it belongs, or anywhere, for this process to write or execute it.
fn map(at: Option<u64>, file: BorrowedFd<'_>, part: &Part) -> io::Result<NonNull<u8>> {
    let (address, fixed) = at.map_or((ptr::null_mut(), 0), |at| (at as *mut _, libc::MAP_FIXED_NOREPLACE));
    let (protection, flags) = match part.source {
        Source::Executable => part.mmap_flags(),
        Source::Memory if part.protection == Protection::WriteAndExecute => (part.mmap_flags().0, libc::MAP_SHARED),
        Source::Memory => (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED),
    };
    let flags = flags | libc::MAP_NORESERVE | fixed;
    // SAFETY: a new mapping where there is none changes no memory that is in use.
    let start = unsafe {
        libc::mmap(address, part.bytes as usize, protection, flags, file.as_raw_fd(), part.offset as libc::off_t)
    };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(start.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}

/// Has the kernel find pages for memory that is to be written to, all at once. Where it cannot (before Linux 5.14) each comes when it is
/// touched.
fn populate(start: u64, bytes: usize) {
    // SAFETY: memory of the image that is mapped; what is in it stays as it is.
    let _ = unsafe { madvise(start as *mut _, bytes, Advice::LinuxPopulateWrite) };
}

/// All parts, mapped in this process where programs will have them.
struct Mapped {
    parts: Vec<Part>,
}

impl Mapped {
    fn all(file: &OwnedFd, executable: &Executable, parts: &[Part]) -> Result<Self, ImageError> {
        // Unmaps what was mapped if that does not work. Another recorder may have put its own agent there.
        let mut mapped = Self { parts: Vec::new() };
        for part in parts {
            let file = if part.source == Source::Executable { executable.file.as_fd() } else { file.as_fd() };
            let start = map(Some(part.address), file, part).map_err(failed("mapping the agent's image (mmap)"))?;
            mapped.parts.push(Part { address: start.as_ptr() as u64, ..*part });
            // A kernel before 4.17 takes the address for a hint.
            if start.as_ptr() as u64 != part.address {
                return Err(failed("mapping the agent's image (mmap)")(io::ErrorKind::AlreadyExists.into()));
            }
        }
        Ok(mapped)
    }

    /// Writes the executable's data, with all addresses as they will be.
    fn fill(&self, executable: &Executable, own_start: u64) -> Result<(), ImageError> {
        let (start, bytes) = (BASE + executable.data, (executable.end - executable.data) as usize);
        populate(start, bytes);
        // SAFETY: new memory of this length that nothing else refers to.
        let memory = unsafe { std::slice::from_raw_parts_mut(start as *mut u8, bytes) };
        executable.load(memory)?;
        let replacements = imports::replacements();
        executable.relocate(|at, value| {
            let value = match value {
                Value::Own(address) => BASE.wrapping_add(address),
                Value::Import(name) => {
                    let replaced = replacements.iter().find(|(replaced, _)| replaced.as_bytes() == name);
                    replaced.map_or_else(imports::refused, |(_, function)| *function) - own_start + BASE
                }
            };
            let at = at.checked_sub(executable.data).and_then(|at| usize::try_from(at).ok());
            let word = at.and_then(|at| memory.get_mut(at..at.checked_add(8)?));
            let word = word.ok_or_else(|| ImageError::Executable("a relocation is not in its data".to_owned()))?;
            word.copy_from_slice(&value.to_ne_bytes());
            Ok(())
        })
    }

    /// Makes the contexts, and calls the image's own `prepare` in the first of them.
    fn prepare(&self, tls: &Tls, own_start: u64) {
        populate(tcb(0) + HEAP, PREPARED);
        for context in 0..CONTEXT_COUNT {
            let at = tcb(context);
            let variables = (at - tls.bytes) as *mut u8;
            // SAFETY: memory of the image, which is mapped and zero there; thread-local variables have 64 KiB below the control block.
            unsafe {
                ptr::copy_nonoverlapping(tls.initial.as_ptr(), variables, tls.initial.len());
                let block = at as *mut Tcb;
                (*block).this = at;
                (*block).index = context;
                (&raw mut (*block).heap).write(Heap::of(at));
            }
        }
        let inside = |own: u64| own - own_start + BASE;
        let enter = inside(entry::enter as *const () as u64);
        let prepare = inside(burst::prepare as *const () as u64);
        // SAFETY: both are functions of the image, which is complete; no signal comes while fs points into it.
        unsafe {
            let enter: unsafe extern "C" fn(*mut Tcb, extern "C" fn()) = std::mem::transmute(enter);
            let prepare: extern "C" fn() = std::mem::transmute(prepare);
            let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigfillset(&raw mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
            enter(tcb(0) as *mut Tcb, prepare);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut());
        }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        for part in &self.parts {
            // SAFETY: what `all` has mapped; nothing refers to it any more.
            unsafe { libc::munmap(part.address as *mut _, part.bytes as usize) };
        }
    }
}
