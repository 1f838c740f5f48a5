"""An OpenID Connect issuer: its tokens, and how a browser comes by one."""

from carrel.adapters.oidc.code_flow import Client as Client
from carrel.adapters.oidc.code_flow import OidcCodeFlow as OidcCodeFlow
from carrel.adapters.oidc.issuer import PAUSE as PAUSE
from carrel.adapters.oidc.issuer import REFUSED as REFUSED
from carrel.adapters.oidc.issuer import Claims as Claims
from carrel.adapters.oidc.issuer import OidcIssuer as OidcIssuer
from carrel.adapters.oidc.issuer import Trust as Trust
from carrel.adapters.oidc.issuer import Unreachable as Unreachable
