//! Messages that own their bytes.

use super::{Communicator, Envelope, Operation};
use crate::error::{Error, Result};
use std::mem;

/// Message in progress, with the bytes that it is sent from or received into. They are not freed while the message-passing
/// library may access them: if the message is dropped before it is complete, never.
pub struct Message<'c> {
    communicator: &'c dyn Communicator,
    operation: Operation,
    /// `None` after the operation has completed or failed.
    bytes: Option<Vec<u8>>,
}

impl<'c> Message<'c> {
    /// Starts sending the bytes.
    pub fn send(communicator: &'c dyn Communicator, to: usize, tag: u32, bytes: Vec<u8>) -> Result<Self> {
        // SAFETY: the bytes are on the heap, and are freed only after the operation has completed.
        let started = unsafe { communicator.send(to, tag, bytes.as_ptr(), bytes.len() as u64) };
        Self::started(communicator, started, bytes)
    }

    /// Starts receiving a message into the bytes. A longer message is an error.
    pub fn receive(communicator: &'c dyn Communicator, from: usize, tag: u32, mut bytes: Vec<u8>) -> Result<Self> {
        // SAFETY: as above, and nothing else accesses the bytes meanwhile.
        let started = unsafe { communicator.receive(from, tag, bytes.as_mut_ptr(), bytes.len() as u64) };
        Self::started(communicator, started, bytes)
    }

    fn started(communicator: &'c dyn Communicator, started: Result<Operation>, bytes: Vec<u8>) -> Result<Self> {
        match started {
            Ok(operation) => Ok(Self { communicator, operation, bytes: Some(bytes) }),
            Err(error) => {
                // Parts of the message may be in progress.
                mem::forget(bytes);
                Err(error)
            }
        }
    }

    /// Returns the bytes and the envelope once the message is complete, and `None` while it is in progress.
    pub fn test(&mut self) -> Result<Option<(Vec<u8>, Envelope)>> {
        let Some(bytes) = self.bytes.take() else {
            return Err(Error::Communication { problem: "a message that has ended was tested again".to_owned() });
        };
        match self.communicator.test(self.operation) {
            Ok(Some(envelope)) => Ok(Some((bytes, envelope))),
            Ok(None) => {
                self.bytes = Some(bytes);
                Ok(None)
            }
            Err(error) => {
                mem::forget(bytes);
                Err(error)
            }
        }
    }
}

impl Drop for Message<'_> {
    fn drop(&mut self) {
        if let Some(bytes) = self.bytes.take() {
            mem::forget(bytes);
        }
    }
}
