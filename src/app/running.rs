//! A server that runs until it is told to stop, with what runs beside it.

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

/// Serves until SIGINT or SIGTERM, then finishes what runs. `sends` says whether webhooks are sent here too; `greet` is
/// called when the server is there.
///
/// # Errors
/// The listener is no good, or the table of routes breaks a rule.
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
            // What still runs is cut off, and PostgreSQL rolls it back.
            Either::Right(((), _)) => Ok(()),
        }
    })
}

/// Sends webhooks and sweeps until SIGINT or SIGTERM.
///
/// # Errors
/// The system's, for signals.
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

/// Stops the server at SIGTERM, and at Ctrl-C just the same: what runs is finished. Ends when it is told again, by
/// somebody who cannot wait for that.
async fn second_signal(server: ServerHandle, mut terminated: Signal, mut interrupted: Signal) {
    select(pin!(terminated.recv()), pin!(interrupted.recv())).await;
    // The command is sent by the call; the server's end is awaited elsewhere.
    drop(server.stop(true));
    select(pin!(terminated.recv()), pin!(interrupted.recv())).await;
}
