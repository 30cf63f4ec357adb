import type { OidcProvider } from '../../../domain/settings.ts'
import type { Options } from '../../../domain/options.ts'
import { GatewayError } from '../../../errors.ts'
import type { Request } from '../../../http/request.ts'
import type { Secrets } from '../../../store/secrets.ts'
import type { Store } from '../../../store/store.ts'
import { publicOrigin } from '../trusted-peer.ts'
import type { OidcClient, VerifiedIdentity } from './oidc-client.ts'
import {
  endedCookie,
  type IdentityLink,
  pendingCookie,
  findPendingSignIn,
  pendingSignInExpiry,
} from './pending-sign-in.ts'

/** Page of the console to which people return after signing out at their identity provider. */
const AFTER_LOGOUT = '/login'

interface OidcDependencies {
  readonly store: Pick<Store, 'write'>
  readonly secrets: Secrets
  readonly options: () => Options
  readonly nowMs: () => number
  /** Called if an identity provider fails, with a sentence for the operator. */
  readonly warn: (sentence: string) => void
}

/** Redirect of the browser to the identity provider. */
interface Redirect {
  readonly location: string
  /** Value of the `set-cookie` header, which binds the sign-in to the browser. */
  readonly cookie: string
}

/** Sign-in that has succeeded. */
interface Completed {
  readonly identity: VerifiedIdentity
  /** Path to which the browser is redirected, with the base path. */
  readonly next: string
  /** Session that began the sign-in, if the identity is to be linked to its user. */
  readonly link: IdentityLink | undefined
}

/**
 * Sign-ins at identity providers, from the start to the verified identity. Each is bound to the browser that
 * began it.
 */
export class OidcSignIns {
  readonly #dependencies: OidcDependencies
  #client: Promise<OidcClient> | undefined

  constructor(dependencies: OidcDependencies) {
    this.#dependencies = dependencies
  }

  /**
   * Begins a sign-in. `next` is a path of this gateway to go to afterwards, without the base path; any other text is
   * ignored. `link` is the session to whose user the identity will be linked.
   */
  async begin(
    provider: OidcProvider,
    request: Request,
    next: string | undefined,
    link?: IdentityLink,
  ): Promise<Redirect> {
    const { secrets, options, nowMs } = this.#dependencies
    const origin = publicOrigin(request, options())
    const redirectUri = `${origin}${options().base_path}/api/user/oidc/${provider.name}/callback`
    const { url, checks } = await (await this.#opened()).begin(provider, redirectUri)
    const expiresTime = pendingSignInExpiry(nowMs())
    const pending = { ...checks, redirectUri, next: localRedirectPath(next), link, expiresTime }
    const cookie = pendingCookie(secrets, provider.name, pending, request, options())
    return { location: url, cookie }
  }

  /**
   * Ends a sign-in. Throws 401 if another browser began it, if it has already ended, or if it cannot be
   * verified. `setCookie` gets the `set-cookie` header that removes the cookie of the sign-in, once that has ended,
   * even if it throws.
   */
  async complete(
    provider: OidcProvider,
    request: Request,
    setCookie: (header: string) => void,
  ): Promise<Completed> {
    const { store, secrets, options, nowMs } = this.#dependencies
    const { base_path: basePath } = options()
    const query = new URL(request.url, 'http://gateway').search
    const state = new URLSearchParams(query).get('state')
    const pending = findPendingSignIn(secrets, provider.name, state, request, nowMs())
    if (!pending)
      throw new GatewayError(
        'unauthorized',
        'this browser began no such sign-in, or too long ago; start again',
      )
    const nowSeconds = Math.floor(nowMs() / 1000)
    const { expiresTime } = pending
    const isFirst = await store.write('consumeState', { state: pending.state, expiresTime, nowSeconds })
    setCookie(endedCookie(pending, request, options()))
    if (!isFirst) throw new GatewayError('unauthorized', 'this sign-in has ended already; start again')
    const callback = new URL(pending.redirectUri + query)
    const afterLogout = callback.origin + basePath + AFTER_LOGOUT
    const identity = await (await this.#opened()).complete(provider, callback, pending, afterLogout)
    return { identity, next: basePath + pending.next, link: pending.link }
  }

  // Loads the OIDC client at the first sign-in, because most gateways have no identity provider.
  #opened(): Promise<OidcClient> {
    const { options, warn } = this.#dependencies
    const allowsPrivateNetworks = (): boolean => options().media.allow_private_networks
    this.#client ??= import('./oidc-client.ts').then(
      ({ OidcClient }) => new OidcClient({ allowsPrivateNetworks, warn }),
    )
    return this.#client
  }
}

const BASE = 'http://gateway.invalid'

/**
 * Returns a path of this gateway with its query, as a browser would resolve it; `/` for anything that leads
 * elsewhere (`//host`, `/\host`, other schemes), or is too long.
 */
export function localRedirectPath(given: string | undefined): string {
  if (given === undefined || !given.startsWith('/')) return '/'
  const url = URL.parse(given, BASE)
  // Segments such as `/.//host` may have resolved to `//host`.
  if (url?.origin !== BASE || url.pathname.startsWith('//')) return '/'
  const path = url.pathname + url.search + url.hash
  // The cookie of the sign-in contains it in this form, and browsers drop cookies of more than 4,096 bytes.
  return JSON.stringify(path).length > 2000 ? '/' : path
}
