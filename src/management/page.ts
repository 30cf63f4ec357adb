import { z } from 'zod'

const DEFAULT_PAGE_SIZE = 10
/** Maximum page size; `docs/api.md: Limits`. */
const MAX_PAGE_SIZE = 100

const queryText = z.string().optional()

/** Query parameters of a page. Values that are not whole numbers from 1 on are ignored. */
export const pageQuery = z.object({ p: queryText, page_size: queryText, ps: queryText, size: queryText })

/**
 * Query parameters for the order of a list. It is ascending by default, and objects that are equal are sorted
 * by id.
 */
export function orderQuery<const Names extends readonly [string, ...string[]]>(names: Names) {
  return z.object({
    sort: z.enum(names, { error: `expected one of ${names.join(', ')}` }).optional(),
    order: z.enum(['asc', 'desc'], { error: 'expected asc or desc' }).optional(),
  })
}

/** The order that a query asks for; undefined if it asks for none. */
export function orderOfQuery<Name>({
  sort,
  order,
}: {
  readonly sort?: Name | undefined
  readonly order?: 'asc' | 'desc' | undefined
}): { readonly by: Name; readonly isAscending: boolean } | undefined {
  return sort === undefined ? undefined : { by: sort, isAscending: order !== 'desc' }
}

/** The number of a page, starting at 1, and its size. */
export interface PageRequest {
  readonly page: number
  readonly pageSize: number
}

/** The page that a query asks for. If several parameters state its size, the first valid one counts. */
export function pageOfQuery({ p, page_size, ps, size }: z.output<typeof pageQuery>): PageRequest {
  const pageSize = count(page_size) ?? count(ps) ?? count(size) ?? DEFAULT_PAGE_SIZE
  return { page: count(p) ?? 1, pageSize: Math.min(pageSize, MAX_PAGE_SIZE) }
}

/** The number of items on all pages before this one. */
export function offsetOf({ page, pageSize }: PageRequest): number {
  return (page - 1) * pageSize
}

/** A page of items as responses show it. `total` is the number of items on all pages. */
export function pageObject<Item>({ page, pageSize }: PageRequest, total: number, items: Item[]) {
  return { page, page_size: pageSize, total, items }
}

/** The schema of a page of items; `docs/api.md: Token page`. */
export function pageSchema<Item extends z.ZodType>(item: Item) {
  return z.object({ page: z.int(), page_size: z.int(), total: z.int(), items: z.array(item) })
}

// At most twelve digits are accepted: that is more pages than can exist, and offsets stay safe integers.
function count(text: string | undefined): number | undefined {
  const number = text !== undefined && /^\d{1,12}$/.test(text) ? Number(text) : 0
  return number > 0 ? number : undefined
}
