import type { McpAuth } from '../../domain/mcp.ts'
import { asFields } from './protocol.ts'
import { ServerFailure, type ServerTransport } from './server-transport.ts'

type ClientCredentials = Extract<McpAuth, { kind: 'oauth_client' }>

/** Milliseconds before the end of a token at which a new one is obtained. */
const RENEW_AHEAD_MS = 30_000
const TIMEOUT_MS = 10_000
const USUAL_SECONDS = 300
const MAX_SECONDS = 86_400

/** The access token of one server, by OAuth's client credentials (RFC 6749, 4.4). */
export class AccessToken {
  readonly #auth: ClientCredentials
  readonly #url: string
  readonly #transport: ServerTransport
  #token: { readonly value: string; readonly endMs: number } | undefined
  #asked: Promise<string> | undefined

  /** `url`: the server for which tokens are requested (RFC 8707). */
  constructor(auth: ClientCredentials, url: string, transport: ServerTransport) {
    this.#auth = auth
    this.#url = url
    this.#transport = transport
  }

  /** Resolves to a token that is valid for some time. Rejects with `server_auth`. Concurrent calls ask once. */
  async value(): Promise<string> {
    const known = this.#token
    if (known && performance.now() < known.endMs) return known.value
    this.#asked ??= this.#request().finally(() => (this.#asked = undefined))
    return this.#asked
  }

  /** Forgets a token that the server has refused. */
  discard(refused: string): void {
    if (this.#token?.value === refused) this.#token = undefined
  }

  async #request(): Promise<string> {
    const { token_url, client_id, client_secret, scope } = this.#auth
    const form = new URLSearchParams({
      grant_type: 'client_credentials',
      client_id,
      client_secret,
      resource: this.#url,
      ...(scope !== undefined && { scope }),
    })
    let answer: Awaited<ReturnType<ServerTransport['postForm']>>
    try {
      answer = await this.#transport.postForm(token_url, form.toString(), AbortSignal.timeout(TIMEOUT_MS))
    } catch (error) {
      throw new ServerFailure('server_auth', 'its token endpoint cannot be reached', { cause: error })
    }
    const { access_token: value, expires_in: seconds } = asFields(answer.body)
    if (answer.status !== 200 || typeof value !== 'string' || !/^[!-~]+$/.test(value))
      throw new ServerFailure('server_auth', `its token endpoint gave no token (status ${answer.status})`)
    const given = Number(seconds) > 0 ? Math.min(Number(seconds), MAX_SECONDS) : USUAL_SECONDS
    this.#token = { value, endMs: performance.now() + Math.max(0, given * 1000 - RENEW_AHEAD_MS) }
    return value
  }
}
