import { parseExactRecord } from '@sluice/wire/json/exact-json'
import type { McpServer } from '../../domain/mcp.ts'
import { redactFrame } from '../../upstreams/redact.ts'

/** Characters of an error's words. Cutting credentials out takes longer, the longer they are. */
const MAX_LENGTH = 16_384

/** An error of JSON-RPC that a server answers with. */
export interface ServerError {
  readonly code: number
  readonly message: string
  readonly data?: unknown
}

/**
 * The error without the server's address and what the gateway authenticates with. `auth`: headers of the request.
 * `docs/mcp.md: Servers that fail`.
 */
export function withoutSecrets(
  { code, message, data }: ServerError,
  { auth: own, url }: McpServer,
  auth: Readonly<Record<string, string>>,
): ServerError {
  const values = Object.values(auth).flatMap((value) => [value, ...value.split(' ')])
  const secrets = [...values, ...new URL(url).searchParams.values()]
  const holder = {
    keys: own.kind === 'oauth_client' ? [own.client_secret] : [],
    headers: new Map(secrets.map((secret) => [secret, secret])),
    proxy: null,
    base_url: url,
  }
  const words = [{ message, data }, { message }]
    .map((one) => JSON.stringify(one))
    .find(({ length }) => length <= MAX_LENGTH)
  const left = words && parseExactRecord(redactFrame(Buffer.from(words), holder).toString())
  return { code, message: 'the server reported an error', ...left }
}
