import { createHash, type Hash } from 'node:crypto'
import type { Body, FormBody } from '../../call/body-reader.ts'
import { readStoredBytes } from '../../call/form-body.ts'

/** Query parameters that identify the caller and are not part of the request. */
const CREDENTIALS: ReadonlySet<string> = new Set(['key'])

/**
 * SHA-256 of a request's path and body, as base64url. For a form, its parts are hashed in order, without the
 * boundary between them. `docs/api.md: Idempotency keys`.
 */
export async function requestFingerprint(url: string, body: Pick<Body, 'bytes'> | FormBody): Promise<string> {
  const hash = createHash('sha256')
  add(hash, pathOf(url))
  if ('parts' in body) await addForm(hash, body)
  else add(hash, body.bytes)
  return hash.digest('base64url')
}

function pathOf(url: string): string {
  const at = url.indexOf('?')
  if (at === -1) return url
  const query = url
    .slice(at + 1)
    .split('&')
    .filter((one) => !CREDENTIALS.has(one.split('=', 1)[0] ?? ''))
  return `${url.slice(0, at)}?${query.join('&')}`
}

async function addForm(hash: Hash, { parts, bytes }: FormBody): Promise<void> {
  for (const { name, filename, contentType, start, end } of parts) {
    add(hash, JSON.stringify([name, filename ?? null, contentType]))
    hash.update(`${end - start}\n`)
    for (let at = start; at < end; ) {
      const piece = await readStoredBytes(bytes, at, end - at)
      hash.update(piece)
      at += piece.length
    }
  }
}

/** Adds a value with its length to the hash, so that different values never become the same bytes. */
function add(hash: Hash, value: string | Buffer): void {
  hash.update(`${Buffer.byteLength(value)}\n`).update(value)
}
