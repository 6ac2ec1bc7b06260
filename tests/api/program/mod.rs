//! The program: the commands, the settings, the log and the README do what a user reads about them.

mod command_line;
mod first_steps;
mod layers;
mod log_lines;
mod migrations;
mod papers;
mod private_postgres;
