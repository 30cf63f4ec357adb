import { type Fields, asString } from './fields.ts'
import { Refusal } from './refusal.ts'
import type { ResponseHistory } from './response-history.ts'
import type { Call } from './upstream.ts'

const PATH = /^\/responses\/(resp_\w+)(\/cancel|\/input_items)?$/
const ITEMS_A_PAGE = 20

/**
 * Returns what a call about a stored response gets; undefined for other calls. Throws `Refusal` if the
 * response does not exist.
 */
export function storedResponse({ method, path, query }: Call, history: ResponseHistory): unknown {
  const [, id = '', action = ''] = PATH.exec(path) ?? []
  if (id === '') return undefined
  const response = history.response(id)
  if (!response) throw new Refusal('unknown_path', `Response with id '${id.slice(0, 100)}' not found.`)
  switch (`${method} ${action}`) {
    case 'GET ':
      return response
    case 'DELETE ':
      history.forget(id)
      return { id, object: 'response.deleted', deleted: true }
    case 'GET /input_items':
      return page(history.inputOf(id), query)
    case 'POST /cancel':
      throw new Refusal('malformed', 'Only a response in the background can be cancelled.')
    default:
      return undefined
  }
}

/**
 * Returns a page of a list, as the query parameters select it; the newest items come first unless it asks for
 * another order.
 */
function page(items: readonly Fields[], query: URLSearchParams): Fields {
  const ordered = query.get('order') === 'asc' ? items : items.toReversed()
  const after = ordered.findIndex(({ id }) => id === query.get('after'))
  const rest = ordered.slice(after + 1)
  const data = rest.slice(0, Number(query.get('limit') ?? ITEMS_A_PAGE))
  const ids = data.map(({ id }) => asString(id))
  return {
    object: 'list',
    data,
    first_id: ids[0] ?? null,
    last_id: ids.at(-1) ?? null,
    has_more: rest.length > data.length,
  }
}
