//! Where a user's own things lie, outside of any repository (the XDG base directories).
//!
//! It does not know what is in them.

use std::ffi::OsString;
use std::path::PathBuf;

/// The user's own places; `None` where neither the variable nor a home is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserPlaces {
    /// The user's configuration.
    pub config: Option<PathBuf>,
    /// The folder of what was trusted: never inside a repository, which could then trust itself.
    pub trust: Option<PathBuf>,
}

impl UserPlaces {
    /// The places that an environment names. A base that is not absolute is as good as unset, as the XDG
    /// specification has it.
    pub fn of(lookup: impl Fn(&str) -> Option<OsString>) -> Self {
        let absolute = |name: &str| lookup(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let base = |name: &str, below_home: &str| {
            let found = absolute(name).or_else(|| Some(absolute("HOME")?.join(below_home)));
            found.map(|base| base.join("striatum"))
        };
        UserPlaces {
            config: base("XDG_CONFIG_HOME", ".config").map(|folder| folder.join("config.toml")),
            trust: base("XDG_STATE_HOME", ".local/state").map(|folder| folder.join("trust")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> UserPlaces {
        UserPlaces::of(|name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value)))
    }

    #[test]
    fn the_variables_win_over_the_home() {
        let places = of(&[("HOME", "/home/u"), ("XDG_CONFIG_HOME", "/c")]);
        assert_eq!(places.config, Some("/c/striatum/config.toml".into()));
        assert_eq!(places.trust, Some("/home/u/.local/state/striatum/trust".into()));
    }

    #[test]
    fn relative_and_empty_bases_are_as_good_as_unset() {
        let places = of(&[("HOME", "/home/u"), ("XDG_CONFIG_HOME", "c"), ("XDG_STATE_HOME", "")]);
        assert_eq!(places, of(&[("HOME", "/home/u")]));
        assert_eq!(of(&[]), UserPlaces::default());
    }
}
