//! What an attempt has cost, where no sealed answer says so: the usage of an answer that was given as a document and
//! refused, or the last line of an agent's output.
//!
//! It is what an agent says of itself; nobody measures it.

use serde_json::Value;

use super::conclusion::{Conclusion, Facts, Found, find_answer};
use crate::domain::contract::Usage;
use crate::error::Result;
use crate::os::files;
use crate::verbs::Ctx;

/// How much of the output's end is looked through, in bytes.
const TAIL: u64 = 64 * 1024;

/// What is to be charged beside the usage of a stored or a sealed answer, which the attempt's end charges itself.
pub fn beside_answer(ctx: &Ctx, facts: &Facts<'_>, conclusion: &Conclusion) -> Result<Option<Usage>> {
    let (usage, is_charged) = match find_answer(ctx, facts)? {
        Found::Stored(answer) => (answer.usage, true),
        Found::Given(answer) => (answer.usage, matches!(conclusion, Conclusion::Seal { .. })),
        Found::Invalid(_) | Found::Nothing => (None, false),
    };
    Ok(match usage {
        Some(_) if is_charged => None,
        Some(usage) => Some(usage),
        None => in_output(&files::tail_text(&facts.folder.output(), TAIL).unwrap_or_default()),
    })
}

/// The report in the last line of output that is a JSON object: `total_cost_usd` and `usage`, as agents that stream
/// JSON end with it.
fn in_output(tail: &str) -> Option<Usage> {
    let objects = |line: &str| serde_json::from_str::<Value>(line.trim()).ok().filter(Value::is_object);
    let last = tail.lines().rev().find_map(objects)?;
    let cost_usd = last.get("total_cost_usd").and_then(Value::as_f64);
    let tokens = |name: &str| last.get("usage").and_then(|usage| usage.get(name)).and_then(Value::as_u64);
    let usage = Usage { input_tokens: tokens("input_tokens"), output_tokens: tokens("output_tokens"), cost_usd };
    (usage != Usage::default()).then_some(usage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_json_line_of_output_tells_what_was_spent() {
        let output = "{\"type\":\"assistant\"}\n{\"type\":\"result\",\"total_cost_usd\":0.25,\"usage\":{\"input_tokens\":7,\
                      \"output_tokens\":3}}\nbye\n";
        let usage = Usage { input_tokens: Some(7), output_tokens: Some(3), cost_usd: Some(0.25) };
        assert_eq!(in_output(output), Some(usage));
        assert_eq!(in_output("{\"total_cost_usd\": 1}\n{\"type\": \"other\"}\n"), None);
        assert_eq!(in_output("no json\n"), None);
    }
}
