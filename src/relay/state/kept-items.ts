import { GatewayError } from '../../errors.ts'
import type { ScannedObject } from '../../protocols/json/scanned-object.ts'
import { type ItemText, itemReferences, outputItems, withItems } from '../../protocols/responses/index.ts'
import type { Reader } from '../dialects/dialect.ts'
import type { ResponseStore } from './response-store.ts'

/** Responses that are looked up for one request; references to further ones stay as they are. */
const MAX_RESPONSES = 1_000

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
  // One at a time, so that only the largest takes memory.
  let largest = 0
  for (const id of responseIds) {
    const { contentBytes = 0 } = (await responses.facts(user.id, id)) ?? {}
    if (contentBytes === 0) continue
    if (contentBytes > largest) hold(contentBytes - largest)
    largest = Math.max(largest, contentBytes)
    const { content } = (await responses.find(user.id, id)) ?? {}
    if (content)
      for (const [itemId, item] of outputItems(content.response))
        if (wanted.has(itemId)) items.set(itemId, item)
  }
  if (items.size === 0) return scan
  const bytes = references.reduce((sum, { id }) => sum + (items.get(id)?.bytes ?? 0), scan.bytes.length)
  if (bytes > options.bodyLimit)
    throw new GatewayError(
      'request_too_large',
      `the request with the items that it refers to is larger than ${options.bodyLimit} bytes`,
    )
  hold(Math.max(0, bytes - largest))
  return withItems(scan, items)
}
