import { guardedAgent } from '../../../upstreams/guarded-agent.ts'
import type { CustomFetch } from 'openid-client'
import { request } from 'undici'

/** Timeout of a request to a provider; short, because a person is waiting. */
export const PROVIDER_TIMEOUT_MS = 5_000
/** Maximum response size; metadata and keys are far smaller. */
const MAX_BYTES = 512 * 1024
/** Statuses whose responses have no body. */
const WITHOUT_BODY = new Set([101, 204, 205, 304])

/**
 * Fetches from a provider, without following redirects. The issuer's origin is the operator's choice and may
 * be private, like the address of a declared channel. Other origins, which the provider's metadata name, may
 * be private only if `allowsPrivateNetworks`. Close it with `[Symbol.asyncDispose]`.
 */
export class ProviderFetch implements AsyncDisposable {
  readonly #issuerOrigin: string
  readonly #own = guardedAgent(true, PROVIDER_TIMEOUT_MS)
  readonly #others: ReturnType<typeof guardedAgent>
  /** First failure to reach the provider. */
  failure: string | undefined

  constructor(issuer: string, allowsPrivateNetworks: boolean) {
    this.#issuerOrigin = new URL(issuer).origin
    this.#others = guardedAgent(allowsPrivateNetworks, PROVIDER_TIMEOUT_MS)
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
