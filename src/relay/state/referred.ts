import type { StoredResponse } from '../../domain/stored-response.ts'
import { GatewayError } from '../../errors.ts'
import type { ScannedObject } from '../../protocols/json/scanned-object.ts'
import {
  hasForeignThoughts,
  hasOnlyMessages,
  inputForProvider,
  itemReferences,
  referredIds,
  withItems,
} from '../../protocols/responses/index.ts'
import type { Reader } from '../dialects/dialect.ts'
import { type Continued, findContinued } from './continued.ts'
import { itemSource } from './item-source.ts'
import { type Place, placesIn, textAt } from './kept-item-page.ts'
import { findOrigin, type Origin } from './reasoning-origin.ts'
import type { ResponseStore } from './response-store.ts'

/** Earlier responses that a request refers to. */
export interface Referred {
  /** The request refers to nothing, and its input has nothing but messages. */
  readonly isPlain?: true
  readonly continued?: Continued | undefined
  /** Items of responses that their provider keeps. */
  readonly items?: ReferredItems | undefined
  /** The account that made the encrypted reasoning in its input, or an item that it refers to. */
  readonly account?: Origin | undefined
  /** The request with all that the gateway keeps of what it refers to. */
  readonly composed?: ScannedObject | undefined
}

const PLAIN: Referred = { isPlain: true }
const NOTHING: Referred = {}

/**
 * Finds what a request refers to, at once where there is nothing to look up; `previousId` is the response
 * that it continues. Throws as `findContinued` and `withKeptItems` do.
 */
export function findReferred(
  scan: ScannedObject,
  previousId: string | undefined,
  reader: Reader,
  responses: ResponseStore,
): Promise<Referred> | Referred {
  if (previousId === undefined && hasOnlyMessages(scan)) return PLAIN
  // A continued response tells the account by itself.
  const origin = previousId === undefined ? findOrigin(scan, reader, responses) : undefined
  if (previousId === undefined && !origin && referredIds(scan).length === 0) return NOTHING
  return find()

  async function find(): Promise<Referred> {
    const continued =
      previousId === undefined ? undefined : await findContinued(scan, previousId, reader, responses)
    // A provider that is continued looks up the items, too.
    const whole =
      continued?.kind === 'native' ? scan : await withKeptItems(continued?.scan ?? scan, reader, responses)
    const items = await findItems(reader.caller.user.id, referredIds(whole), responses)
    const account = (await origin) ?? items?.responses[0]
    return { continued, account, items, composed: whole === scan ? undefined : whole }
  }
}

/** A request as a provider of responses understands it. */
export interface ForProvider {
  /** Members that differ from the client's, as JSON texts. */
  readonly replace: ReadonlyMap<string, string>
  /** Names of what is left out. */
  readonly dropped: readonly string[]
}

const UNCHANGED: ForProvider = { replace: new Map(), dropped: [] }

/** Translates a request for a provider of responses, which knows neither our ids nor thoughts of others. */
export function forProvider(scan: ScannedObject, { isPlain, continued, composed }: Referred): ForProvider {
  if (isPlain) return UNCHANGED
  const replace = new Map<string, string>()
  if (continued?.kind === 'native')
    replace.set('previous_response_id', JSON.stringify(continued.response.upstreamId))
  const whole = composed ?? scan
  const isForeign = hasForeignThoughts(whole)
  if (composed || isForeign) replace.set('input', inputForProvider(whole))
  return { replace, dropped: isForeign ? ['input.reasoning'] : [] }
}

/** Responses that are looked up for one request; items of further ones count as unknown. */
const MAX_RESPONSES = 100

/** Items that a request refers to, and their provider keeps. */
interface ReferredItems {
  /** Responses that they are of, as far as these are known. */
  readonly responses: readonly StoredResponse[]
  /** Whether there are others. */
  readonly hasUnknown: boolean
}

/** Finds the responses of items by their ids. */
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

/** Responses that are looked up for one request; references to further ones stay as they are. */
const MAX_REFERRED_RESPONSES = 1_000

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
  const responseIds = [...new Set(references.map(({ responseId }) => responseId))].slice(
    0,
    MAX_REFERRED_RESPONSES,
  )
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
