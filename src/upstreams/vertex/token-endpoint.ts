import type { Agent } from 'undici'
import type { PostForm } from './access-tokens.ts'

const TIMEOUT_MS = 10_000
/** Bytes of a response that are read: more is no token. */
const MAX_BYTES = 64 * 1024

/** Whether a service account's key may name this token endpoint: it comes from whoever wrote the file. */
export function isTokenEndpoint(url: URL, allowsPrivateNetworks: boolean): boolean {
  if (allowsPrivateNetworks) return url.protocol === 'https:' || url.protocol === 'http:'
  return url.protocol === 'https:' && /(?:^|\.)googleapis\.com$/.test(url.hostname) && url.port === ''
}

/** Posts forms to token endpoints; private addresses only where the operator allows them. */
export function tokenEndpoint(allowsPrivateNetworks: () => boolean): PostForm {
  let agent: Agent | undefined
  let agentAllows = false
  return async (text, form) => {
    const allows = allowsPrivateNetworks()
    const url = URL.parse(text)
    if (!url || !isTokenEndpoint(url, allows)) throw new Error('its address is no token endpoint of Google')
    // Loaded with the first token: most gateways need none.
    const { request } = await import('undici')
    if (!agent || agentAllows !== allows) {
      const { guardedAgent } = await import('../guarded-agent.ts')
      agent = guardedAgent(allows, TIMEOUT_MS)
      agentAllows = allows
    }
    const response = await request(url, {
      method: 'POST',
      dispatcher: agent,
      signal: AbortSignal.timeout(TIMEOUT_MS),
      headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
      body: form,
    })
    return { status: response.statusCode, body: await firstBytes(response.body) }
  }
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
