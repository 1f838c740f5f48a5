"""What all providers elsewhere share: files go there as a tar, a script keeps the command within
its bounds, a listing tells what it has left, and only what changed comes back.
"""

from carrel.adapters.sandbox.remote.remote_run import ProviderUnreachable as ProviderUnreachable
from carrel.adapters.sandbox.remote.remote_run import RemoteMachine as RemoteMachine
from carrel.adapters.sandbox.remote.remote_run import Take as Take
from carrel.adapters.sandbox.remote.remote_run import run_remotely as run_remotely
from carrel.adapters.sandbox.remote.scripts import RemotePaths as RemotePaths
from carrel.adapters.sandbox.remote.tar_transfer import Owner as Owner
