import { RESPONSE_LIMITS } from '@sluice/wire/json/json-scan'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import {
  hasOnlyMessages,
  itemReferences,
  referredIds,
  RESPONSES_REQUEST,
  replaceItemReferences,
} from '@sluice/wire/responses'
import type { StoredResponse } from '../../domain/stored-response.ts'
import { GatewayError } from '../../errors.ts'
import type { RequestReaderContext } from '../../call/dialects/dialect.ts'
import { findReasoningAccount, type ReasoningAccount } from './reasoning-origin.ts'
import { type PreviousResponse, findPreviousResponse, scanComposed } from './resolve-previous-response.ts'
import { itemSource, type ItemPosition, itemPositions, textAt } from './response-items.ts'
import type { ResponseStore } from './response-store.ts'

/** The earlier responses and items to which a request refers. */
export interface ResponseReferences {
  /** Whether the request refers to nothing and its input contains only messages. */
  readonly isPlain?: true
  readonly continued?: PreviousResponse | undefined
  /** Items of earlier responses that the provider stores. */
  readonly items?: ReferredItems | undefined
  /**
   * The provider account that created the encrypted reasoning in the input, or an item that the input refers
   * to.
   */
  readonly account?: ReasoningAccount | undefined
  /** The request in which references are replaced by the content that the gateway keeps. */
  readonly composed?: ScannedObject | undefined
}

const PLAIN: ResponseReferences = { isPlain: true }
const NOTHING: ResponseReferences = {}

/**
 * Finds what a request refers to. `previousId` is the response that it continues. Rejects like
 * `findPreviousResponse` and `withStoredItems`.
 */
export async function findReferences(
  scan: ScannedObject,
  previousId: string | undefined,
  reader: RequestReaderContext,
  responses: ResponseStore,
): Promise<ResponseReferences> {
  if (previousId === undefined && hasOnlyMessages(scan)) return PLAIN
  // If the request continues a response, that response already determines the provider account.
  const origin = previousId === undefined ? findReasoningAccount(scan, reader, responses) : undefined
  if (previousId === undefined && !origin && referredIds(scan).length === 0) return NOTHING
  const ofReasoning = await origin
  const continued =
    previousId === undefined ? undefined : await findPreviousResponse(scan, previousId, reader, responses)
  // If the provider stores the continued response, it also looks up the items to which the request refers.
  const stored =
    continued?.kind === 'native' ? scan : await withStoredItems(continued?.scan ?? scan, reader, responses)
  const whole = stored !== scan && reader.check ? await reader.check(stored, RESPONSES_REQUEST) : stored
  const items = await findItems(reader.caller.user.id, referredIds(whole), responses)
  const account = ofReasoning ?? items?.responses[0]
  return { continued, account, items, composed: whole === scan ? undefined : whole }
}

/**
 * Maximum number of responses that are looked up for one request; items of further responses count as
 * unknown.
 */
const MAX_RESPONSES = 100

/** Items to which a request refers and which their provider keeps. */
interface ReferredItems {
  /** The known responses that contain the items. */
  readonly responses: readonly StoredResponse[]
  /** Whether the request refers to items whose responses are unknown. */
  readonly hasUnknown: boolean
}

/** Finds the responses of items by the items' ids. */
async function findItems(
  userId: number,
  itemIds: readonly string[],
  store: ResponseStore,
): Promise<ReferredItems | undefined> {
  if (itemIds.length === 0) return undefined
  const ids = itemIds.map((itemId) => store.responseOfItem(userId, itemId))
  const known = [...new Set(ids.filter((id) => id !== undefined))]
  const read = known.slice(0, MAX_RESPONSES).map((id) => store.find(userId, id))
  const found = (await Promise.all(read)).filter((response) => response !== undefined)
  return { responses: found, hasUnknown: ids.includes(undefined) || found.length < known.length }
}

/**
 * Maximum number of responses that are looked up for one request; references to further responses stay as
 * they are.
 */
const MAX_REFERRED_RESPONSES = 1_000

/**
 * The request with references to the caller's kept items replaced by these items; the same request if there
 * are none. Throws `request_too_large` if the result is larger than a body may be.
 */
export async function withStoredItems(
  scan: ScannedObject,
  { caller: { user }, settings: { options }, readStore }: RequestReaderContext,
  responses: ResponseStore,
): Promise<ScannedObject> {
  const references = itemReferences(scan)
  const responseIds = [...new Set(references.map(({ responseId }) => responseId))].slice(
    0,
    MAX_REFERRED_RESPONSES,
  )
  /** Number of references to each item, by the item's id. */
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
      for await (const place of itemPositions(itemSource(responses, user.id, id, 'response'))) {
        if (place.id === undefined || !wanted.has(place.id)) continue
        await reading.hold(place.end - place.start)
        const text = await textOf(place)
        items.set(place.id, text)
        bytes += Buffer.byteLength(text) * (wanted.get(place.id) ?? 0)
        if (bytes > options.body_limit) throw tooLarge(options.body_limit)
      }
    }
    if (items.size === 0) return scan
    await reading.hold(bytes)
    return scanComposed(() => replaceItemReferences(scan, items), tooLarge(options.body_limit))
  } finally {
    reading.end()
  }
}

function tooLarge(bodyLimit: number): GatewayError {
  return new GatewayError(
    'request_too_large',
    `the request with the items that it refers to is larger than ${bodyLimit} bytes or ${RESPONSE_LIMITS.nodes} JSON values`,
  )
}

async function textOf(place: ItemPosition): Promise<string> {
  let text = ''
  for await (const piece of textAt(place)) text += piece
  return text
}
