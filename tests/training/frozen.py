"""One of two processes stops in the middle: `python -m tests.training.frozen WHICH`.

It stays there with its connections open, as one on a machine that hangs would.
"""

import os
import signal
import sys

from attention_jax.devices import processes

if __name__ == "__main__":
    with processes.joined():
        processes.gather("both are here")
        print("joined", flush=True)
        if os.environ["ATTENTION_JAX_PROCESS_ID"] == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGSTOP)
        processes.gather("one is not")
