"""Sound: files of it as samples, and samples as frames of log-mel features."""
