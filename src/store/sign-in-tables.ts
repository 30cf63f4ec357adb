/** Login sessions. */
export interface SessionsTable {
  /** HMAC of the cookie's value. */
  id_hash: string
  user_id: number
  created_time: number
  expires_time: number
  /** Time of the latest request, to the minute; 0 = none since the session began. */
  last_used: number
  /** Client's address at the sign-in. */
  address: string
  /** Header `User-Agent` of the sign-in. */
  user_agent: string
  /** HMAC of the access token that began the session, which ends with it; null for other sign-ins. */
  access_token_hash: string | null
  /** Encrypted URL at which the identity provider ends its own session; null where it has none. */
  logout_cipher: string | null
}

/** Users by their identities at providers of OpenID Connect. */
export interface IdentitiesTable {
  issuer: string
  /** Claim `sub`, which is unique at its issuer and never reassigned. */
  subject: string
  user_id: number
  created_time: number
}

/** States of sign-ins that came back from their provider, so that none is used twice. */
export interface UsedStatesTable {
  /** HMAC of the state. */
  hash: string
  expires_time: number
}
