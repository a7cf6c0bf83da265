//! Single values: from TOML to their type, or a fault that says what to write.

use toml::Spanned;
use toml::de::{DeArray, DeValue};

use super::super::keys::{self, Kind, Level, Templates};
use super::super::section::Value;
use super::super::words;
use super::{ID_HINT, ParamUse, Reader, a, bad_id};
use crate::domain::frozen::Reviews;
use crate::domain::{resource, scope, template, time};

type Item<'i> = Spanned<DeValue<'i>>;

impl Reader<'_> {
    /// A value that is no table of keys; none after a fault.
    pub(super) fn value(&mut self, kind: Kind, item: &Item<'_>, path: &str) -> Option<Value> {
        match kind {
            Kind::Text(templates) => self.text(item, path, templates).map(Value::Text),
            Kind::Word(words) => self.word(words, item, path).map(Value::Text),
            Kind::Id => self.id(item, path).map(Value::Text),
            Kind::Path => self.relative(item, path).map(Value::Text),
            Kind::Ids => self.each(kind, item, path, Reader::id).map(Value::Texts),
            Kind::Texts => self.each(kind, item, path, Reader::plain).map(Value::Texts),
            Kind::Words(words) => {
                self.each(kind, item, path, |reader, item, path| reader.word(words, item, path)).map(Value::Texts)
            }
            Kind::Globs => self.each(kind, item, path, Reader::glob).map(Value::Texts),
            Kind::Paths => self.each(kind, item, path, Reader::relative).map(Value::Texts),
            Kind::Folders => self.each(kind, item, path, Reader::folder).map(Value::Texts),
            Kind::EnvNames => self.each(kind, item, path, Reader::env_name).map(Value::Texts),
            Kind::Exits => self.each(kind, item, path, Reader::exit_code).map(Value::Exits),
            Kind::Duration => self.duration(kind, item, path).map(Value::Millis),
            Kind::DurationOrOff => match item.get_ref().as_str() {
                Some("off") => Some(Value::Off),
                _ => self.duration(kind, item, path).map(Value::Millis),
            },
            Kind::Count { min, max } => self.count(min, max, item, path).map(Value::Count),
            Kind::Flag => match item.get_ref().as_bool() {
                Some(flag) => Some(Value::Flag(flag)),
                None => self.mistyped(kind, item, path),
            },
            Kind::Money => self.money(item, path).map(Value::MicroUsd),
            Kind::Argv(templates) => self.argv(item, path, templates).map(Value::Argv),
            Kind::Commands(templates) => self.commands(item, path, templates).map(Value::Commands),
            Kind::Reviews => self.reviews(item, path).map(Value::Reviews),
            Kind::Table(_) | Kind::Named(_) | Kind::List(_) => self.mistyped(kind, item, path),
        }
    }

    fn mistyped<T>(&mut self, kind: Kind, item: &Item<'_>, path: &str) -> Option<T> {
        let name = path.rsplit('.').next().unwrap_or(path);
        let message = format!("`{name}` must be {}, not {}", kind.expects(), a(item.get_ref().type_str()));
        self.fault(item.span().start, path, message, format!("write `{name} = {}`", kind.example()));
        None
    }

    /// Reads every member, so that all faults of a list are found.
    fn each<T>(
        &mut self,
        kind: Kind,
        item: &Item<'_>,
        path: &str,
        mut read: impl FnMut(&mut Self, &Item<'_>, &str) -> Option<T>,
    ) -> Option<Vec<T>> {
        let DeValue::Array(items) = item.get_ref() else { return self.mistyped(kind, item, path) };
        let read: Vec<Option<T>> = items.iter().map(|item| read(self, item, path)).collect();
        read.into_iter().collect()
    }

    /// A string, where the key's own kind is one or a list of them.
    fn plain(&mut self, item: &Item<'_>, path: &str) -> Option<String> {
        if let Some(text) = item.get_ref().as_str() {
            return Some(text.to_owned());
        }
        let name = path.rsplit('.').next().unwrap_or(path);
        let message = format!("`{name}` takes strings, not {}", a(item.get_ref().type_str()));
        self.fault(item.span().start, path, message, "put it in quotes");
        None
    }

    fn text(&mut self, item: &Item<'_>, path: &str, templates: Templates) -> Option<String> {
        let text = self.plain(item, path)?;
        self.templates(&text, templates, item.span().start, path);
        // Nobody looks at such a string again, so the literal form ends here.
        Some(if templates == Templates::None { text.replace("$${", "${") } else { text })
    }

    fn word(&mut self, words: &'static [&'static str], item: &Item<'_>, path: &str) -> Option<String> {
        let text = self.plain(item, path)?;
        let text = text.as_str();
        if words.contains(&text) {
            return Some(text.to_owned());
        }
        let known = format!("one of: {}", words.join(", "));
        let hint = match (words, keys::nearest(text, words.iter().copied())) {
            ([only], _) => format!("write `{only}`"),
            (_, Some(nearest)) => format!("did you mean `{nearest}`? {known}"),
            (_, None) => known,
        };
        self.fault(item.span().start, path, format!("`{text}` is not known here"), hint);
        None
    }

    fn id(&mut self, item: &Item<'_>, path: &str) -> Option<String> {
        let text = self.plain(item, path)?;
        if keys::is_id(&text) {
            return Some(text);
        }
        self.fault(item.span().start, path, bad_id(&text), ID_HINT);
        None
    }

    fn glob(&mut self, item: &Item<'_>, path: &str) -> Option<String> {
        let text = self.untemplated(item, path)?;
        let only_narrows = path.ends_with("forbids") || path.ends_with("discard");
        match scope::check(&text, only_narrows) {
            Ok(()) => Some(text),
            Err(error) => {
                self.fault(item.span().start, path, error.to_string(), glob_hint(&text, &error));
                None
            }
        }
    }

    fn relative(&mut self, item: &Item<'_>, path: &str) -> Option<String> {
        let text = self.untemplated(item, path)?;
        let problem = if text.is_empty() {
            "an empty path"
        } else if text.starts_with('/') || text.starts_with('~') {
            "an absolute path"
        } else if text.split('/').any(|part| part == "..") {
            "a path that leads upward"
        } else {
            return Some(text);
        };
        self.fault(item.span().start, path, format!("`{text}` is {problem}"), "write it relative, without `..`");
        None
    }

    fn folder(&mut self, item: &Item<'_>, path: &str) -> Option<String> {
        let text = self.untemplated(item, path)?;
        match scope::write_path_problem(&text) {
            None => Some(text),
            Some(problem) => {
                let hint = "name a folder such as `~/.cargo/registry`, outside every repository";
                self.fault(item.span().start, path, format!("`{text}` {problem}"), hint);
                None
            }
        }
    }

    fn untemplated(&mut self, item: &Item<'_>, path: &str) -> Option<String> {
        let text = self.plain(item, path)?;
        self.templates(&text, Templates::None, item.span().start, path);
        Some(text)
    }

    fn env_name(&mut self, item: &Item<'_>, path: &str) -> Option<String> {
        let text = self.plain(item, path)?;
        let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let (message, hint) = if text.is_empty() || !plain || text.starts_with(|letter: char| letter.is_ascii_digit()) {
            (format!("`{text}` is no name of a variable"), "list names only; the values come from your environment")
        } else if text.starts_with("GIT_") || text.starts_with("STRIATUM_") {
            (format!("`{text}` never passes through"), "leave it out")
        } else {
            return Some(text);
        };
        self.fault(item.span().start, path, message, hint);
        None
    }

    fn exit_code(&mut self, item: &Item<'_>, path: &str) -> Option<i32> {
        match integer(item) {
            Some(code @ 1..=255) => i32::try_from(code).ok(),
            Some(code) => {
                self.fault(item.span().start, path, format!("{code} is no failing exit code"), "1 to 255");
                None
            }
            None => self.mistyped(Kind::Count { min: 1, max: 255 }, item, path),
        }
    }

    fn duration(&mut self, kind: Kind, item: &Item<'_>, path: &str) -> Option<u64> {
        let name = path.rsplit('.').next().unwrap_or(path);
        let units = "units are ms, s, m, h, d";
        if let Some(count) = integer(item) {
            let message = format!("`{name}` must be a duration with a unit");
            self.fault(item.span().start, path, message, format!("write `{name} = \"{count}s\"`; {units}"));
            return None;
        }
        let Some(text) = item.get_ref().as_str() else { return self.mistyped(kind, item, path) };
        match time::parse_duration(text) {
            Some(ms) if ms > 0 => Some(ms),
            Some(_) => {
                self.fault(item.span().start, path, format!("`{name}` must be longer than nothing"), units);
                None
            }
            None => {
                let hint = format!("write one number and one unit, such as {}; {units}", kind.example());
                self.fault(item.span().start, path, format!("`{text}` is no duration"), hint);
                None
            }
        }
    }

    fn count(&mut self, min: u32, max: u32, item: &Item<'_>, path: &str) -> Option<u32> {
        let name = path.rsplit('.').next().unwrap_or(path);
        match integer(item) {
            Some(count) => match u32::try_from(count).ok().filter(|count| (min..=max).contains(count)) {
                Some(count) => Some(count),
                None => {
                    let message = format!("`{name}` is {count}, and must be bounded");
                    self.fault(item.span().start, path, message, format!("a whole number from {min} to {max}"));
                    None
                }
            },
            None => self.mistyped(Kind::Count { min, max }, item, path),
        }
    }

    fn money(&mut self, item: &Item<'_>, path: &str) -> Option<u64> {
        let amount = match item.get_ref() {
            DeValue::Integer(_) => integer(item).and_then(|count| i32::try_from(count).ok()).map(f64::from),
            DeValue::Float(float) => float.as_str().parse::<f64>().ok(),
            _ => return self.mistyped(Kind::Money, item, path),
        };
        match amount.filter(|amount| (0.0..=1e9).contains(amount)) {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
            Some(amount) => Some((amount * 1e6).round() as u64),
            None => {
                self.fault(item.span().start, path, "no amount of dollars", "write a number such as `20` or `2.5`");
                None
            }
        }
    }

    fn argv(&mut self, item: &Item<'_>, path: &str, templates: Templates) -> Option<Vec<String>> {
        let kind = Kind::Argv(templates);
        let argv = match item.get_ref() {
            DeValue::String(text) => self.split(text, item.span().start, path)?,
            DeValue::Array(_) => self.each(kind, item, path, Reader::plain)?,
            _ => return self.mistyped(kind, item, path),
        };
        if argv.first().is_none_or(String::is_empty) {
            self.fault(item.span().start, path, "an empty command", format!("write {}", kind.example()));
            return None;
        }
        for word in &argv {
            self.templates(word, templates, item.span().start, path);
        }
        let literal = |word: String| if templates == Templates::None { word.replace("$${", "${") } else { word };
        Some(argv.into_iter().map(literal).collect())
    }

    fn commands(&mut self, item: &Item<'_>, path: &str, templates: Templates) -> Option<Vec<Vec<String>>> {
        match item.get_ref() {
            DeValue::String(_) => Some(vec![self.argv(item, path, templates)?]),
            DeValue::Array(items) => {
                self.refuse_flat_argv(items, path)?;
                self.each(Kind::Commands(templates), item, path, |reader, item, path| {
                    reader.argv(item, path, templates)
                })
            }
            _ => self.mistyped(Kind::Commands(templates), item, path),
        }
    }

    /// `["cargo", "test", "-q"]` where a list of commands is wanted would be three commands.
    fn refuse_flat_argv(&mut self, items: &DeArray<'_>, path: &str) -> Option<()> {
        let words: Vec<&str> = items.iter().map_while(|item| item.get_ref().as_str()).collect();
        let is_flat = words.len() == items.len() && words.iter().skip(1).any(|word| word.starts_with('-'));
        if !is_flat {
            return Some(());
        }
        let quoted: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
        let offset = items.first().map_or(0, |item| item.span().start);
        let hint = format!("for one command write [[{}]]", quoted.join(", "));
        self.fault(offset, path, "a list of commands, of which one begins with `-`", hint);
        None
    }

    fn split(&mut self, text: &str, offset: usize, path: &str) -> Option<Vec<String>> {
        match words::split(text) {
            Ok(words) => Some(words),
            Err(error) => {
                let hint = match error {
                    words::BadCommand::Assignment(_) => {
                        format!("write [\"env\", {}]", quoted_words(text))
                    }
                    words::BadCommand::Shell(_) => format!("write [\"sh\", \"-c\", {text:?}]"),
                    words::BadCommand::Empty | words::BadCommand::OpenQuote(_) => {
                        "write the words as a list".to_owned()
                    }
                };
                self.fault(offset, path, error.to_string(), hint);
                None
            }
        }
    }

    fn reviews(&mut self, item: &Item<'_>, path: &str) -> Option<Reviews> {
        match item.get_ref() {
            DeValue::String(_) => self.id(item, path).map(Reviews::Job),
            DeValue::Table(table) => {
                let at = self.lines.place(item.span().start);
                let range = self.section(Level::Reviews, table, at, path).string("range");
                let is_range = range.split_once("..").is_some_and(|(from, to)| !from.is_empty() && !to.is_empty());
                if !is_range && !range.is_empty() {
                    let message = format!("`{range}` is no range of commits");
                    self.fault(item.span().start, path, message, "write `reviews = { range = \"main..HEAD\" }`");
                }
                is_range.then_some(Reviews::Range(range))
            }
            _ => self.mistyped(Kind::Reviews, item, path),
        }
    }

    /// Refuses templates that mean nothing where they stand, and remembers the parameters.
    pub(super) fn templates(&mut self, text: &str, templates: Templates, offset: usize, path: &str) {
        for name in template::names(text) {
            if templates == Templates::None {
                let hint = "this string takes no templates; `$${` is a literal `${`";
                self.fault(offset, path, format!("`${{{name}}}` is not replaced here"), hint);
            } else if let Some(param) = name.strip_prefix("params.") {
                let at = self.lines.place(offset);
                self.param_uses.push(ParamUse { name: param.to_owned(), at, key: path.to_owned() });
            } else if !is_known(name, templates) {
                self.fault(offset, path, format!("unknown template `${{{name}}}`"), template_hint(name, templates));
            }
        }
    }
}

fn is_known(name: &str, templates: Templates) -> bool {
    match templates {
        Templates::None | Templates::Params => false,
        Templates::Prose => template::is_prose(name),
        Templates::Launch => template::LAUNCH_NAMES.contains(&name),
        Templates::Resource => resource::NAMES.contains(&name),
    }
}

fn template_hint(name: &str, templates: Templates) -> String {
    let known: &[&str] = match templates {
        Templates::None | Templates::Params => &["params.NAME"],
        Templates::Prose => &["params.NAME", "job", "inputs.JOB.NAME"],
        Templates::Launch => template::LAUNCH_NAMES,
        Templates::Resource => resource::NAMES,
    };
    match keys::nearest(name, known.iter().copied()) {
        Some(nearest) => format!("did you mean `${{{nearest}}}`? `$${{` is a literal `${{`"),
        None => format!("known here: {}; `$${{` is a literal `${{`", known.join(", ")),
    }
}

fn glob_hint(text: &str, error: &scope::BadGlob) -> String {
    match error {
        scope::BadGlob::Empty => "`**` means everything".to_owned(),
        scope::BadGlob::Absolute(_) | scope::BadGlob::Parent(_) => "write it relative to the work tree".to_owned(),
        scope::BadGlob::Crooked(_) if matches!(text, "." | "./") => "`**` means everything".to_owned(),
        scope::BadGlob::Crooked(_) => {
            let parts: Vec<&str> = text.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
            format!("write `{}`", parts.join("/"))
        }
        scope::BadGlob::Protected { .. } => {
            "a protected path is changed by a recorded escape only; leave it out".to_owned()
        }
        scope::BadGlob::Syntax { .. } => "`\\` takes a glob character literally".to_owned(),
    }
}

fn integer(item: &Item<'_>) -> Option<i64> {
    let number = item.get_ref().as_integer()?;
    i64::from_str_radix(number.as_str(), number.radix()).ok()
}

fn quoted_words(text: &str) -> String {
    text.split_whitespace().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(", ")
}
