import type { IncomingMessage } from 'node:http'
import { USER_STATUS, type Role, type User } from '../domain/user.ts'
import { GatewayError } from '../errors.ts'
import type { Store } from '../store/store.ts'

/** How an access token may stand in `Authorization`: alone, or behind `Bearer` too. */
export type TokenForm = 'bare' | 'either'

/** Checks who acts for an account: an access token, and the id of its owner in `Gateway-User`. */
export class AccountAccess {
  readonly #store: Store
  readonly #hash: (accessToken: string) => string

  /** `hash` turns an access token into what the store looks it up by. */
  constructor(store: Store, hash: (accessToken: string) => string) {
    this.#store = store
    this.#hash = hash
  }

  /**
   * The account that a request acts for. Who is missing, unknown or not the one that `Gateway-User` says is a 401; a disabled
   * user, and a role below `least`, a 403. `docs/api.md: Authentication`.
   */
  async authenticate(request: IncomingMessage, form: TokenForm, least: Role): Promise<User> {
    const user = await this.#owner(request, form)
    requireUserHeader(request.headers['gateway-user'], user)
    if (user.status !== USER_STATUS.enabled)
      throw new GatewayError('user_disabled', 'this user has been banned')
    if (user.role < least) {
      throw new GatewayError('role_too_low', `this needs the role ${least}, and yours is ${user.role}`)
    }
    return user
  }

  async #owner({ headers }: IncomingMessage, form: TokenForm): Promise<User> {
    const { authorization } = headers
    if (authorization === undefined || authorization.trim() === '') {
      throw new GatewayError('unauthorized', 'not logged in, and no access token in "Authorization"')
    }
    const accessToken =
      form === 'either' ? authorization.replace(/^bearer +/i, '').trim() : authorization.trim()
    const user = await this.#store.read('userByAccessToken', this.#hash(accessToken))
    if (!user) throw new GatewayError('unauthorized', 'invalid access token')
    return user
  }
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
