//! Which functions are active along a burst or stack: a shadow stack, and what it tells those who follow it.
//!
//! A call pushes a frame, a return takes off the frame that it belongs to, and wherever else control goes to another function (a tail call,
//! a stub of the procedure linkage table, a cold part of the function), that function takes the frame over:
//!
//! ```text
//! main calls f       [main] [f]
//! f jumps to g       [main] [g, f waits]     g returns to main, or goes on in the middle of f, of which it is a part
//! g returns          [main]
//! main returns to x  [x]                     x was there all the time: what was known to be called is called from x
//! ```
//!
//! An exception that is caught and `longjmp` go on in the middle of a function that is active, and end what is above it.

use std::ops::Range;

use crate::address::Avma;
use crate::walks::{FunctionKey, Target, Transfer};

/// What follows the frames of a [`ShadowStack`].
pub trait Frames {
    /// All frames are cut off, and the next is of a function of which nothing is known.
    fn begin(&mut self, function: FunctionKey);
    /// A frame is pushed. `at_entry`: the function begins, as far as is known.
    fn enter(&mut self, function: FunctionKey, at_entry: bool);
    /// Another function takes the uppermost frame over. `from_waits`: what had it may [go on](Frames::resume); what waited before has ended.
    fn replace(&mut self, function: FunctionKey, at_entry: bool, from_waits: bool);
    /// What waited in the uppermost frame goes on there, and what took it over has ended.
    fn resume(&mut self, function: FunctionKey);
    /// The uppermost frame ends, and what waits in it.
    fn leave(&mut self);
    /// All frames end, and the function goes on that called the first one all the time.
    fn reveal(&mut self, function: FunctionKey);
}

/// Frames that are searched for what a return belongs to: a stack that is out of step costs no more.
const SEARCHED: usize = 64;

/// The frames that are active, the current one last. Made once, and begun anew for each burst or stack.
#[derive(Debug, Default)]
pub struct ShadowStack {
    frames: Vec<Frame>,
    /// The frame in which the kernel was entered.
    kernel: Option<usize>,
    /// How often the walk could not go on from what it knew.
    lost: u64,
}

#[derive(Clone, Debug)]
struct Frame {
    function: FunctionKey,
    /// It jumped to the current one, which may be a part of it.
    waits: Option<FunctionKey>,
    entered: Entered,
}

/// How a frame came to be.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Entered {
    /// Before the walk began.
    Before,
    Call(Range<Avma>),
    Kernel,
    /// The kernel called a signal handler.
    Signal,
}

impl ShadowStack {
    /// Begins anew in a function of which nothing is known.
    pub fn begin(&mut self, function: FunctionKey, to: &mut impl Frames) {
        self.clear();
        self.frames.push(Frame { function, waits: None, entered: Entered::Before });
        to.begin(function);
    }

    /// Begins anew because nothing says how control came here.
    pub fn lose(&mut self, function: FunctionKey, to: &mut impl Frames) {
        self.lost += 1;
        self.begin(function, to);
    }

    /// Forgets all frames.
    pub fn clear(&mut self) {
        self.frames.clear();
        self.kernel = None;
    }

    /// How often the walk was lost since it was asked.
    pub fn take_lost(&mut self) -> u64 {
        std::mem::take(&mut self.lost)
    }

    /// The function that is current.
    pub fn current(&self) -> Option<FunctionKey> {
        self.frames.last().map(|top| top.function)
    }

    /// Control goes straight on in a function, which is most often the current one.
    pub fn run_into(&mut self, function: FunctionKey, to: &mut impl Frames) {
        if self.current() != Some(function) {
            self.replace(function, false, true, to);
        }
    }

    /// Control goes elsewhere.
    pub fn go(&mut self, transfer: &Transfer, target: Target, to: &mut impl Frames) {
        match transfer {
            Transfer::Jump { computed } => self.jump(*computed, target, to),
            // The address of the next instruction is what position-independent code of old calls for.
            Transfer::Call { returns_to } if returns_to.contains(&target.at) => {}
            Transfer::Call { returns_to } => {
                self.enter(target.function, Entered::Call(returns_to.clone()), target.is_entry, to);
            }
            Transfer::Return => self.go_back(target, to),
            Transfer::EnterKernel => {
                self.kernel = Some(self.frames.len());
                self.enter(target.function, Entered::Kernel, false, to);
            }
            Transfer::LeaveKernel => self.leave_kernel(target, to),
            // What goes into the middle of a function that is known is a return; at its start it can be a call or a tail call.
            Transfer::Unclear if self.called_from(target).is_some() => self.go_back(target, to),
            Transfer::Unclear if target.function.function().is_some() && !target.is_entry => self.go_back(target, to),
            Transfer::Unclear => self.lose(target.function, to),
        }
    }

    fn jump(&mut self, computed: bool, target: Target, to: &mut impl Frames) {
        if self.current() == Some(target.function) {
            return;
        }
        // `longjmp` goes on in the middle of a function that called it, in the end.
        if computed && !target.is_entry && self.unwind_to(target.function, to) {
            return;
        }
        // Parts of functions jump to each other by stated targets.
        self.replace(target.function, target.is_entry, !computed, to);
    }

    fn go_back(&mut self, target: Target, to: &mut impl Frames) {
        if let Some(keep) = self.called_from(target) {
            self.keep(keep, to);
            if self.current() != Some(target.function) {
                self.replace(target.function, false, false, to);
            }
            return;
        }
        // Code returns to where it was told to go: to functions, from a handler to what restores the registers.
        if target.is_entry || self.has_entered(&Entered::Signal) {
            self.replace(target.function, target.is_entry, false, to);
        } else if self.has_entered(&Entered::Before) {
            self.reveal(target.function, to);
        } else if !self.unwind_to(target.function, to) {
            self.lose(target.function, to); // Or else an exception is caught.
        }
    }

    /// How many frames are left when the nearest one returns that was called from right before there.
    fn called_from(&self, target: Target) -> Option<usize> {
        let belongs = |frame: &Frame| matches!(&frame.entered, Entered::Call(back) if back.contains(&target.at));
        let above = self.frames.iter().rev().take(SEARCHED).position(belongs)?;
        Some(self.frames.len() - 1 - above)
    }

    fn leave_kernel(&mut self, target: Target, to: &mut impl Frames) {
        let is_kernel = |at: &usize| matches!(self.frames.get(*at), Some(frame) if frame.entered == Entered::Kernel);
        let Some(entered) = self.kernel.take().filter(is_kernel) else { return self.reveal(target.function, to) };
        self.keep(entered, to);
        while self.current() != Some(target.function) && self.has_entered(&Entered::Signal) {
            self.keep(self.frames.len() - 1, to);
        }
        match self.current() == Some(target.function) {
            true => {}
            false if target.is_entry => self.enter(target.function, Entered::Signal, true, to),
            false if self.unwind_to(target.function, to) => {}
            false => self.lose(target.function, to),
        }
    }

    /// Ends all frames above the nearest one of a function; says whether there is one.
    fn unwind_to(&mut self, function: FunctionKey, to: &mut impl Frames) -> bool {
        let is_of = |frame: &Frame| frame.function == function || frame.waits == Some(function);
        let Some(above) = self.frames.iter().rev().take(SEARCHED).position(is_of) else { return false };
        self.keep(self.frames.len() - above, to);
        if self.current() != Some(function) {
            self.replace(function, false, false, to);
        }
        true
    }

    /// The caller that was not known is this function, and the walk goes on there.
    fn reveal(&mut self, function: FunctionKey, to: &mut impl Frames) {
        self.frames.clear();
        self.frames.push(Frame { function, waits: None, entered: Entered::Before });
        to.reveal(function);
    }

    /// The function takes the current frame over, or goes on in it if it waits there.
    fn replace(&mut self, function: FunctionKey, at_entry: bool, from_waits: bool, to: &mut impl Frames) {
        let Some(top) = self.frames.last_mut() else { return };
        let before = std::mem::replace(&mut top.function, function);
        if top.waits == Some(function) && !at_entry {
            top.waits = None;
            to.resume(function);
        } else {
            top.waits = from_waits.then_some(before);
            to.replace(function, at_entry, from_waits);
        }
    }

    fn enter(&mut self, function: FunctionKey, entered: Entered, at_entry: bool, to: &mut impl Frames) {
        self.frames.push(Frame { function, waits: None, entered });
        to.enter(function, at_entry);
    }

    /// Ends all frames but so many.
    fn keep(&mut self, frames: usize, to: &mut impl Frames) {
        while self.frames.len() > frames {
            self.frames.pop();
            to.leave();
        }
    }

    /// Whether the current frame came to be that way.
    fn has_entered(&self, how: &Entered) -> bool {
        self.frames.last().is_some_and(|frame| frame.entered == *how)
    }
}
