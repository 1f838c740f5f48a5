"""Shared by remote providers: files go in as a tar, only changed files come back.

A script on the machine enforces limits; a listing tells what the command changed.
"""

from carrel.adapters.sandbox.remote.remote_run import OutputSink as OutputSink
from carrel.adapters.sandbox.remote.remote_run import ProviderUnreachable as ProviderUnreachable
from carrel.adapters.sandbox.remote.remote_run import RemoteMachine as RemoteMachine
from carrel.adapters.sandbox.remote.remote_run import run_remotely as run_remotely
from carrel.adapters.sandbox.remote.scripts import RemotePaths as RemotePaths
from carrel.adapters.sandbox.remote.tar_transfer import Owner as Owner
