import type { Agent } from 'undici'
import { lookupBlockingMetadata } from '../lookup-blocking-metadata.ts'
import type { PostForm } from './access-tokens.ts'

const TIMEOUT_MS = 10_000
/** Bytes of a response that are read: more is no token. */
const MAX_BYTES = 64 * 1024

/** Whether a service account's key may name this token endpoint: it comes from whoever wrote the file. */
export function isTokenEndpoint(url: URL, allowsPrivateNetworks: boolean): boolean {
  if (allowsPrivateNetworks) return url.protocol === 'https:' || url.protocol === 'http:'
  return url.protocol === 'https:' && /(?:^|\.)googleapis\.com$/.test(url.hostname) && url.port === ''
}

/**
 * Posts forms to token endpoints: by way of the channel's proxy where it has one, else to private addresses
 * only where the operator allows them.
 */
export function tokenEndpoint(allowsPrivateNetworks: () => boolean): PostForm {
  let direct: Agent | undefined
  let directAllows = false
  return async (text, form, { proxy, isSetOverHttp }) => {
    const allows = allowsPrivateNetworks()
    const url = URL.parse(text)
    if (!url || !isTokenEndpoint(url, allows)) throw new Error('its address is no token endpoint of Google')
    if (proxy !== null) {
      const { proxiedAgent } = await import('../proxied-agent.ts')
      // Tokens last for an hour: their connection is not kept.
      await using agent = proxiedAgent(proxy, isSetOverHttp ? lookupBlockingMetadata : undefined, TIMEOUT_MS)
      return await posted(agent, url, form)
    }
    if (!direct || directAllows !== allows) {
      const { guardedAgent } = await import('../guarded-agent.ts')
      direct = guardedAgent(allows, TIMEOUT_MS)
      directAllows = allows
    }
    return posted(direct, url, form)
  }
}

async function posted(agent: Agent, url: URL, form: string): Promise<{ status: number; body: string }> {
  // Loaded with the first token: most gateways need none.
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
