import os
import signal
import threading

from hypothesis import settings

# A shell that runs the tests in the background may have told them to ignore Ctrl-C, which some tests send.
if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Examples are drawn anew on every machine of ours, and are the same in every run of the CI: it must not fail by chance.
settings.register_profile("linkmix", deadline=None, derandomize=os.environ.get("CI") == "true", print_blob=True)
settings.load_profile("linkmix")
