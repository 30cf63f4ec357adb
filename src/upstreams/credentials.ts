import type { ProtocolName } from '../domain/channel.ts'

/** How each protocol's upstreams expect a key: header name and what stands before the key. */
const HEADERS: Record<ProtocolName, { readonly name: string; readonly prefix: string }> = {
  chat: { name: 'authorization', prefix: 'Bearer ' },
  messages: { name: 'x-api-key', prefix: '' },
  rerank: { name: 'authorization', prefix: 'Bearer ' },
}

/** The header that carries `key`, as a flat list; empty without a key. */
export function credentials(protocol: ProtocolName, key: string): string[] {
  if (key === '') return []
  const { name, prefix } = HEADERS[protocol]
  return [name, prefix + key]
}
