import { GatewayError } from '../../errors.ts'
import type { ScannedObject } from '../../protocols/json/scanned-object.ts'
import { itemReferences, withItems } from '../../protocols/responses/index.ts'
import type { Reader } from '../dialects/dialect.ts'
import { itemSource } from './item-source.ts'
import { type Place, placesIn, textAt } from './kept-item-page.ts'
import type { ResponseStore } from './response-store.ts'

/** Responses that are looked up for one request; references to further ones stay as they are. */
const MAX_RESPONSES = 1_000

/**
 * The request with the items of the caller's kept responses in place of references to them; the same request
 * where there are none. Throws `request_too_large` where that is larger than a body may be.
 */
export async function withKeptItems(
  scan: ScannedObject,
  { caller: { user }, settings: { options }, readStore }: Reader,
  responses: ResponseStore,
): Promise<ScannedObject> {
  const references = itemReferences(scan)
  const responseIds = [...new Set(references.map(({ responseId }) => responseId))].slice(0, MAX_RESPONSES)
  /** How often each item is referred to. */
  const wanted = new Map<string, number>()
  for (const { id } of references) wanted.set(id, (wanted.get(id) ?? 0) + 1)
  const items = new Map<string, string>()
  const reading = readStore()
  try {
    let bytes = scan.bytes.length
    for (const id of responseIds) {
      const { contentBytes = 0 } = (await responses.facts(user.id, id)) ?? {}
      if (contentBytes === 0) continue
      await reading.begin()
      for await (const place of placesIn(itemSource(responses, user.id, id, 'response'))) {
        if (place.id === undefined || !wanted.has(place.id)) continue
        await reading.hold(place.end - place.start)
        const text = await textOf(place)
        items.set(place.id, text)
        bytes += Buffer.byteLength(text) * (wanted.get(place.id) ?? 0)
        if (bytes > options.body_limit)
          throw new GatewayError(
            'request_too_large',
            `the request with the items that it refers to is larger than ${options.body_limit} bytes`,
          )
      }
    }
    if (items.size === 0) return scan
    await reading.hold(bytes)
    return withItems(scan, items)
  } finally {
    reading.end()
  }
}

async function textOf(place: Place): Promise<string> {
  let text = ''
  for await (const piece of textAt(place)) text += piece
  return text
}
