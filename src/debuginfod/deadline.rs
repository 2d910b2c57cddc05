//! A deadline for all that a server sends, which is put off while enough comes.
//!
//! What a client reads at once may need many reads of the socket: a chunk's extension can go on for ever, and so can small
//! records of TLS. So each wait for bytes ends at the deadline, wherever it is made.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ureq::unversioned::transport::{Buffers, ConnectionDetails, Connector, NextTimeout, Transport};
use ureq::{Error, Timeout};

/// When what is awaited has to be there. Clones are the same deadline.
#[derive(Clone, Debug, Default)]
pub struct Deadline(Arc<Mutex<Option<Instant>>>);

impl Deadline {
    /// Sets it to this time from now.
    pub fn set(&self, time: Duration) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now().checked_add(time);
    }

    fn left(&self) -> Option<Duration> {
        let deadline = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }
}

/// After a connector, it makes the deadline hold for what that one connects.
impl<In: Transport> Connector<In> for Deadline {
    type Out = Limited<In>;

    fn connect(&self, _: &ConnectionDetails, chained: Option<In>) -> Result<Option<Self::Out>, Error> {
        Ok(chained.map(|transport| Limited { transport, deadline: self.clone() }))
    }
}

/// A connection that nothing is awaited from after the deadline.
#[derive(Debug)]
pub struct Limited<In> {
    transport: In,
    deadline: Deadline,
}

impl<In: Transport> Transport for Limited<In> {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.transport.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        self.transport.transmit_output(amount, timeout)
    }

    fn await_input(&mut self, mut timeout: NextTimeout) -> Result<bool, Error> {
        if let Some(left) = self.deadline.left() {
            if left.is_zero() {
                return Err(Error::Timeout(Timeout::PerRead));
            }
            if left < *timeout.after {
                timeout.after = left.into();
                timeout.reason = Timeout::PerRead;
            }
        }
        self.transport.await_input(timeout)
    }

    fn is_open(&mut self) -> bool {
        self.transport.is_open()
    }

    fn is_tls(&self) -> bool {
        self.transport.is_tls()
    }
}
