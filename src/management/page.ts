import { z } from 'zod'

const DEFAULT_PAGE_SIZE = 10
/** `docs/api.md: Limits`. */
const MAX_PAGE_SIZE = 100

const queryText = z.string().optional()

/**
 * What a query may say of pages. Nothing in it is a mistake: what is no number from 1 on is as if it were not
 * there.
 */
export const pageQuery = z.object({ p: queryText, page_size: queryText, ps: queryText, size: queryText })

/** A page, counted from 1, and how many items it has at most. */
export interface Page {
  readonly page: number
  readonly pageSize: number
}

/** The page that a query asks for; of the names for its size the first that has one counts. */
export function pageOf({ p, page_size, ps, size }: z.output<typeof pageQuery>): Page {
  const pageSize = count(page_size) ?? count(ps) ?? count(size) ?? DEFAULT_PAGE_SIZE
  return { page: count(p) ?? 1, pageSize: Math.min(pageSize, MAX_PAGE_SIZE) }
}

/** How many items stand on the pages before. */
export function offsetOf({ page, pageSize }: Page): number {
  return (page - 1) * pageSize
}

/** `docs/api.md: Token page`, of any items. */
export function pageSchema<Item extends z.ZodType>(item: Item) {
  return z.object({ page: z.int(), page_size: z.int(), total: z.int(), items: z.array(item) })
}

// Twelve digits are more pages than anybody has, and few enough to count with.
function count(text: string | undefined): number | undefined {
  const number = text !== undefined && /^\d{1,12}$/.test(text) ? Number(text) : 0
  return number > 0 ? number : undefined
}
