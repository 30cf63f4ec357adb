import { GatewayError } from '../../errors.ts'
import { scanObject } from '../json/json-scan.ts'

const DEFAULT_LIMIT = 20
const MAX_LIMIT = 100

/** Which items of a list a client wants. */
export interface ItemQuery {
  readonly limit: number
  readonly order: 'asc' | 'desc'
  /** The page begins behind this item. */
  readonly after: string | undefined
}

/** Reads the query of a list of items; throws `invalid_request`. */
export function itemQuery(query: URLSearchParams): ItemQuery {
  const limit = Number(query.get('limit') ?? DEFAULT_LIMIT)
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT)
    throw new GatewayError('invalid_request', `Invalid 'limit': expected an integer from 1 to ${MAX_LIMIT}.`)
  const order = query.get('order') ?? 'desc'
  if (order !== 'asc' && order !== 'desc')
    throw new GatewayError('invalid_request', `Invalid 'order': expected asc or desc.`)
  return { limit, order, after: query.get('after') ?? undefined }
}

/** The page of a list of items, in JSON; `items` is a JSON array in the order of the conversation. */
export function itemPage(items: string, { limit, order, after }: ItemQuery): Buffer {
  const scan = scanObject(Buffer.from(`{"data":${items}}`))
  const inOrder = scan.elements(scan.span('data')?.node ?? 0)
  const list = order === 'desc' ? inOrder.toReversed() : inOrder
  const ids = list.map((node) => {
    const id = scan.kindOf(node) === 'object' ? scan.memberOf(node, 'id') : undefined
    return id === undefined ? undefined : scan.parse(id)
  })
  const from = after === undefined ? 0 : ids.indexOf(after) + 1
  if (after !== undefined && from === 0)
    throw new GatewayError('invalid_request', `Invalid 'after': there is no such item.`)
  const page = list.slice(from, from + limit)
  const end = from + page.length
  return Buffer.from(
    `{"object":"list","data":[${page.map((node) => scan.textOf(node)).join(',')}],"first_id":${JSON.stringify(ids[from] ?? null)},"last_id":${JSON.stringify((page.length > 0 ? ids[end - 1] : null) ?? null)},"has_more":${end < list.length}}`,
  )
}
