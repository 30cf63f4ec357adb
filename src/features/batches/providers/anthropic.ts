import { type OutgoingBody, TransportError } from '@sluice/http1'
import { asRecord } from '@sluice/wire/json/record'
import { type BatchConnection, idIn } from './connection.ts'
import { bytesIn, CLOCK_SECONDS, MAX_RESULT_BYTES, recordsIn, scanned } from './openai.ts'
import {
  type BatchApiOfProvider,
  type BatchLook,
  type BatchToMake,
  enclosed,
  onOneLine,
  type ProviderResult,
} from './provider-batches.ts'

const PAGE = 100
/** Maximum number of results that are read to recognize a batch. Some may have ids that belong to no line. */
const FIRST_RESULTS = 100
const COUNTS = ['processing', 'succeeded', 'errored', 'canceled', 'expired'] as const

/** Statuses of the types of errors in results. */
const STATUSES: ReadonlyMap<string, number> = new Map([
  ['invalid_request_error', 400],
  ['authentication_error', 401],
  ['billing_error', 402],
  ['permission_error', 403],
  ['not_found_error', 404],
  ['request_too_large', 413],
  ['rate_limit_error', 429],
  ['api_error', 500],
  ['timeout_error', 504],
  ['overloaded_error', 529],
])

/** The batch API of Anthropic: a batch is one request with all lines, and has no name by which it could be found. */
export const anthropic: BatchApiOfProvider = {
  maxLines: 100_000,
  maxBytes: 256_000_000,
  // The comma before the first one is left out when the batch is made.
  written: (_, id, __, body) =>
    Buffer.from(`,{"custom_id":${JSON.stringify(id)},"params":${onOneLine(body)}}\n`),
  async make(at, batch) {
    const contentType = 'application/json'
    await batch.confirm()
    const made = await at.send({ path: '/messages/batches', body: bodyOf(batch), contentType })
    return idIn(made)
  },
  /**
   * A batch as large as ours is ours only if its first results are. Results come at its end, so before that the batch
   * stays in doubt: a wrong one would be cancelled, or its results waited for, in place of ours.
   */
  async find(at, { lines, intentMs, isOfOther, isOwnLine }) {
    const first = `/messages/batches?limit=${PAGE}`
    const isOlder = (batch: Record<string, unknown>): boolean =>
      Date.parse(String(batch['created_at'])) < intentMs - CLOCK_SECONDS * 1_000
    const pages = at.pages(first, ({ data, has_more: hasMore }) => {
      const last = recordsIn(data).at(-1)
      if (!last || isOlder(last) || hasMore !== true) return undefined
      return `${first}&after_id=${encodeURIComponent(String(last['id']))}`
    })
    let isInDoubt = false
    for await (const { data } of pages)
      for (const batch of recordsIn(data)) {
        const id = idIn(batch)
        const isEnded = batch['processing_status'] === 'ended'
        const count = countOf(batch)
        // Its requests may not be counted yet.
        const mayBeOurs = count === lines || (count === 0 && !isEnded)
        if (isOlder(batch) || !mayBeOurs || (await isOfOther(id))) continue
        const ids = isEnded ? await firstIdsOf(at, id) : []
        if (ids.some(isOwnLine)) return id
        isInDoubt ||= ids.length === 0
      }
    if (isInDoubt) throw new TransportError('a batch that may be ours has not ended', false)
    return undefined
  },
  async look(at, id) {
    const {
      processing_status: status,
      request_counts: counts,
      cancel_initiated_at: cancelled,
    } = await at.get(pathOf(id))
    if (status !== 'ended') return { id, ended: undefined, results: [] }
    const found = asRecord(counts) ?? {}
    const how: BatchLook['ended'] =
      Number(found['expired']) > 0 ? 'expired' : typeof cancelled === 'string' ? 'cancelled' : 'completed'
    return { id, ended: how, results: [id] }
  },
  async *results(at, id) {
    for await (const line of at.lines(`${pathOf(id)}/results`, MAX_RESULT_BYTES)) yield line && resultOf(line)
  },
  async cancel(at: BatchConnection, id: string) {
    await at.post(`${pathOf(id)}/cancel`)
  },
}

function pathOf(id: string): string {
  return `/messages/batches/${encodeURIComponent(id)}`
}

/** The ids of the first results of a batch. */
async function firstIdsOf(at: BatchConnection, id: string): Promise<string[]> {
  const ids: string[] = []
  for await (const result of anthropic.results(at, id)) {
    if (result) ids.push(result.id)
    if (ids.length === FIRST_RESULTS) break
  }
  return ids
}

function countOf({ request_counts: counts }: Record<string, unknown>): number {
  const found = asRecord(counts) ?? {}
  return COUNTS.reduce((sum, name) => sum + (Number(found[name]) || 0), 0)
}

function bodyOf({ content }: BatchToMake): OutgoingBody {
  const rest = { length: content.length - 1, read: (position: number) => content.read(position + 1) }
  return enclosed(Buffer.from('{"requests":['), rest, Buffer.from(']}'))
}

function resultOf(line: Buffer): ProviderResult | undefined {
  const scan = scanned(line)
  const id = scan?.value('custom_id')
  const result = scan?.span('result')
  if (!scan || typeof id !== 'string' || !result || scan.kindOf(result.node) !== 'object') return undefined
  const member = (name: string): number | undefined => scan.memberOf(result.node, name)
  const typeNode = member('type')
  const type = typeNode === undefined ? undefined : scan.parse(typeNode)
  if (type === 'expired') return { id, answer: 'expired' }
  if (type === 'canceled') return { id, answer: 'cancelled' }
  const message = member('message')
  if (type === 'succeeded' && message !== undefined && scan.kindOf(message) === 'object')
    return { id, answer: { status: 200, body: bytesIn(scan, message) } }
  const error = member('error')
  if (type !== 'errored' || error === undefined || scan.kindOf(error) !== 'object') return undefined
  const stated = asRecord(asRecord(scan.parse(error))?.['error'])
  return { id, answer: { status: STATUSES.get(String(stated?.['type'])) ?? 500, body: bytesIn(scan, error) } }
}
