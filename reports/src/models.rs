//! Which models there are: those that come with the program, those the user imported, and files.

use std::fmt;
use std::path::{Path, PathBuf};

use analyzer::Analysis;
use analyzer::recording::Sources;
use anyhow::{Context, bail};
use model::{Model, PublishedRule, Rule, Rules, SourcePair, embedded};

use crate::folders::data_folder;
use crate::lacks::without_samples;

/// The name of HBBP's rule.
pub const PUBLISHED: &str = "published";

/// Where a model is from that comes with the program.
const EMBEDDED: &str = "embedded";

/// A model and where it is from.
pub struct Found {
    /// The model that was found.
    pub model: Model,
    /// `embedded`, or its file.
    pub origin: String,
}

/// The rules for an analysis.
pub struct Chosen {
    /// What decides for every kind of sources.
    pub rules: Rules,
    /// The kind of sources that the user's choice is made for, if for one only.
    pub pair: Option<SourcePair>,
    /// What tells rules of one program apart: the models that are in files or were asked for, as JSON, or the name of HBBP's rule.
    pub made_of: Vec<String>,
}

/// A model that was asked for, which is for recordings of other sources.
#[derive(Debug)]
pub struct OtherSources {
    /// As it was asked for.
    pub name: String,
    /// The sources that it is for.
    pub made_for: SourcePair,
    /// Those of the recording; none where it has no pair.
    pub recorded: Option<SourcePair>,
}

impl std::error::Error for OtherSources {}

impl fmt::Display for OtherSources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OtherSources { name, made_for, recorded } = self;
        write!(f, "{name} is a model for {made_for} sources, and the recording ")?;
        match recorded {
            Some(pair) => write!(f, "has {pair} sources"),
            None => f.write_str("has no pair of sources to choose from"),
        }
    }
}

impl Chosen {
    /// The end of an analysis: one without samples says so; of others, a model that was asked for must be for their sources.
    ///
    /// # Errors
    /// It is for others.
    pub fn check_analysis(&self, asked: Option<&str>, analysis: &mut Analysis) -> Result<(), OtherSources> {
        match (without_samples(analysis), asked) {
            (Some(nothing), _) => analysis.summary.shortcomings.push(nothing),
            (None, Some(name)) => self.check(name, &analysis.sources)?,
            (None, None) => {}
        }
        Ok(())
    }

    /// Refuses a model that was asked for by a name, for a recording of other sources.
    ///
    /// # Errors
    /// It is of others.
    pub fn check(&self, name: &str, sources: &Sources) -> Result<(), OtherSources> {
        let recorded = sources.pair();
        match self.pair.filter(|made_for| recorded != Some(*made_for)) {
            None => Ok(()),
            Some(made_for) => Err(OtherSources { name: name.to_owned(), made_for, recorded }),
        }
    }
}

/// The rules for an analysis with the model of a name, or without.
///
/// # Errors
/// There is no such model, or its file is none.
pub fn rules(name: Option<&str>) -> anyhow::Result<Chosen> {
    let mut rules = Rules::default();
    match name {
        Some(PUBLISHED) => {
            for pair in SourcePair::ALL {
                rules.set(pair, Rule::Ask(Box::new(PublishedRule)));
            }
            Ok(Chosen { rules, pair: None, made_of: vec![PUBLISHED.into()] })
        }
        Some(name) => {
            let Found { model, .. } = named(name)?;
            let (pair, made_of) = (model.pair, vec![model.to_json()]);
            rules.set(pair, Rule::of(model));
            Ok(Chosen { rules, pair: Some(pair), made_of })
        }
        None => {
            let mut made_of = Vec::new();
            for pair in SourcePair::ALL {
                if let Some(Found { model, origin }) = for_pair(pair)? {
                    made_of.extend((origin != EMBEDDED).then(|| model.to_json()));
                    rules.set(pair, Rule::of(model));
                }
            }
            Ok(Chosen { rules, pair: None, made_of })
        }
    }
}

/// The model that is used for sources of this kind, if there is one: the imported one before the embedded one.
///
/// # Errors
/// The imported file is no model for them.
pub fn for_pair(pair: SourcePair) -> anyhow::Result<Option<Found>> {
    let imported = imported_file(pair).filter(|file| file.exists());
    let Some(file) = imported else {
        return Ok(embedded(pair).map(|model| Found { model, origin: EMBEDDED.into() }));
    };
    let found = read(&file).with_context(|| format!("remove it with `hbbp model remove {pair}`"))?;
    if found.model.pair != pair {
        bail!("{}: it is for {} sources; remove it with `hbbp model remove {pair}`", file.display(), found.model.pair);
    }
    Ok(Some(found))
}

/// A model by the kind of its sources, or by its file.
///
/// # Errors
/// There is none, or the file is none.
pub fn named(name: &str) -> anyhow::Result<Found> {
    match name.parse::<SourcePair>() {
        Ok(pair) => for_pair(pair)?.with_context(|| {
            format!("there is no model for {pair} sources: train one (hbbp train) and import it (hbbp model import)")
        }),
        Err(_) if name == PUBLISHED => bail!("{PUBLISHED} is the paper's rule and no trained model"),
        Err(_) => read(Path::new(name)),
    }
}

/// Reads and checks a model's file.
///
/// # Errors
/// It cannot be read, or is no model.
pub fn read(file: &Path) -> anyhow::Result<Found> {
    let json = std::fs::read(file).with_context(|| {
        let known = SourcePair::ALL.map(SourcePair::as_str).join(", ");
        format!("{} (a model is a file, or one of {PUBLISHED}, {known})", file.display())
    })?;
    let model = Model::read(&json).with_context(|| file.display().to_string())?;
    Ok(Found { model, origin: file.display().to_string() })
}

/// Where an imported model for sources of this kind is kept: below `XDG_DATA_HOME`, by default `~/.local/share`.
pub fn imported_file(pair: SourcePair) -> Option<PathBuf> {
    Some(data_folder()?.join("models").join(format!("{pair}.json")))
}
