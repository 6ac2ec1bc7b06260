//! What a worker knows of the endpoints it sends to, so that those which fail do not starve the others.
//!
//! Nothing correct depends on it: other workers see for themselves.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::types::ids::WebhookEndpointId;

/// How many deliveries may be on their way to one endpoint, and to all of them.
pub const PER_ENDPOINT: i64 = 8;
pub const ALTOGETHER: i64 = 256;

/// After how many failures in a row an endpoint is taken to be dead. From then on it gets one delivery at a time, and
/// a rest after each, until it takes one: else the many that wait for it would take the time of the others.
const DEAD_AFTER: u32 = 8;
const DEAD_RESTS: Duration = Duration::from_secs(1);

/// What a worker has seen of an endpoint. Nothing correct depends on it; other workers see for themselves.
#[derive(Debug, Default)]
pub struct Health {
    /// How many deliveries are on their way to it.
    pub sent: i64,
    /// How many have failed since the last that did not.
    pub failures: u32,
    rests_until: Option<Instant>,
}

impl Health {
    /// How many more deliveries it may get now, where each endpoint may have `share` on their way.
    pub fn slots(&self, share: i64, now: Instant) -> i64 {
        match self.rests_until {
            _ if self.failures < DEAD_AFTER => share - self.sent,
            Some(until) if now < until => 0,
            _ => 1 - self.sent,
        }
    }

    pub fn ended(&mut self, outcome: &DeliveryOutcome, now: Instant) {
        self.sent -= 1;
        self.failures = match outcome {
            DeliveryOutcome::Delivered => 0,
            DeliveryOutcome::Failed(_) => self.failures.saturating_add(1),
            DeliveryOutcome::Unrecorded => self.failures,
        };
        self.rests_until = (self.failures >= DEAD_AFTER).then(|| now + DEAD_RESTS);
    }
}

/// How a delivery ended.
pub enum DeliveryOutcome {
    Delivered,
    Failed(String),
    /// It was sent, and what became of it could not be recorded, which is no fault of the endpoint's.
    Unrecorded,
}

/// The health of all endpoints of which there is something to know.
pub type HealthOfAll = HashMap<WebhookEndpointId, Health>;

/// Notes how a delivery ended, and logs when an endpoint begins to fail and when it takes deliveries again; what became
/// of each is in its attempts. An endpoint of which there is nothing to know is forgotten.
pub fn note(healths: &mut HealthOfAll, endpoint: WebhookEndpointId, outcome: DeliveryOutcome) {
    let Some(health) = healths.get_mut(&endpoint) else { return };
    match &outcome {
        DeliveryOutcome::Failed(why) if health.failures == 0 => {
            log::warn!("webhooks to {endpoint} fail, and are sent again by the schedule: {why}");
        }
        DeliveryOutcome::Delivered if health.failures > 0 => {
            log::info!("webhooks to {endpoint} are delivered again");
        }
        _ => {}
    }
    health.ended(&outcome, Instant::now());
    if health.sent == 0 && health.failures == 0 {
        healths.remove(&endpoint);
    }
}

/// How many more deliveries each endpoint may get now: of those that do well, and of those that fail. Those have half of
/// all places between them, so that however many there are, the others find one.
pub struct Slots {
    pub well: Vec<(WebhookEndpointId, i64)>,
    pub failing: Vec<(WebhookEndpointId, i64)>,
    /// How many more deliveries all that fail may get.
    pub for_failing: i64,
}

impl Slots {
    pub fn new(healths: &HealthOfAll, share: i64, now: Instant) -> Self {
        let mut slots = Self { well: Vec::new(), failing: Vec::new(), for_failing: ALTOGETHER / 2 };
        for (endpoint, health) in healths {
            let own = (*endpoint, health.slots(share, now));
            if health.failures == 0 {
                slots.well.push(own);
            } else {
                slots.well.push((*endpoint, 0));
                slots.failing.push(own);
                slots.for_failing -= health.sent;
            }
        }
        slots
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_that_fails_again_and_again_gets_one_delivery_at_a_time_and_a_rest_until_it_takes_one() {
        let now = Instant::now();
        let failed = || DeliveryOutcome::Failed(String::new());
        let mut health = Health::default();
        assert_eq!(health.slots(PER_ENDPOINT, now), PER_ENDPOINT);
        health.sent = 8;
        assert_eq!(health.slots(PER_ENDPOINT, now), 0);
        for left in 1..8 {
            health.ended(&failed(), now);
            assert_eq!(health.slots(PER_ENDPOINT, now), left);
        }
        health.ended(&failed(), now);
        assert_eq!(health.slots(PER_ENDPOINT, now), 0);
        assert_eq!(health.slots(PER_ENDPOINT, now + DEAD_RESTS), 1);
        health.sent = 1;
        assert_eq!(health.slots(PER_ENDPOINT, now + DEAD_RESTS), 0);
        health.ended(&DeliveryOutcome::Delivered, now);
        assert_eq!(health.slots(PER_ENDPOINT, now), PER_ENDPOINT);
    }

    #[test]
    fn those_that_fail_have_half_of_all_places_between_them_and_wait_for_the_others() {
        let now = Instant::now();
        let id = |number| WebhookEndpointId::from_uuid(uuid::Uuid::from_u128(number));
        let mut healths = HealthOfAll::new();
        healths.insert(id(1), Health::default());
        healths.insert(id(2), Health { sent: 5, failures: 1, rests_until: None });
        healths.insert(id(3), Health { sent: 0, failures: DEAD_AFTER, rests_until: Some(now) });
        let slots = Slots::new(&healths, PER_ENDPOINT, now);
        assert_eq!(slots.for_failing, ALTOGETHER / 2 - 5);
        let sorted = |mut slots: Vec<(WebhookEndpointId, i64)>| {
            slots.sort_by_key(|(id, _)| id.uuid());
            slots
        };
        assert_eq!(sorted(slots.well), [(id(1), PER_ENDPOINT), (id(2), 0), (id(3), 0)]);
        assert_eq!(sorted(slots.failing), [(id(2), PER_ENDPOINT - 5), (id(3), 1)]);
    }
}
