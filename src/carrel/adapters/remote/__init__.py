"""What all providers elsewhere share: files go there as a tar, a script keeps the command within
its bounds, a listing tells what it has left, and only what changed comes back.
"""

from carrel.adapters.remote.course import Machine as Machine
from carrel.adapters.remote.course import Take as Take
from carrel.adapters.remote.course import Unreachable as Unreachable
from carrel.adapters.remote.course import course as course
from carrel.adapters.remote.packing import Owner as Owner
from carrel.adapters.remote.scripts import Place as Place
