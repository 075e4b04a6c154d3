"""Version v1alpha1 of the API group specdec.dev."""

from typing import Final

GROUP: Final = "specdec.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = "specdec.dev/v1alpha1"
