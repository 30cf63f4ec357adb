import { type ItemPageQuery, type ItemSpan, ItemSpanFinder } from '@sluice/wire/responses'
import { GatewayError } from '../../errors.ts'
import type { ResponseStore } from './response-store.ts'
import type { StoredTextPart } from './stored-text.ts'

/** A stored text that contains items: the input or the output of one response that the gateway keeps. */
export interface ItemSource {
  /** Whether the text is a JSON array of items, or a response with the items in its `output`. */
  readonly of: 'array' | 'output'
  /** Reads one of the text's stored parts, numbered from 0. The last part that was read is cached. */
  readonly part: (index: number) => Promise<StoredTextPart>
}

/** The input or the output of a response that the gateway keeps. */
export function itemSource(
  responses: ResponseStore,
  userId: number,
  id: string,
  of: 'input' | 'response',
): ItemSource {
  const stored = responses.text(userId, id, of)
  let latest = { index: -1, part: Promise.resolve<StoredTextPart>({ text: '', isLast: true }) }
  return {
    of: of === 'input' ? 'array' : 'output',
    part: (index) => {
      if (index !== latest.index) latest = { index, part: stored.part(index) }
      return latest.part
    },
  }
}

/** Where an item is in the stored text of a request or response. */
export interface ItemPosition extends ItemSpan {
  readonly source: ItemSource
  /** Offsets of the text's parts in UTF-16 units, for the parts read so far. */
  readonly starts: readonly number[]
}

/**
 * Yields a page of a list of items as JSON, in pieces, so that only parts of the texts are in memory at the
 * same time. `sources` are in the order of the conversation. Rejects before the first piece if there is no
 * item `after`.
 */
export async function* storedItemPage(
  sources: readonly ItemSource[],
  query: ItemPageQuery,
): AsyncGenerator<string, void, undefined> {
  const { limit, order } = query
  const places = await (order === 'asc' ? firstPlaces(sources, query) : lastPlaces(sources, query))
  if (!places) throw new GatewayError('invalid_request', `Invalid 'after': there is no such item.`)
  const page = places.slice(0, limit)
  const idOf = (place: ItemPosition | undefined): string => JSON.stringify(place?.id ?? null)
  yield '{"object":"list","data":['
  for (const [index, place] of page.entries()) {
    if (index > 0) yield ','
    yield* textAt(place)
  }
  yield `],"first_id":${idOf(page[0])},"last_id":${idOf(page.at(-1))},"has_more":${places.length > limit}}`
}

/**
 * Positions of the items on the page and of the next item after the page, in the order of the conversation;
 * undefined if `after` was not found.
 */
async function firstPlaces(
  sources: readonly ItemSource[],
  { limit, after }: ItemPageQuery,
): Promise<readonly ItemPosition[] | undefined> {
  let found: ItemPosition[] | undefined = after === undefined ? [] : undefined
  for (const source of sources)
    for await (const place of itemPositions(source)) {
      if (found) found.push(place)
      else if (place.id === after) found = []
      if (found && found.length > limit) return found
    }
  return found
}

/**
 * Positions of the items on a page that is sorted newest first, and of the next item after the page;
 * undefined if `after` was not found. While a text is read, only its last positions are kept in memory.
 */
async function lastPlaces(
  sources: readonly ItemSource[],
  { limit, after }: ItemPageQuery,
): Promise<readonly ItemPosition[] | undefined> {
  let found: ItemPosition[] | undefined = after === undefined ? [] : undefined
  for (const source of sources.toReversed()) {
    let latest: ItemPosition[] = []
    let before: ItemPosition[] | undefined
    for await (const place of itemPositions(source)) {
      if (!found && place.id === after) before = [...latest]
      latest.push(place)
      if (latest.length > limit + 1) latest.shift()
    }
    if (!found) {
      if (!before) continue
      latest = before
      found = []
    }
    found.push(...latest.toReversed())
    if (found.length > limit) return found
  }
  return found
}

/** Yields the position of each item of a text as soon as the item has been read. */
export async function* itemPositions(source: ItemSource): AsyncGenerator<ItemPosition, void, undefined> {
  const spans = new ItemSpanFinder(source.of)
  const starts = [0]
  for (let index = 0; ; index += 1) {
    const { text, isLast } = await source.part(index)
    for (const span of spans.push(text)) yield { ...span, source, starts }
    if (isLast) return
    starts.push((starts.at(-1) ?? 0) + text.length)
  }
}

/** Yields all items of a text, in pieces, without the brackets of their list. */
export async function* textOfItems(source: ItemSource): AsyncGenerator<string, void, undefined> {
  let first: ItemPosition | undefined
  let end = 0
  for await (const place of itemPositions(source)) {
    first ??= place
    ;({ end } = place)
  }
  if (first) yield* textAt({ ...first, end })
}

/** Yields the text of an item in pieces. */
export async function* textAt({
  source,
  starts,
  start,
  end,
}: ItemPosition): AsyncGenerator<string, void, undefined> {
  let index = starts.findLastIndex((begin) => begin <= start)
  for (let at = starts[index] ?? 0; at < end; index += 1) {
    const { text } = await source.part(index)
    yield text.slice(Math.max(0, start - at), end - at)
    at += text.length
  }
}
