import * as library from 'openid-client'
import type { CustomFetch } from 'openid-client'
import { request } from 'undici'
import type { OidcProvider } from '../../../domain/settings.ts'
import { GatewayError } from '../../../errors.ts'
import { createGuardedAgent } from '../../../upstreams/ssrf-guard.ts'

/** Tolerated difference of clocks in `exp`, `iat` and `nbf`, in seconds. */
const CLOCK_TOLERANCE_SECONDS = 60
/** Maximum length of a subject (OpenID Connect Core, 2: at most 255 ASCII characters). */
const MAX_SUBJECT_LENGTH = 255

/** Secrets of one sign-in, against which its callback is checked. */
export interface SignInCallbackChecks {
  readonly state: string
  readonly nonce: string
  /** Secret code verifier of the sign-in (PKCE, RFC 7636). */
  readonly verifier: string
}

/** Verified identity of a person, with its claims. */
export interface VerifiedIdentity {
  readonly issuer: string
  readonly subject: string
  /** Claims of the id_token, and of the userinfo endpoint if the id_token lacks a required one. */
  readonly claims: Readonly<Record<string, unknown>>
  /** URL at which the identity provider ends its own session; undefined if it has none. */
  readonly logoutUrl: string | undefined
}

interface OidcClientDependencies {
  readonly allowsPrivateNetworks: () => boolean
  /** Called if an identity provider fails, with a sentence for the operator. */
  readonly warn: (sentence: string) => void
}

/**
 * Signs people in at OpenID Connect providers, by the authorization code flow with PKCE. Metadata and keys
 * are read again for each sign-in, so that a provider may rotate its keys at any time.
 */
export class OidcClient {
  readonly #dependencies: OidcClientDependencies

  constructor(dependencies: OidcClientDependencies) {
    this.#dependencies = dependencies
  }

  /**
   * Begins a sign-in. Resolves to the URL to send the browser to. Rejects with 503 if the identity provider
   * is unreachable.
   */
  async begin(
    provider: OidcProvider,
    redirectUri: string,
  ): Promise<{ url: string; checks: SignInCallbackChecks }> {
    return this.#with(provider, async (config) => {
      const checks = {
        state: library.randomState(),
        nonce: library.randomNonce(),
        verifier: library.randomPKCECodeVerifier(),
      }
      const url = library.buildAuthorizationUrl(config, {
        redirect_uri: redirectUri,
        scope: provider.scopes.join(' '),
        state: checks.state,
        nonce: checks.nonce,
        code_challenge: await library.calculatePKCECodeChallenge(checks.verifier),
        code_challenge_method: 'S256',
      })
      if (!/^https?:$/.test(url.protocol)) throw new Error('its authorization endpoint is not a web page')
      return { url: url.href, checks }
    })
  }

  /**
   * Ends a sign-in, given the URL that the browser came back with. Rejects with 401 if anything cannot be
   * verified: state, issuer, code, signature, audience, nonce, times.
   */
  async complete(
    provider: OidcProvider,
    callback: URL,
    { state, nonce, verifier }: SignInCallbackChecks,
    afterLogout: string,
  ): Promise<VerifiedIdentity> {
    return this.#with(provider, async (config) => {
      const tokens = await library.authorizationCodeGrant(config, callback, {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: verifier,
        idTokenExpected: true,
      })
      const idToken = tokens.claims()
      if (!idToken || idToken.sub.length > MAX_SUBJECT_LENGTH || idToken.sub.includes('\0'))
        throw new Error('its id_token has no valid subject')
      const needed = [provider.usernameClaim, provider.groupClaim].filter((name) => name !== undefined)
      const { userinfo_endpoint: userInfo, end_session_endpoint: endSession } = config.serverMetadata()
      const lacks = needed.some((name) => !(name in idToken))
      const more =
        lacks && userInfo !== undefined
          ? await library.fetchUserInfo(config, tokens.access_token, idToken.sub)
          : {}
      const logoutUrl =
        endSession === undefined
          ? undefined
          : library.buildEndSessionUrl(config, {
              id_token_hint: tokens.id_token ?? '',
              post_logout_redirect_uri: afterLogout,
            }).href
      return { issuer: idToken.iss, subject: idToken.sub, claims: { ...more, ...idToken }, logoutUrl }
    })
  }

  async #with<Result>(
    provider: OidcProvider,
    work: (config: library.Configuration) => Promise<Result>,
  ): Promise<Result> {
    const { allowsPrivateNetworks, warn } = this.#dependencies
    await using requests = new ProviderFetch(provider.issuer, allowsPrivateNetworks())
    let isDiscovered = false
    try {
      const config = await discovered(provider, requests)
      isDiscovered = true
      return await work(config)
    } catch (error) {
      if (error instanceof GatewayError) throw error
      const reason = requests.failure ?? reasonOf(error)
      warn(`sign-in at the identity provider ${provider.name}: ${reason}`)
      if (!isDiscovered || requests.failure !== undefined) throw unavailable(provider)
      throw refused(provider, error)
    }
  }
}

async function discovered(provider: OidcProvider, requests: ProviderFetch): Promise<library.Configuration> {
  const { issuer, clientId, clientSecret } = provider
  const config = await library.discovery(
    new URL(issuer),
    clientId,
    { client_secret: clientSecret, [library.clockTolerance]: CLOCK_TOLERANCE_SECONDS },
    (server, client, body, headers) => {
      // The default is Basic (OpenID Connect Discovery, 3), but providers encode its credentials differently,
      // so POST is preferred.
      const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
      const method = methods.includes('client_secret_post')
        ? library.ClientSecretPost(clientSecret)
        : library.ClientSecretBasic(clientSecret)
      method(server, client, body, headers)
    },
    {
      [library.customFetch]: requests.fetch,
      timeout: PROVIDER_TIMEOUT_MS / 1000,
      execute: [
        // Without this the library relies on TLS instead of the signature of the id_token.
        library.enableNonRepudiationChecks,
        ...(issuer.startsWith('http:') ? [library.allowInsecureRequests] : []),
      ],
    },
  )
  return config
}

/**
 * Returns a sentence for the operator. It contains only the library's messages, because further details may
 * contain tokens.
 */
function reasonOf(error: unknown): string {
  if (error instanceof library.ResponseBodyError) return `it refused the code: ${plainCode(error.error)}`
  if (error instanceof library.AuthorizationResponseError)
    return `it refused the sign-in: ${plainCode(error.error)}`
  if (!(error instanceof Error)) return 'unknown'
  const cause = error.cause instanceof Error ? `: ${error.cause.message}` : ''
  return `${error.message}${cause}`.slice(0, 200)
}

/** Returns an OAuth error code. Any other text may come from the browser and is not repeated. */
function plainCode(code: string): string {
  return /^[a-z_]{1,64}$/.test(code) ? code : 'an unknown error'
}

function refused({ name }: OidcProvider, error: unknown): GatewayError {
  const detail = error instanceof library.AuthorizationResponseError ? `: ${plainCode(error.error)}` : ''
  return new GatewayError(
    'unauthorized',
    `the sign-in at "${name}" could not be verified${detail}; start it again`,
  )
}

function unavailable({ name }: OidcProvider): GatewayError {
  return new GatewayError(
    'identity_provider_unavailable',
    `the identity provider "${name}" cannot be used at the moment; try again`,
    { retryAfter: 5 },
  )
}

/** Timeout of a request to an identity provider; short, because a person is waiting. */
const PROVIDER_TIMEOUT_MS = 5_000
/** Maximum size in bytes of an identity provider's response; metadata and keys are far smaller. */
const MAX_BYTES = 512 * 1024
/** Statuses whose responses have no body. */
const WITHOUT_BODY = new Set([101, 204, 205, 304])

/**
 * Fetches from an identity provider, without following redirects. The issuer's origin is the operator's
 * choice and may be private, like the address of a declared channel. Other origins, which the provider's
 * metadata name, may be private only if `allowsPrivateNetworks`. `[Symbol.asyncDispose]` closes its
 * connections.
 */
class ProviderFetch implements AsyncDisposable {
  readonly #issuerOrigin: string
  readonly #own = createGuardedAgent(true, PROVIDER_TIMEOUT_MS, 'operator')
  readonly #others: ReturnType<typeof createGuardedAgent>
  /**
   * Why the first failed request to the identity provider failed, for the operator; undefined if none failed.
   */
  failure: string | undefined

  constructor(issuer: string, allowsPrivateNetworks: boolean) {
    this.#issuerOrigin = new URL(issuer).origin
    this.#others = createGuardedAgent(allowsPrivateNetworks, PROVIDER_TIMEOUT_MS, 'operator')
  }

  readonly fetch: CustomFetch = async (url, { method, headers, body, signal }) => {
    const isOwn = new URL(url).origin === this.#issuerOrigin
    try {
      const response = await request(url, {
        method: method as 'GET' | 'POST',
        headers,
        dispatcher: isOwn ? this.#own : this.#others,
        ...(body != null && { body: textOf(body) }),
        ...(signal && { signal }),
      })
      if (response.statusCode >= 500) this.failure ??= `status ${response.statusCode}`
      const bytes = await bounded(response.body)
      const answer = new Headers()
      for (const [name, value] of Object.entries(response.headers))
        for (const one of [value ?? []].flat()) answer.append(name, one)
      const content = WITHOUT_BODY.has(response.statusCode) ? null : bytes
      return new Response(content, { status: response.statusCode, headers: answer })
    } catch (error) {
      this.failure ??= error instanceof Error ? error.message.slice(0, 200) : 'unknown'
      throw error
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#own.destroy(), this.#others.destroy()])
  }
}

function textOf(body: unknown): string {
  // The library sends forms or empty bodies only.
  if (body instanceof URLSearchParams || typeof body === 'string') return body.toString()
  throw new TypeError('expected a form')
}

async function bounded(body: AsyncIterable<Buffer>): Promise<Buffer<ArrayBuffer>> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of body) {
    length += chunk.length
    if (length > MAX_BYTES) throw new Error(`its response has more than ${MAX_BYTES} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
