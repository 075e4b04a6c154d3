"""A plan as Kubernetes objects. Pure: the same plan gives the same bytes."""
