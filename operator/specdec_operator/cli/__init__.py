"""The command line `specdec`: what can be known of a model without a cluster."""
