"""What users install: the values, schema and generated parts of the Helm chart."""
