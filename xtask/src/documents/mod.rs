//! Checks that the documents are true: every command that they show exists and has its flags, and
//! the tours print what the documents show.

mod commands;
mod decisions;
mod links;
mod tour;
mod workflows;

pub(crate) use self::{
    commands::{Parsers, check},
    decisions::check as check_decisions,
    links::check as check_links,
    tour::check as check_tours,
    workflows::check as check_workflows,
};
