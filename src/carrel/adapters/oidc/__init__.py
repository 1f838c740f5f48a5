"""OpenID Connect: token verification and the authorization code flow."""

from carrel.adapters.oidc.code_flow import OidcClient as OidcClient
from carrel.adapters.oidc.code_flow import OidcCodeFlow as OidcCodeFlow
from carrel.adapters.oidc.issuer import INVALID_CREDENTIAL_MESSAGE as INVALID_CREDENTIAL_MESSAGE
from carrel.adapters.oidc.issuer import RETRY_DELAY_SECONDS as RETRY_DELAY_SECONDS
from carrel.adapters.oidc.issuer import IssuerTrust as IssuerTrust
from carrel.adapters.oidc.issuer import IssuerUnreachable as IssuerUnreachable
from carrel.adapters.oidc.issuer import OidcIssuer as OidcIssuer
from carrel.adapters.oidc.issuer import TokenClaims as TokenClaims
