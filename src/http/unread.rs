//! Closes the connection of a request that is answered before its body has been read to the end.
//!
//! Such a connection cannot serve another request, and actix closes it, with one exception: if the body is chunked and
//! nobody holds it any more, actix reads on to its end, which the client may never send. So the answer holds the body while
//! it is being sent. To actix, the body is then still in use, and it closes the connection as usual.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use actix_web::HttpMessage;
use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::error::PayloadError;
use actix_web::middleware::Next;
use actix_web::web::Bytes;
use futures_util::{Stream, StreamExt};

/// Makes each answer hold the chunked body of its request, so that actix closes the connection if the body is unread.
pub async fn close_after_answer(
    mut request: ServiceRequest,
    next: Next<BoxBody>,
) -> Result<ServiceResponse, actix_web::Error> {
    if !request.chunked().unwrap_or(false) {
        return next.call(request).await;
    }
    let held = Held(Rc::new(RefCell::new(request.take_payload())));
    request.set_payload(Payload::Stream { payload: Box::pin(held.clone()) });
    let answer = next.call(request).await?;
    Ok(answer.map_body(|_, body| BoxBody::new(Holding { body, _request_body: held })))
}

/// A shared handle to a request's body; the reader has one, and the answer has another.
#[derive(Clone)]
struct Held(Rc<RefCell<Payload>>);

impl Stream for Held {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.borrow_mut().poll_next_unpin(context)
    }
}

/// The body of an answer that holds the body of its request.
struct Holding {
    body: BoxBody,
    _request_body: Held,
}

impl MessageBody for Holding {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Pin::new(&mut self.body).poll_next(context)
    }
}
