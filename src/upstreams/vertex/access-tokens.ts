import { parseRecord } from '@sluice/wire/json/record'
import { sign } from 'node:crypto'
import type { Channel } from '../../domain/records/channel.ts'
import type { ServiceAccount } from '../../domain/provider-keys.ts'
import type { UpstreamKey } from '../key-ring.ts'
import { ProviderRefusal, type ProviderTarget } from '../provider.ts'

/** A token is renewed this long before it expires. */
const RENEW_AHEAD_MS = 5 * 60_000
/** A token is not used in this time before it expires. */
const UNUSABLE_MS = 30_000
const GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer'

/**
 * Posts a form to a token endpoint, through the channel's proxy if it has one. Rejects if there is no
 * response.
 */
export type PostForm = (url: string, form: string, by: Way) => Promise<{ status: number; body: string }>

/** The channel whose proxy and rules apply to the token endpoint. */
type Way = Pick<Channel, 'proxy' | 'isSetOverHttp'>

interface Token {
  readonly value: string
  readonly endMs: number
}

interface Account {
  token: Token | undefined
  refresh: Promise<Token> | undefined
}

/**
 * Access tokens of service accounts. Each has at most one refresh at a time, which starts before the last
 * token expires.
 */
export class AccessTokens {
  readonly #accounts = new WeakMap<UpstreamKey, Account>()
  readonly #post: PostForm

  constructor(post: PostForm) {
    this.#post = post
  }

  /** Returns a token that is valid for a while. Rejects with a `ProviderRefusal` if none is available. */
  async of({ channel, key, now }: ProviderTarget, account: ServiceAccount): Promise<string> {
    const entry = this.#entry(key)
    const leftMs = (entry.token?.endMs ?? 0) - now.getTime()
    if (leftMs < RENEW_AHEAD_MS) this.#refresh(entry, account, channel, now)
    // The old token is used while it is valid, even if the endpoint is down.
    if (entry.token && leftMs > UNUSABLE_MS) return entry.token.value
    return (await (entry.refresh as Promise<Token>)).value
  }

  /** Discards a refused token, unless it was already replaced. */
  discard(key: UpstreamKey, refused: string): void {
    const entry = this.#entry(key)
    if (entry.token?.value === refused) entry.token = undefined
  }

  #entry(key: UpstreamKey): Account {
    let entry = this.#accounts.get(key)
    if (!entry) this.#accounts.set(key, (entry = { token: undefined, refresh: undefined }))
    return entry
  }

  #refresh(entry: Account, account: ServiceAccount, way: Way, now: Date): void {
    if (entry.refresh) return
    const refresh = this.#request(account, way, now)
    entry.refresh = refresh
    refresh
      .then((token) => (entry.token = token))
      // Calls that wait for the token receive the error.
      .catch(() => {})
      .finally(() => (entry.refresh = undefined))
  }

  async #request(account: ServiceAccount, way: Way, now: Date): Promise<Token> {
    const assertion = assertionOf(account, now)
    const form = new URLSearchParams({ grant_type: GRANT, assertion }).toString()
    const { status, body } = await this.#post(account.tokenUri, form, way).catch((error: unknown) => {
      throw new ProviderRefusal(`the token endpoint cannot be reached: ${reasonOf(error)}`)
    })
    const fields = parseRecord(body)
    const value = fields?.['access_token']
    const seconds = Number(fields?.['expires_in'])
    if (status === 200 && typeof value === 'string' && /^[\x21-\x7e]+$/.test(value))
      return { value, endMs: now.getTime() + (seconds > 0 ? Math.min(seconds, 86_400) : 60) * 1000 }
    const isOfKey = status >= 400 && status < 500 && status !== 429
    const words = refusalOf(status, fields)
    throw new ProviderRefusal(`the token endpoint refused the service account: ${words}`, isOfKey)
  }
}

function refusalOf(status: number, fields: Record<string, unknown> | undefined): string {
  const told = [fields?.['error'], fields?.['error_description']].filter((text) => typeof text === 'string')
  return [`status ${status}`, ...told].join(', ').slice(0, 500)
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message.slice(0, 200) : 'unknown'
}

const SCOPE = 'https://www.googleapis.com/auth/cloud-platform'
/** Validity of an assertion in seconds, the maximum allowed. */
const VALID_S = 3600
/** Seconds by which the issue time is set back, to allow for clock skew. */
const SKEW_S = 30

/** Signs the assertion that is exchanged for an access token (RFC 7523). */
function assertionOf(account: ServiceAccount, now: Date): string {
  const issued = Math.floor(now.getTime() / 1000) - SKEW_S
  const header = {
    alg: 'RS256',
    typ: 'JWT',
    ...(account.privateKeyId !== undefined && { kid: account.privateKeyId }),
  }
  const claims = {
    iss: account.email,
    scope: SCOPE,
    aud: account.tokenUri,
    iat: issued,
    exp: issued + VALID_S,
  }
  const unsigned = `${encoded(header)}.${encoded(claims)}`
  return `${unsigned}.${sign('sha256', Buffer.from(unsigned), account.privateKey).toString('base64url')}`
}

function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}
