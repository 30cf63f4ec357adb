import { USER_STATUS, type Role, type User } from '../domain/user.ts'
import { GatewayError } from '../errors.ts'
import type { Request } from '../server/request.ts'
import type { Store } from '../store/store.ts'
import { refuseCrossSite } from './refuse-cross-site.ts'
import { sessionOf } from './session-cookie.ts'

/** How an access token may stand in `Authorization`: alone, or behind `Bearer` too. */
export type TokenForm = 'bare' | 'either'

/** What is needed to know account holders by what they bring. */
export interface AccountParts {
  readonly store: Store
  /** Turn an access token, and a session, into what the store looks them up by. */
  readonly hashAccessToken: (accessToken: string) => string
  readonly hashSession: (session: string) => string
  readonly trustedProxies: () => readonly string[]
}

/**
 * Checks who acts for an account: by an access token or a session, and the id of its owner in `Gateway-User`.
 */
export class AccountAuthenticator {
  readonly #parts: AccountParts

  constructor(parts: AccountParts) {
    this.#parts = parts
  }

  /**
   * The account that a request acts for. Who is missing, unknown or not the one that `Gateway-User` says is a
   * 401; a disabled user, a role below `least`, and a session that a page of another site makes use of, a
   * 403. `docs/api.md: Authentication`.
   */
  async authenticate(request: Request, form: TokenForm, least: Role): Promise<User> {
    const { authorization } = request.headers
    // Where both come, the header counts: it was put there on purpose.
    const user =
      authorization === undefined ? await this.#bySession(request) : await this.#byToken(authorization, form)
    requireUserHeader(request.headers['gateway-user'], user)
    if (user.status !== USER_STATUS.enabled)
      throw new GatewayError('user_disabled', 'this user has been banned')
    if (user.role < least) {
      throw new GatewayError('role_too_low', `this needs the role ${least}, and yours is ${user.role}`)
    }
    return user
  }

  async #byToken(authorization: string, form: TokenForm): Promise<User> {
    if (authorization.trim() === '') throw nobody()
    const { store, hashAccessToken } = this.#parts
    const accessToken =
      form === 'either' ? authorization.replace(/^bearer +/i, '').trim() : authorization.trim()
    const user = await store.read('userByAccessToken', hashAccessToken(accessToken))
    if (!user) throw new GatewayError('unauthorized', 'invalid access token')
    return user
  }

  async #bySession(request: Request): Promise<User> {
    const session = sessionOf(request)
    if (session === undefined) throw nobody()
    const { store, hashSession, trustedProxies } = this.#parts
    refuseCrossSite(request, trustedProxies())
    const sessionHash = hashSession(session)
    const nowSeconds = Math.floor(Date.now() / 1000)
    const user = await store.read('userBySession', { sessionHash, nowSeconds })
    if (!user) throw new GatewayError('unauthorized', 'the session is over: log in again')
    return user
  }
}

function nobody(): GatewayError {
  return new GatewayError('unauthorized', 'not logged in, and no access token in "Authorization"')
}

// The text names the header by the name that clients of older gateways know it by.
function requireUserHeader(given: string | string[] | undefined, user: User): void {
  if (given === undefined || given === '') {
    throw new GatewayError(
      'unauthorized',
      'New-Api-User header not provided (send the user id as Gateway-User)',
    )
  }
  if (!/^\d{1,16}$/.test(String(given))) {
    throw new GatewayError('unauthorized', 'Gateway-User: expected the id of a user')
  }
  if (Number(given) !== user.id) {
    throw new GatewayError('unauthorized', 'Gateway-User does not match the owner of the access token')
  }
}
