//! Counts and times of requests, for Prometheus.

use std::time::Duration;

use actix_web::http::Method;
use prometheus::{
    Encoder, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, Registry, TextEncoder,
};

use crate::idempotency::Outcome;

/// The metrics of one server, in a registry of their own, so that tests do not share them.
pub struct Metrics {
    registry: Registry,
    requests: IntCounterVec,
    seconds: HistogramVec,
    outcomes: [IntCounter; Outcome::ALL.len()],
}

impl Default for Metrics {
    fn default() -> Self {
        let registry = Registry::new();
        let requests = IntCounterVec::new(
            Opts::new("oncepay_requests_total", "Answered requests."),
            &["method", "route", "status"],
        )
        .expect("the names are valid");
        let seconds = HistogramVec::new(
            HistogramOpts::new("oncepay_request_seconds", "Time from a request's head to its answer's.")
                .buckets(vec![
                    0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.125, 0.25, 0.5, 1.0, 2.0, 5.0,
                ]),
            &["method", "route"],
        )
        .expect("the names are valid");
        let by_outcome = IntCounterVec::new(
            Opts::new("oncepay_idempotency_total", "Requests that write, by what became of them."),
            &["outcome"],
        )
        .expect("the names are valid");
        let outcomes = Outcome::ALL.map(|outcome| by_outcome.with_label_values(&[outcome.as_str()]));
        for collector in [
            Box::new(requests.clone()) as Box<dyn prometheus::core::Collector>,
            Box::new(seconds.clone()),
            Box::new(by_outcome),
        ] {
            registry.register(collector).expect("each is registered once");
        }
        Self { registry, requests, seconds, outcomes }
    }
}

impl Metrics {
    pub fn request(&self, method: &str, route: &str, status: u16, latency: Duration) {
        self.requests.with_label_values(&[method, route, &status.to_string()]).inc();
        self.seconds.with_label_values(&[method, route]).observe(latency.as_secs_f64());
    }

    pub fn outcome(&self, outcome: Outcome) {
        let index = Outcome::ALL.iter().position(|other| *other == outcome).expect("all are in the list");
        self.outcomes[index].inc();
    }

    /// All metrics in Prometheus's text format.
    pub fn text(&self) -> String {
        let mut text = Vec::new();
        TextEncoder::new().encode(&self.registry.gather(), &mut text).expect("metrics are text");
        String::from_utf8(text).expect("metrics are text")
    }
}

/// A method as a label; all other methods share one label, so that invented methods cannot fill the memory.
pub fn known_method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::OPTIONS => "OPTIONS",
        _ => "OTHER",
    }
}
