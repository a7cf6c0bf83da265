//! A `loop` lane: its agent is started once and takes work itself.

use super::host::Host;
use crate::error::Result;
use crate::verbs::work::claim::Granted;

/// Lives with a resident agent.
pub fn live(_host: &mut Host<'_>, _granted: Granted) -> Result<()> {
    Ok(())
}
