//! What went wrong, in a sentence.

/// The error and its causes, without those that the text before already tells, with or without the system's number for it.
pub fn sentence(error: &anyhow::Error) -> String {
    error.chain().fold(String::new(), |mut text, cause| {
        let cause = cause.to_string();
        let essence = cause.split(" (os error").next().unwrap_or(&cause);
        if !text.contains(essence) {
            text += if text.is_empty() { "" } else { ": " };
            text += &cause;
        }
        text
    })
}
