"""The words users write: pydantic models per version, their rules, and the CRDs made from them."""
