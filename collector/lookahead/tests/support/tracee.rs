//! A process under `ptrace`: single steps, registers, memory. The only file of the tests with `unsafe`.

use std::ffi::c_void;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use addresses::Avma;
use lookahead::{Fault, Memory, Page, Registers, VectorState};

const NT_X86_XSTATE: usize = 0x202;

/// What the process did after it was let go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    Stopped(i32),
    Gone,
}

pub struct Tracee {
    child: Child,
    pid: libc::pid_t,
    area: Vec<u8>,
}

impl Tracee {
    /// Starts `command`; it is stopped at its first instruction. Addresses are the same in every run.
    pub fn start(mut command: Command) -> std::io::Result<Self> {
        stay_on_this_cpu();
        // SAFETY: the calls are async-signal-safe and touch nothing of the parent.
        unsafe {
            command.pre_exec(|| {
                libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong);
                if libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) != 0 {
                    return Err(std::io::Error::last_os_error());
                }
                Ok(())
            });
        }
        let child = command.spawn()?;
        let pid = child.id() as libc::pid_t;
        let tracee = Self { child, pid, area: vec![0; 16384] };
        match tracee.wait() {
            Event::Stopped(libc::SIGTRAP) => Ok(tracee),
            other => Err(std::io::Error::other(format!("did not stop at its start: {other:?}"))),
        }
    }

    pub fn wait(&self) -> Event {
        let mut status = 0;
        let got = loop {
            // SAFETY: waits for our own child, into a local variable.
            let got = unsafe { libc::waitpid(self.pid, &mut status, libc::__WALL) };
            // A fuzzer's clock sends SIGALRM.
            if got != -1 || std::io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
                break got;
            }
        };
        if got == self.pid && libc::WIFSTOPPED(status) { Event::Stopped(libc::WSTOPSIG(status)) } else { Event::Gone }
    }

    fn go(&self, request: libc::c_uint, signal: i32) -> Event {
        // SAFETY: a request on our own stopped child that passes no pointers.
        if unsafe { libc::ptrace(request, self.pid, 0, signal as usize) } != 0 {
            return Event::Gone;
        }
        self.wait()
    }

    /// Executes one instruction, or one repetition of a string instruction.
    pub fn step(&self, signal: i32) -> Event {
        self.go(libc::PTRACE_SINGLESTEP, signal)
    }

    /// Lets it run for a while. False if it has ended.
    pub fn run_for(&self, duration: std::time::Duration) -> bool {
        // SAFETY: requests on our own child that pass no pointers.
        unsafe {
            if libc::ptrace(libc::PTRACE_CONT, self.pid, 0, 0) != 0 {
                return false;
            }
            std::thread::sleep(duration);
            libc::kill(self.pid, libc::SIGSTOP);
        }
        loop {
            match self.wait() {
                Event::Gone => return false,
                Event::Stopped(libc::SIGSTOP) => return true,
                Event::Stopped(signal) => {
                    // SAFETY: as above.
                    if unsafe { libc::ptrace(libc::PTRACE_CONT, self.pid, 0, signal as usize) } != 0 {
                        return false;
                    }
                }
            }
        }
    }

    pub fn registers(&mut self) -> Registers {
        let regs = self.user_regs();
        let mut vector = libc::iovec { iov_base: self.area.as_mut_ptr().cast::<c_void>(), iov_len: self.area.len() };
        // SAFETY: the kernel writes at most `iov_len` bytes to the vector's own memory.
        let done = unsafe { libc::ptrace(libc::PTRACE_GETREGSET, self.pid, NT_X86_XSTATE, &mut vector) };
        assert_eq!(done, 0, "PTRACE_GETREGSET NT_X86_XSTATE");
        let length = vector.iov_len;
        Registers {
            general: [
                regs.rax, regs.rcx, regs.rdx, regs.rbx, regs.rsp, regs.rbp, regs.rsi, regs.rdi, regs.r8, regs.r9,
                regs.r10, regs.r11, regs.r12, regs.r13, regs.r14, regs.r15,
            ],
            rip: regs.rip,
            rflags: regs.eflags,
            fs_base: regs.fs_base,
            gs_base: regs.gs_base,
            shadow_stack: false,
            vector: VectorState::from_xsave(&self.area[..length]).expect("an XSAVE area"),
        }
    }

    /// The line of `/proc/PID/maps` that holds `address`.
    pub fn mapping(&self, address: u64) -> String {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", self.pid)).unwrap_or_default();
        let holds = |line: &&str| {
            let ends = line.split_whitespace().next().and_then(|range| range.split_once('-'));
            ends.and_then(|(a, b)| Some((u64::from_str_radix(a, 16).ok()?, u64::from_str_radix(b, 16).ok()?)))
                .is_some_and(|(start, end)| (start..end).contains(&address))
        };
        maps.lines().find(holds).unwrap_or("nowhere").to_string()
    }

    /// The instruction pointer alone, which is cheaper.
    pub fn registers_rip(&self) -> u64 {
        self.user_regs().rip
    }

    fn user_regs(&self) -> libc::user_regs_struct {
        // SAFETY: the struct is plain integers, and the kernel fills exactly one of it.
        unsafe {
            let mut regs: libc::user_regs_struct = std::mem::zeroed();
            assert_eq!(libc::ptrace(libc::PTRACE_GETREGS, self.pid, 0, &mut regs), 0, "PTRACE_GETREGS");
            regs
        }
    }

    #[allow(dead_code)] // used by one of the programs that include this file
    pub fn set_registers(&mut self, registers: &Registers) {
        let mut regs = self.user_regs();
        [
            regs.rax, regs.rcx, regs.rdx, regs.rbx, regs.rsp, regs.rbp, regs.rsi, regs.rdi, regs.r8, regs.r9, regs.r10,
            regs.r11, regs.r12, regs.r13, regs.r14, regs.r15,
        ] = registers.general;
        regs.rip = registers.rip;
        regs.eflags = registers.rflags;
        regs.orig_rax = u64::MAX; // no system call to restart
        let mut vector = libc::iovec { iov_base: self.area.as_mut_ptr().cast::<c_void>(), iov_len: self.area.len() };
        // SAFETY: the kernel reads the struct, writes at most `iov_len` bytes to our vector, then reads as many back.
        unsafe {
            assert_eq!(libc::ptrace(libc::PTRACE_SETREGS, self.pid, 0, &regs), 0, "PTRACE_SETREGS");
            assert_eq!(libc::ptrace(libc::PTRACE_GETREGSET, self.pid, NT_X86_XSTATE, &mut vector), 0);
            registers.vector.to_xsave(&mut self.area[..vector.iov_len]);
            vector.iov_base = self.area.as_mut_ptr().cast::<c_void>();
            assert_eq!(libc::ptrace(libc::PTRACE_SETREGSET, self.pid, NT_X86_XSTATE, &vector), 0, "PTRACE_SETREGSET");
        }
    }

    /// Makes the process map `length` bytes of memory at `address`, for everything.
    pub fn map(&mut self, address: u64, length: u64) {
        let before = self.registers();
        let mut code = [0; 2];
        assert!(self.read(before.rip, &mut code), "the code it is at");
        self.write(before.rip, &[0x0f, 0x05]);
        let mut call = before.clone();
        let everything = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        call.general[0] = libc::SYS_mmap as u64;
        (call.general[7], call.general[6], call.general[2]) = (address, length, everything as u64);
        (call.general[10], call.general[8], call.general[9]) = (flags as u64, u64::MAX, 0);
        self.set_registers(&call);
        assert_eq!(self.step(0), Event::Stopped(libc::SIGTRAP));
        assert_eq!(self.registers().general[0], address, "mmap");
        self.write(before.rip, &code);
        self.set_registers(&before);
    }

    pub fn read(&self, address: u64, bytes: &mut [u8]) -> bool {
        let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast::<c_void>(), iov_len: bytes.len() };
        let remote = libc::iovec { iov_base: address as *mut c_void, iov_len: bytes.len() };
        // SAFETY: the kernel writes at most `iov_len` bytes to `bytes`; the remote address is the other process's affair.
        unsafe { libc::process_vm_readv(self.pid, &local, 1, &remote, 1, 0) == bytes.len() as isize }
    }

    #[allow(dead_code)]
    pub fn write(&self, address: u64, bytes: &[u8]) {
        use std::os::unix::fs::FileExt;
        let memory =
            std::fs::OpenOptions::new().write(true).open(format!("/proc/{}/mem", self.pid)).expect("its memory");
        memory.write_all_at(bytes, address).expect("writable memory");
    }
}

/// Clears the vector and mask registers, and the upper parts of them, that this CPU does not have: a state for both it and the interpreter.
pub fn clear_what_this_cpu_lacks(vector: &mut VectorState) {
    let mut area = [0; 16384];
    vector.to_xsave(&mut area);
    let held = VectorState::from_xsave(&area).expect("an XSAVE area");
    (vector.zmm, vector.mask) = (held.zmm, held.mask);
}

/// Keeps the calling thread, and the processes it starts from now on, on the CPU it is on: the kernel writes the CPU's number into
/// the `rseq` area of a thread, and taking turns on one CPU is much faster than waking each other across two.
fn stay_on_this_cpu() {
    // SAFETY: the set is plain data, and the kernel only reads it.
    unsafe {
        let mut cpus: libc::cpu_set_t = std::mem::zeroed();
        if let Ok(cpu) = usize::try_from(libc::sched_getcpu()) {
            libc::CPU_SET(cpu, &mut cpus);
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &cpus);
        }
    }
}

impl Drop for Tracee {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The process's memory as the interpreter sees it.
pub struct Remote<'t>(pub &'t Tracee);

impl Memory for Remote<'_> {
    fn read_page(&mut self, address: Avma, page: &mut Page) -> Result<(), Fault> {
        if self.0.read(address.0, page) { Ok(()) } else { Err(Fault) }
    }
}
