import { WireError } from '../wire-error.ts'

const DEFAULT_LIMIT = 20
const MAX_LIMIT = 100

/** The items of a list that a client requests. */
export interface ItemQuery {
  readonly limit: number
  readonly order: 'asc' | 'desc'
  /** The page begins after this item. */
  readonly after: string | undefined
}

/** Reads the query of a list of items; throws `invalid_request`. */
export function itemQuery(query: URLSearchParams): ItemQuery {
  const limit = Number(query.get('limit') ?? DEFAULT_LIMIT)
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT)
    throw new WireError('invalid_request', `Invalid 'limit': expected an integer from 1 to ${MAX_LIMIT}.`)
  const order = query.get('order') ?? 'desc'
  if (order !== 'asc' && order !== 'desc')
    throw new WireError('invalid_request', `Invalid 'order': expected asc or desc.`)
  return { limit, order, after: query.get('after') ?? undefined }
}
