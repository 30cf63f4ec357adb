import { USER_STATUS, type Role, type User } from '../domain/user.ts'
import { GatewayError } from '../errors.ts'
import type { Request } from '../server/request.ts'
import type { Store } from '../store/store.ts'
import { refuseCrossSite } from './refuse-cross-site.ts'
import { sessionOf } from './session-cookie.ts'

/** Names of the header with the user's id: this gateway's, and the one that clients of new-api send. */
const USER_HEADERS = ['gateway-user', 'new-api-user'] as const

/** Dependencies of `AccountAuthenticator`. */
export interface AccountParts {
  readonly store: Store
  /** Hashes by which the store looks up access tokens and sessions. */
  readonly hashAccessToken: (accessToken: string) => string
  readonly hashSession: (session: string) => string
  readonly trustedProxies: () => readonly string[]
}

/** Authenticates account holders by access token or session, together with their id in a header. */
export class AccountAuthenticator {
  readonly #parts: AccountParts

  constructor(parts: AccountParts) {
    this.#parts = parts
  }

  /**
   * The account that a request acts for. Throws 401 for missing or unknown credentials and for a wrong
   * `Gateway-User`; 403 for a disabled user, a role below `minRole`, or a session sent by a page of another
   * site. `docs/api.md: Authentication`.
   */
  async authenticate(request: Request, minRole: Role): Promise<User> {
    const { authorization } = request.headers
    // The header takes precedence over the cookie, as a browser sends cookies on its own.
    const user =
      authorization === undefined ? await this.#fromSession(request) : await this.#fromToken(authorization)
    for (const id of sentIds(request)) requireOwner(id, user)
    if (user.status !== USER_STATUS.enabled)
      throw new GatewayError('user_disabled', 'this user has been banned')
    if (user.role < minRole) {
      throw new GatewayError('role_too_low', `this needs the role ${minRole}, and yours is ${user.role}`)
    }
    return user
  }

  async #fromToken(authorization: string): Promise<User> {
    if (authorization.trim() === '') throw notAuthenticated()
    const { store, hashAccessToken } = this.#parts
    const accessToken = authorization.replace(/^bearer +/i, '').trim()
    const user = await store.read('userByAccessToken', hashAccessToken(accessToken))
    if (!user) throw new GatewayError('unauthorized', 'invalid access token')
    return user
  }

  async #fromSession(request: Request): Promise<User> {
    const session = sessionOf(request)
    if (session === undefined) throw notAuthenticated()
    const { store, hashSession, trustedProxies } = this.#parts
    refuseCrossSite(request, trustedProxies())
    const sessionHash = hashSession(session)
    const nowSeconds = Math.floor(Date.now() / 1000)
    const user = await store.read('userBySession', { sessionHash, nowSeconds })
    if (!user) throw new GatewayError('unauthorized', 'the session is over: log in again')
    return user
  }
}

function notAuthenticated(): GatewayError {
  return new GatewayError('unauthorized', 'not logged in, and no access token in "Authorization"')
}

/** The ids sent in either header, all of which must be the user's. */
function sentIds({ headers }: Request): string[] {
  const ids = USER_HEADERS.map((name) => headers[name]).filter((id) => id !== undefined && id !== '')
  // Names the header as clients of older gateways know it.
  if (ids.length === 0) {
    throw new GatewayError(
      'unauthorized',
      'New-Api-User header not provided (send the user id as Gateway-User)',
    )
  }
  return ids.map(String)
}

function requireOwner(id: string, user: User): void {
  if (!/^\d{1,16}$/.test(id)) {
    throw new GatewayError('unauthorized', 'Gateway-User: expected the id of a user')
  }
  if (Number(id) !== user.id) {
    throw new GatewayError('unauthorized', 'Gateway-User does not match the owner of the access token')
  }
}
