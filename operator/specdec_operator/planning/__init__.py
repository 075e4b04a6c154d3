"""Pure planning: a spec, the capability table, the configuration and model facts become a plan, or a refusal."""
