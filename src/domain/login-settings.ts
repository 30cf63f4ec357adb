/** How people sign in to the console. `docs/configuration.md: Sign-in`. */
export interface LoginSettings {
  /** Whether a username and a password are accepted; access tokens always are. */
  readonly password: boolean
  readonly oidc: readonly OidcProvider[]
}

/** An identity provider of OpenID Connect. */
export interface OidcProvider {
  /** Segment of the paths of its sign-in. */
  readonly name: string
  /** Issuer identifier, as the provider's metadata states it. */
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string
  readonly scopes: readonly string[]
  /** Claim that names a new user. */
  readonly usernameClaim: string
  /** Claim with the groups of the directory; undefined = groups and roles are managed here. */
  readonly groupClaim: string | undefined
  /** Groups here by values of the claim; the first that a user has counts. */
  readonly groups: ReadonlyMap<string, string>
  /** Values of the claim whose users are administrators. */
  readonly admins: readonly string[]
  /** Whether a first sign-in creates a user. */
  readonly create: boolean
}
