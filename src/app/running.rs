//! Runs the server, the sweeper and the sender of webhooks until a signal stops them.

use std::io;
use std::net::TcpListener;
use std::pin::pin;
use std::sync::Arc;

use actix_web::dev::ServerHandle;
use actix_web::rt::signal::unix::{Signal, SignalKind, signal};
use actix_web::rt::task::JoinHandle;
use actix_web::rt::{self, System};
use futures_util::future::{Either, select};

use super::{Service, sweeper, workers};

/// Serves until SIGINT or SIGTERM, and then finishes the running requests.
///
/// `sends` says whether this process also sends webhooks. `greet` is called when the server accepts requests.
///
/// # Errors
/// The listener cannot be used, or the table of routes breaks a rule.
pub fn serve(
    service: Service,
    listener: TcpListener,
    workers: usize,
    sends: bool,
    greet: impl FnOnce(),
) -> io::Result<()> {
    System::new().block_on(async {
        let (terminated, interrupted) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let http = super::serve(service.clone(), super::routes, listener, workers)?;
        let second_signal = pin!(second_signal(http.handle(), terminated, interrupted));
        let end_in_order = pin!(async {
            let ended = http.await;
            service.state.engine.database.close().await;
            ended
        });
        let mut background = vec![rt::spawn(sweeper::run(Arc::clone(&service.state)))];
        if sends {
            background.push(rt::spawn(workers::send(service.clone())));
        }
        greet();
        let ended = select(end_in_order, second_signal).await;
        background.iter().for_each(JoinHandle::abort);
        match ended {
            Either::Left((ended, _)) => ended,
            // Requests that still run are cut off, and PostgreSQL rolls them back.
            Either::Right(((), _)) => Ok(()),
        }
    })
}

/// Sends webhooks and sweeps until SIGINT or SIGTERM, without serving requests.
pub fn work(service: Service) -> io::Result<()> {
    System::new().block_on(async {
        let sweeper = rt::spawn(sweeper::run(Arc::clone(&service.state)));
        let sender = rt::spawn(workers::send(service.clone()));
        log::info!("the worker runs");
        let (mut terminated, mut interrupted) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        select(pin!(terminated.recv()), pin!(interrupted.recv())).await;
        sweeper.abort();
        sender.abort();
        service.state.engine.database.close().await;
        Ok(())
    })
}

/// Stops the server at the first SIGTERM or SIGINT, so that it finishes the running requests, and returns at the second.
async fn second_signal(server: ServerHandle, mut terminated: Signal, mut interrupted: Signal) {
    select(pin!(terminated.recv()), pin!(interrupted.recv())).await;
    // The call itself sends the command. The returned future would wait for the end of the server, which `serve` does.
    drop(server.stop(true));
    select(pin!(terminated.recv()), pin!(interrupted.recv())).await;
}
