//! Makes retries safe: one attribute, and a repeated request has one effect and gets one answer.
