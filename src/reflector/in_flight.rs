use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use actix::dev::RecipientRequest;
use actix::{MailboxError, Message, Recipient};

/// More places than this are given up when they are free.
const KEPT: usize = 16;

/// Messages that have been sent and are not answered yet. Places are used again: a new one for every message would cost
/// more than the message.
pub(super) struct InFlight<M: Message<Result = ()> + Send> {
    /// The first `taken` are.
    places: Vec<Place<M>>,
    taken: usize,
    result: Result<(), MailboxError>,
}

type Place<M> = Pin<Box<Option<RecipientRequest<M>>>>;

impl<M: Message<Result = ()> + Send> Default for InFlight<M> {
    fn default() -> Self {
        Self { places: Vec::new(), taken: 0, result: Ok(()) }
    }
}

impl<M: Message<Result = ()> + Send> InFlight<M> {
    /// Puts a message into a mailbox, behind all that were sent before.
    pub(super) fn send(&mut self, recipient: &Recipient<M>, message: M) {
        if self.taken == self.places.len() {
            self.places.push(Box::pin(None));
        }
        self.places[self.taken].set(Some(recipient.send(message)));
        self.taken += 1;
        // One that found the mailbox full is in it only when it has been polled.
        self.settle_one(self.taken - 1);
    }

    /// Forgets those that have been answered by now.
    pub(super) fn settle(&mut self) {
        (0..self.taken).rev().for_each(|at| self.settle_one(at));
    }

    /// Waits until all have been answered; whether each of them was.
    pub(super) async fn answered(&mut self) -> Result<(), MailboxError> {
        // The newest first: most often all others have been answered by then.
        while let Some(last) = self.taken.checked_sub(1) {
            if let Some(request) = self.places[last].as_mut().as_pin_mut() {
                let result = request.await;
                self.free(last, result);
            }
        }
        self.places.truncate(KEPT);
        mem::replace(&mut self.result, Ok(()))
    }

    fn settle_one(&mut self, at: usize) {
        let Some(request) = self.places[at].as_mut().as_pin_mut() else { return };
        // Nobody needs to be woken: it is looked at again.
        if let Poll::Ready(result) = request.poll(&mut Context::from_waker(Waker::noop())) {
            self.free(at, result);
        }
    }

    fn free(&mut self, at: usize, result: Result<(), MailboxError>) {
        self.places[at].set(None);
        self.taken -= 1;
        self.places.swap(at, self.taken);
        if result.is_err() {
            self.result = result;
        }
    }
}
