import os

from hypothesis import settings

# Examples are drawn anew on every machine of ours, and are the same in every run of the CI: it must not fail by chance.
settings.register_profile("linkmix", deadline=None, derandomize=os.environ.get("CI") == "true", print_blob=True)
settings.load_profile("linkmix")
