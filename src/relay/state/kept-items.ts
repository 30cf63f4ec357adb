import { GatewayError } from '../../errors.ts'
import type { ScannedObject } from '../../protocols/json/scanned-object.ts'
import { type ItemText, itemReferences, outputItems, withItems } from '../../protocols/responses/index.ts'
import type { Reader } from '../dialects/dialect.ts'
import type { ResponseStore } from './response-store.ts'

/** Responses that are looked up for one request; references to further ones stay as they are. */
const MAX_RESPONSES = 1_000
/** Look-ups at a time. */
const AT_A_TIME = 16

/**
 * The request with the items of the caller's kept responses in place of references to them; the same request
 * where there are none. Throws `request_too_large` where that is larger than a body may be.
 */
export async function withKeptItems(
  scan: ScannedObject,
  { caller: { user }, settings: { options }, hold }: Reader,
  responses: ResponseStore,
): Promise<ScannedObject> {
  const references = itemReferences(scan)
  const responseIds = [...new Set(references.map(({ responseId }) => responseId))].slice(0, MAX_RESPONSES)
  const wanted = new Set(references.map(({ id }) => id))
  const items = new Map<string, ItemText>()
  for (let at = 0; at < responseIds.length; at += AT_A_TIME) {
    const batch = responseIds.slice(at, at + AT_A_TIME)
    for (const response of await Promise.all(batch.map((id) => responses.find(user.id, id))))
      if (response?.content)
        for (const [id, item] of outputItems(response.content.response))
          if (wanted.has(id)) items.set(id, item)
  }
  if (items.size === 0) return scan
  const bytes = references.reduce((sum, { id }) => sum + (items.get(id)?.bytes ?? 0), scan.bytes.length)
  if (bytes > options.bodyLimit)
    throw new GatewayError(
      'request_too_large',
      `the request with the items that it refers to is larger than ${options.bodyLimit} bytes`,
    )
  hold(bytes)
  return withItems(scan, items)
}
