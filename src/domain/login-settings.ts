/** How people sign in to the console. `docs/configuration.md: Sign-in`. */
export interface LoginSettings {
  /** Whether sign-in with username and password is allowed; access tokens always are. */
  readonly password: boolean
  readonly oidc: readonly OidcProvider[]
}

/** An identity provider of OpenID Connect. */
export interface OidcProvider {
  /** Its segment in the paths of sign-in. */
  readonly name: string
  /** Issuer identifier, as the provider's metadata states it. */
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string
  readonly scopes: readonly string[]
  /** Claim that names a new user. */
  readonly usernameClaim: string
  /**
   * Claim with the groups of the person in the directory; undefined if groups and roles are managed in the
   * gateway.
   */
  readonly groupClaim: string | undefined
  /** Values of the claim → groups of the gateway; the first that a person has applies. */
  readonly groups: ReadonlyMap<string, string>
  /** Values of the claim whose users are administrators. */
  readonly admins: readonly string[]
  /** Whether a first sign-in creates a user. */
  readonly create: boolean
}
