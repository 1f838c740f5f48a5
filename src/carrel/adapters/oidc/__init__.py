"""An OpenID Connect issuer: its tokens, and how a browser comes by one."""

from carrel.adapters.oidc.code_flow import OidcClient as OidcClient
from carrel.adapters.oidc.code_flow import OidcCodeFlow as OidcCodeFlow
from carrel.adapters.oidc.issuer import PAUSE as PAUSE
from carrel.adapters.oidc.issuer import REFUSED as REFUSED
from carrel.adapters.oidc.issuer import IssuerTrust as IssuerTrust
from carrel.adapters.oidc.issuer import IssuerUnreachable as IssuerUnreachable
from carrel.adapters.oidc.issuer import OidcIssuer as OidcIssuer
from carrel.adapters.oidc.issuer import TokenClaims as TokenClaims
