"""How the tiny models were made; needs JAX, which the product never depends on."""
