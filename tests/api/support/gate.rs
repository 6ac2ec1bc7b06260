//! A gate that holds a request in the middle until the test opens it.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use oncepay::idempotency::faults::{Faults, Point};

/// Holds the first request with an idempotency key at a point until it is opened.
pub struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    has_held: bool,
    is_waiting: bool,
    is_open: bool,
}

impl Gate {
    /// A closed gate, and the faults that bring requests to it.
    pub fn at(point: Point, key: &str) -> (Arc<Self>, Faults) {
        let gate = Arc::new(Self { state: Mutex::default(), changed: Condvar::new() });
        let (held, key) = (Arc::clone(&gate), key.to_owned());
        let faults = Faults::new(move |here, call| {
            if here == point && call.claim.as_ref().is_some_and(|claim| claim.key.as_str() == key) {
                held.hold();
            }
        });
        (gate, faults)
    }

    /// Lets the request go on.
    pub fn open(&self) {
        self.state.lock().unwrap().is_open = true;
        self.changed.notify_all();
    }

    /// Whether the request waits at the gate.
    pub fn is_waited_for(&self) -> bool {
        self.state.lock().unwrap().is_waiting
    }

    fn hold(&self) {
        let mut state = self.state.lock().unwrap();
        if std::mem::replace(&mut state.has_held, true) {
            return;
        }
        state.is_waiting = true;
        let closed = |state: &mut State| !state.is_open;
        let (mut state, waited) =
            self.changed.wait_timeout_while(state, Duration::from_secs(20), closed).unwrap();
        state.is_waiting = false;
        assert!(!waited.timed_out(), "nobody opened the gate");
    }
}
