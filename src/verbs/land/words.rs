//! What a landing's commit says.

use super::Subject;
use crate::domain::frozen::TreeKind;
use crate::domain::trailer;
use crate::error::Result;
use crate::store;
use crate::verbs::Ctx;

/// The land job's words, else those of the newest work that lands, else the workflow's title; then where it comes from.
pub fn message(ctx: &Ctx, subject: &Subject) -> Result<String> {
    let spec = &subject.job.spec;
    let run = &subject.run;
    let own = Some(spec.commit_message.trim()).filter(|text| !text.is_empty()).map(str::to_owned);
    let said = match own {
        Some(text) => Some(text),
        None => of_work(ctx, subject)?,
    };
    let title = || if run.spec.title.trim().is_empty() { run.name.clone() } else { run.spec.title.trim().to_owned() };
    let body = said.unwrap_or_else(title);
    Ok(if spec.trailers { trailer::below(&body, &[(trailer::RUN, run.name.clone())]) } else { format!("{body}\n") })
}

/// What the newest work that lands said of itself.
fn of_work(ctx: &Ctx, subject: &Subject) -> Result<Option<String>> {
    ctx.read(|read| {
        let mut newest: Option<(crate::domain::time::Timestamp, String)> = None;
        for id in store::job::upstream(read, subject.job.id)? {
            let job = store::job::get(read, id)?;
            if job.spec.tree != TreeKind::Own {
                continue;
            }
            let Some(attempt) = store::attempt::of_job(read, id, 1)?.into_iter().next() else { continue };
            let Some(answer) = attempt.answer else { continue };
            let said = [answer.commit_message, answer.summary].into_iter().flatten();
            let said = said.map(|text| text.trim().to_owned()).find(|text| !text.is_empty());
            if let Some(said) = said
                && newest.as_ref().is_none_or(|(at, _)| attempt.queued_at >= *at)
            {
                newest = Some((attempt.queued_at, said));
            }
        }
        Ok(newest.map(|(_, said)| said))
    })
}
