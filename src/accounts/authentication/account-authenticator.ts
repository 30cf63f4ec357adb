import { USER_STATUS, type User } from '../../domain/records/user.ts'
import type { Role } from '../../domain/role.ts'
import { GatewayError } from '../../errors.ts'
import type { Request } from '../../http/request.ts'
import type { Store } from '../../store/store.ts'
import { isCrossSite, refuseCrossSite } from './refuse-cross-site.ts'
import { sessionFromCookie } from './session-cookie.ts'

/** Headers with the user's id: this gateway's own, and the one that clients of new-api send. */
const USER_HEADERS = ['gateway-user', 'new-api-user'] as const

/** Seconds between two updates of a session's last use in the database. */
const NOTED_EVERY_SECONDS = 60

export interface AccountAuthenticatorDependencies {
  readonly store: Pick<Store, 'read' | 'write'>
  /** Hashes by which the store looks up access tokens and sessions. */
  readonly hashAccessToken: (accessToken: string) => string
  readonly hashSession: (session: string) => string
  readonly trustedProxies: () => readonly string[]
}

/** Live session of a request, and its user. */
export interface SessionAndUser {
  readonly user: User
  /** HMAC of the session's secret, which is the value of the cookie. */
  readonly sessionHash: string
}

/** Account that a request acts for; without `sessionHash` if it was authenticated by access token. */
export interface AuthenticatedAccount {
  readonly user: User
  readonly sessionHash?: string
}

/** Authenticates account holders by access token together with their id in a header, or by session. */
export class AccountAuthenticator {
  readonly #dependencies: AccountAuthenticatorDependencies

  constructor(dependencies: AccountAuthenticatorDependencies) {
    this.#dependencies = dependencies
  }

  /**
   * Resolves to the live session that authenticates a request, and records its use. Resolves to undefined
   * without a session, if a page of another site sent the request, or if it contains an access token. An
   * access token takes precedence, because browsers send cookies unasked.
   */
  async session(request: Request): Promise<SessionAndUser | undefined> {
    const session = request.headers.authorization === undefined ? sessionFromCookie(request) : undefined
    const { store, hashSession, trustedProxies } = this.#dependencies
    if (session === undefined || isCrossSite(request, trustedProxies())) return undefined
    const sessionHash = hashSession(session)
    const nowSeconds = Math.floor(Date.now() / 1000)
    const found = await store.read('liveSession', { sessionHash, nowSeconds })
    if (!found) return undefined
    if (nowSeconds - found.lastUsed >= NOTED_EVERY_SECONDS) {
      // The response does not wait for this write.
      void store.write('recordSessionUse', { sessionHash, nowSeconds }).catch(() => {})
    }
    return { user: found.user, sessionHash }
  }

  /**
   * Resolves to the account that a request acts for, given the result of `session`. Throws 401 for missing or
   * unknown credentials and for a wrong `Gateway-User`; 403 for a disabled user, a role below `minRole`, or a
   * session sent by a page of another site. `docs/api.md: Authentication`.
   */
  async authenticate(
    request: Request,
    minRole: Role,
    session: SessionAndUser | undefined,
  ): Promise<AuthenticatedAccount> {
    const { authorization } = request.headers
    const found =
      authorization === undefined
        ? (session ?? this.#refuseSession(request))
        : { user: await this.#fromToken(authorization) }
    const { user } = found
    for (const id of sentIds(request, session !== undefined)) requireOwner(id, user)
    if (user.status !== USER_STATUS.enabled)
      throw new GatewayError('user_disabled', 'this user has been banned')
    if (user.role < minRole) {
      throw new GatewayError('role_too_low', `this needs the role ${minRole}, and yours is ${user.role}`)
    }
    return found
  }

  async #fromToken(authorization: string): Promise<User> {
    if (authorization.trim() === '') throw notAuthenticated()
    const { store, hashAccessToken } = this.#dependencies
    const accessToken = authorization.replace(/^bearer +/i, '').trim()
    const user = await store.read('userByAccessToken', hashAccessToken(accessToken))
    if (!user) throw new GatewayError('unauthorized', 'invalid access token')
    return user
  }

  #refuseSession(request: Request): never {
    if (sessionFromCookie(request) === undefined) throw notAuthenticated()
    refuseCrossSite(request, this.#dependencies.trustedProxies())
    throw new GatewayError('unauthorized', 'the session is over: log in again')
  }
}

function notAuthenticated(): GatewayError {
  return new GatewayError('unauthorized', 'not logged in, and no access token in "Authorization"')
}

/**
 * Returns the user ids that the request states in `USER_HEADERS`; each must be the id of the authenticated
 * user. Throws 401 without an id, unless the request has a session.
 */
function sentIds({ headers }: Request, isSession: boolean): string[] {
  const ids = USER_HEADERS.map((name) => headers[name]).filter((id) => id !== undefined && id !== '')
  // The message uses the header name that clients of older gateways know.
  if (ids.length === 0 && !isSession) {
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
