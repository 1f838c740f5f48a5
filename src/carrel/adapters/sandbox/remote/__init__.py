"""What all providers elsewhere share: files go there as a tar, a script keeps the command within
its bounds, a listing tells what it has left, and only what changed comes back.
"""

from carrel.adapters.sandbox.remote.remote_run import Machine as Machine
from carrel.adapters.sandbox.remote.remote_run import Take as Take
from carrel.adapters.sandbox.remote.remote_run import Unreachable as Unreachable
from carrel.adapters.sandbox.remote.remote_run import course as course
from carrel.adapters.sandbox.remote.scripts import Place as Place
from carrel.adapters.sandbox.remote.tar_transfer import Owner as Owner
