import type { Agent } from 'undici'
import type { ProxyOfAddress } from '../environment-proxies.ts'
import { lookupBlockingMetadata } from '../lookup-blocking-metadata.ts'
import type { PostForm } from './access-tokens.ts'

const TIMEOUT_MS = 10_000
/** Maximum bytes of a response that are read; a larger response cannot be a token. */
const MAX_BYTES = 64 * 1024

/**
 * Whether a service account's key may name this token endpoint. The URL is not trusted, because it comes from
 * whoever wrote the key file.
 */
export function isTokenEndpoint(url: URL, allowsPrivateNetworks: boolean): boolean {
  if (allowsPrivateNetworks) return url.protocol === 'https:' || url.protocol === 'http:'
  return url.protocol === 'https:' && /(?:^|\.)googleapis\.com$/.test(url.hostname) && url.port === ''
}

/**
 * Returns a function that posts forms to token endpoints, through the channel's proxy or else the one of the
 * address, if there is any. Without a proxy, private addresses are reached only if the operator allows that.
 */
export function tokenEndpoint(allowsPrivateNetworks: () => boolean, proxyOf: ProxyOfAddress): PostForm {
  let direct: Agent | undefined
  let directAllows = false
  return async (text, form, { proxy: ownProxy, isSetOverHttp }) => {
    const allows = allowsPrivateNetworks()
    const url = URL.parse(text)
    if (!url || !isTokenEndpoint(url, allows))
      throw new Error('its address is not a token endpoint of Google')
    const proxy = ownProxy ?? proxyOf(url)
    if (proxy !== undefined) {
      const { proxiedAgent } = await import('../proxy-agent.ts')
      // The connection is closed afterwards, because the next token is needed only after an hour.
      const lookup = isSetOverHttp ? lookupBlockingMetadata : undefined
      await using agent = proxiedAgent(proxy, lookup, TIMEOUT_MS, ownProxy === null)
      return await posted(agent, url, form)
    }
    if (!direct || directAllows !== allows) {
      const { createGuardedAgent } = await import('../ssrf-guard.ts')
      direct = createGuardedAgent(allows, TIMEOUT_MS, 'operator')
      directAllows = allows
    }
    return posted(direct, url, form)
  }
}

async function posted(agent: Agent, url: URL, form: string): Promise<{ status: number; body: string }> {
  // Imported on demand, because most gateways need no access tokens.
  const { request } = await import('undici')
  const response = await request(url, {
    method: 'POST',
    dispatcher: agent,
    signal: AbortSignal.timeout(TIMEOUT_MS),
    headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
    body: form,
  })
  return { status: response.statusCode, body: await firstBytes(response.body) }
}

async function firstBytes(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of body) {
    chunks.push(chunk)
    if ((length += chunk.length) >= MAX_BYTES) break
  }
  return Buffer.concat(chunks).toString('utf8', 0, MAX_BYTES)
}
