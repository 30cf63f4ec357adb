import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { McpSessionVersion } from '../../domain/mcp.ts'
import { hasSessions } from './protocol.ts'

/**
 * Sessions of clients before 2026-07-28. An id holds its revision and a signature for its API key, so that every node
 * knows it, also after a restart.
 */
export class ClientSessions {
  readonly #sign: (text: string) => string

  /** `sign` returns an HMAC in base64url. */
  constructor(sign: (text: string) => string) {
    this.#sign = sign
  }

  create(version: McpSessionVersion, tokenId: number): string {
    const content = `${version}.${randomBytes(16).toString('base64url')}`
    return `${content}.${this.#sign(`${tokenId}\n${content}`)}`
  }

  /** The revision of a session of this API key; undefined if it has no such session. */
  versionOf(id: string, tokenId: number): McpSessionVersion | undefined {
    const at = id.lastIndexOf('.')
    const content = id.slice(0, at)
    const version = content.slice(0, content.indexOf('.'))
    if (at === -1 || !hasSessions(version)) return undefined
    const [given, expected] = [
      Buffer.from(id.slice(at + 1)),
      Buffer.from(this.#sign(`${tokenId}\n${content}`)),
    ]
    return given.length === expected.length && timingSafeEqual(given, expected) ? version : undefined
  }
}
