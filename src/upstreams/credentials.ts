import type { ProtocolName } from '../domain/protocols.ts'

/** Header that carries a key, and the prefix of its value, by protocol. */
const HEADERS: Record<ProtocolName, { readonly name: string; readonly prefix: string }> = {
  chat: { name: 'authorization', prefix: 'Bearer ' },
  messages: { name: 'x-api-key', prefix: '' },
  responses: { name: 'authorization', prefix: 'Bearer ' },
  gemini: { name: 'x-goog-api-key', prefix: '' },
  converse: { name: 'authorization', prefix: 'Bearer ' },
  rerank: { name: 'authorization', prefix: 'Bearer ' },
}

/** Builds the header that carries `key`, as name and value; empty without a key. */
export function credentials(protocol: ProtocolName, key: string): string[] {
  if (key === '') return []
  const { name, prefix } = HEADERS[protocol]
  return [name, prefix + key]
}
