import { parseRecord } from '@sluice/wire/json/record'
import { sign } from 'node:crypto'
import type { Channel } from '../../domain/records/channel.ts'
import type { ServiceAccount } from '../../domain/provider-keys.ts'
import type { UpstreamKey } from '../key-ring.ts'
import { ProviderRefusal, type ProviderTarget } from '../provider.ts'

/** Milliseconds before the expiry of an access token at which it is renewed. */
const RENEW_AHEAD_MS = 5 * 60_000
/** Milliseconds before the expiry of an access token from which it is no longer used. */
const UNUSABLE_MS = 30_000
const GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer'

/**
 * Posts a form to a server that issues access tokens, through the channel's proxy if it has one. Rejects if
 * there is no response.
 */
export type PostForm = (url: string, form: string, by: Way) => Promise<{ status: number; body: string }>

/** The channel through which the request is sent: by its proxy and its rules for addresses. */
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
 * Access tokens for Google service accounts. A token is renewed before it expires, and never by two requests
 * at the same time.
 */
export class AccessTokens {
  readonly #accounts = new WeakMap<UpstreamKey, Account>()
  readonly #post: PostForm

  constructor(post: PostForm) {
    this.#post = post
  }

  /**
   * Returns an access token that is valid for some time. Rejects with a `ProviderRefusal` if none can be
   * obtained.
   */
  async of({ channel, key, now }: ProviderTarget, account: ServiceAccount): Promise<string> {
    const entry = this.#entry(key)
    const leftMs = (entry.token?.endMs ?? 0) - now.getTime()
    if (leftMs < RENEW_AHEAD_MS) this.#refresh(entry, account, channel, now)
    // The present token is used as long as it is valid, even if it cannot be renewed at the moment.
    if (entry.token && leftMs > UNUSABLE_MS) return entry.token.value
    return (await (entry.refresh as Promise<Token>)).value
  }

  /** Discards an access token that was refused, unless it has already been replaced. */
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
      // The error is ignored here, because it is reported to the calls that wait for the token.
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
/** Seconds for which a signed assertion is valid: the maximum that Google allows. */
const VALID_S = 3600
/** Seconds by which the issue time is set back, in case Google's clock is behind. */
const SKEW_S = 30

/** Signs the assertion (RFC 7523) that Google exchanges for an access token. */
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
